"""The page of a check, for ``hccl-tools rules HCD202``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.doctor.registry import Check, Consequence

#: What happens to a job, by consequence.
MEANINGS: dict[Consequence, str] = {
    "stops": "the job would not start, or would fail",
    "may-stop": "the job would fail if it uses this",
    "slows": "the job would run more slowly",
    "note": "worth knowing; also what could not be looked at",
}
_KINDS = {
    "tool": "`{0}` prints",
    "file": "{0} contains",
    "folder": "{0} is a directory",
    "env": "the job has {0}=",
    "observed": "on the host, `{0}` is",
}


def page(check: Check, chinese: str = "") -> str:
    """Return the page of a check in Markdown, with its Chinese line, if it is given, below the title."""
    lines = [
        f"# {check.id} {check.name}",
        "",
        check.title,
        *([f"= 中文: {chinese}"] if chinese else []),
        "",
        *([check.why, ""] if check.why else []),
        f"* Consequence: {check.consequence} ({MEANINGS[check.consequence]})",
        f"* Products: {', '.join(check.products) or 'all'}",
        f"* Asked by: `hccl-tools doctor`{' and by `launch` before every start' if check.quick else ''}",
        f"* Source: {check.source}",
        "",
        f"What to do: {check.remedy}.".replace("{device}", "N"),
    ]
    if check.example is not None:
        kind, name, text = check.example
        shown = [f"    {line}" for line in text.rstrip("\n").splitlines()]
        lines += ["", f"Example: {_KINDS[kind].format(name)}", *(["", *shown] if shown else [])]
    return "\n".join(lines)
