"""The findings as text for a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding

#: Findings of one check that are shown in full.
_SHOWN = 3
#: A longer list of hosts has a line of its own.
_LONGEST_HOSTS = 60
_STYLES = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "note"}


def render(
    result: Examination,
    *,
    color: bool = False,
    ascii_only: bool = False,
    width: int | None = None,
    chinese: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Yield the findings, those of one check together, and a last line with the verdict.

    ``width`` is in columns of the screen, ``None`` for lines of any length. ``chinese`` returns the Chinese
    line of a check by its id; it stands below the remedy, once for the findings that are shown together.
    """
    pen = Pen(color)
    for line in _text(result, pen, chinese, ascii_only=ascii_only):
        indent = "    " if line.startswith(" ") else "  "
        yield "".join(f"{part}\n" for part in wrapped(line, width, indent))


def _text(
    result: Examination, pen: Pen, chinese: Callable[[str], str] | None, *, ascii_only: bool
) -> Iterator[str]:
    for _key, group in groupby(result.findings, key=lambda one: (one.consequence, one.check)):
        found = list(group)
        for number, one in enumerate(found[:_SHOWN], 1):
            is_last = number == min(len(found), _SHOWN)
            many = len(result.hosts) > 1
            yield from _lines(one, pen, ascii_only=ascii_only, remedy=is_last, many=many)
            if is_last and chinese and (line := chinese(one.check)):
                yield f"  = {pen('help', '中文')}: {line}"
        if rest := found[_SHOWN:]:
            hosts = list(dict.fromkeys(host for one in rest for host in one.hosts))
            where = escaped(fold(hosts), ascii_only=ascii_only)
            yield f"  = and {count(len(rest), 'finding')} more on {where} (-f json has all)"
    style = "error" if any(one.consequence == "stops" for one in result.findings) else "good"
    yield pen(style, escaped(_verdict(result), ascii_only=ascii_only))


def _lines(one: HostFinding, pen: Pen, *, ascii_only: bool, remedy: bool, many: bool) -> Iterator[str]:
    shown = pen(_STYLES[one.consequence], f"{one.consequence}[{one.check}]")
    hosts = fold(one.hosts) if many or not one.place else ""
    is_short = len(hosts) <= _LONGEST_HOSTS
    prefix = f"{hosts if is_short else count(len(one.hosts), 'host')}: " if hosts else ""
    yield f"{shown}: {escaped(prefix + one.message, ascii_only=ascii_only)}"
    where = [*([] if is_short else [hosts]), *([str(one.place)] if one.place else [])]
    if where:
        yield f" --> {escaped(', '.join(where), ascii_only=ascii_only)}"
    if remedy and one.remedy:
        yield f"  = {pen('help', 'help')}: {escaped(one.remedy, ascii_only=ascii_only)}"


def _verdict(result: Examination) -> str:
    numbers = {name: sum(one.consequence == name for one in result.findings) for name in _STYLES}
    unknown = sum(one.is_unknown and one.consequence == "note" for one in result.findings)
    notes = numbers["note"] - unknown
    where = result.hosts[0] if len(result.hosts) == 1 else count(len(result.hosts), "host")
    found = [
        f"{count(numbers['stops'], 'fault')} would stop the job"
        if numbers["stops"]
        else "nothing was found that would stop the job"
        if unknown
        else "nothing would stop the job",
        *([f"{numbers['may-stop']} may stop it"] if numbers["may-stop"] else []),
        *([f"{numbers['slows']} would slow it"] if numbers["slows"] else []),
        *([count(notes, "note")] if notes else []),
        *([f"{count(unknown, 'check')} could not be made"] if unknown else []),
    ]
    return f"{where}: {', '.join(found)}"
