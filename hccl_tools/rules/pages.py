"""The documentation pages of the rules, for ``hccl-tools rules`` and ``docs/rules``.

``python -m hccl_tools.rules.pages FOLDER`` writes all pages into a folder.
"""

from __future__ import annotations

import re
import sys
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.hccl_codes import CODES
from hccl_tools.rules import page_examples
from hccl_tools.rules.registry import LOCAL, Rule, all_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What happens to a job, by consequence.
CONSEQUENCES = {
    "refused": "HCCL refuses the table",
    "hangs": "HCCL waits for 30 minutes, then fails",
    "fails-later": "HCCL accepts the table, and the job fails later",
    "forbidden": "the product's guide forbids it, HCCL accepts it",
    "advice": "works, but is fragile or probably a mistake",
}
_FAMILIES = {
    "1": "File and structure", "2": "Ranks", "3": "Devices", "4": "Network", "5": "Servers and super pods", "6": "Advice",
}  # fmt: skip
_EXAMPLE = re.compile(r"^(Base|Example|Instead|Hint): (.*)$", re.MULTILINE)


def page(rule: Rule) -> str:
    """Return one rule's page in Markdown."""
    facts, doc = rule.facts, cleandoc(rule.facts.doc)
    examples = dict(_EXAMPLE.findall(doc))
    code = f", with {facts.hccl_code}" if facts.hccl_code else ""
    in_such = f", in {page_examples.base(examples['Base'])}" if "Base" in examples else ""
    lines = [
        f"# {facts.id} {facts.name}",
        "",
        f"{facts.title}.",
        "",
        *([facts.why, ""] if facts.why else []),
        f"* Consequence: {facts.consequence} ({CONSEQUENCES[facts.consequence]}{code})",
        f"* Severity: {facts.severity}",
        f"* Tables: {_tables(rule)}",
        f"* Source: {facts.source}",
        "",
        f"Bad{in_such}:",
        "",
        *(f"    {line}" for line in page_examples.lines(examples["Example"])),
        "",
        "Good:",
        "",
        *(f"    {line}" for line in page_examples.lines(examples["Instead"])),
        "",
        *([f"What to do: {examples['Hint']}", ""] if "Hint" in examples else []),
    ]
    return "\n".join(lines)


def code_page(code: str, *, tables: bool) -> str:
    """Return the page of an error code of HCCL; with ``tables`` its end introduces a list of rules."""
    facts = CODES[code]
    return "\n".join(
        [
            f"# {code} {facts.name}".rstrip(),
            "",
            _as_sentence(facts.meaning),
            "",
            f"What to do: {facts.remedy}.",
            "",
            "Rules with this code:" if tables else "No rule of `validate` has this code.",
        ]
    )


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _tables(rule: Rule) -> str:
    if rule.formats == LOCAL:
        return "all, compared with the host by `validate --local`"
    return ", ".join(rule.formats) if rule.formats else "all"


def index(rules: Iterable[Rule]) -> str:
    """Return the overview page: the rules by family."""
    lines = [
        "# The rules", "",
        "Generated from the rules by `python -m hccl_tools.rules.pages docs/rules`.", "",
        *(f"* **{name}**: {text}" for name, text in CONSEQUENCES.items()),
    ]  # fmt: skip
    family = ""
    for rule in rules:
        facts = rule.facts
        if facts.id[3] != family:
            family = facts.id[3]
            lines += [
                "",
                f"## {_FAMILIES[family]}",
                "",
                "| rule | name | consequence | HCCL | what |",
                "| --- | --- | --- | --- | --- |",
            ]
        what = facts.title.replace("|", "\\|")
        lines.append(
            f"| [{facts.id}]({facts.id}.md) | {facts.name} | {facts.consequence} | {facts.hccl_code or ''} | {what} |"
        )
    return "\n".join([*lines, "", *_codes(), ""])


def _codes() -> list[str]:
    return [
        "## HCCL's error codes", "",
        "`hccl-tools rules EI0014` shows a code and its rules.", "",
        "| code | HCCL's name | meaning | what to do |",
        "| --- | --- | --- | --- |",
        *(f"| {code} | {facts.name} | {facts.meaning} | {facts.remedy} |" for code, facts in CODES.items()),
    ]  # fmt: skip


def pages() -> dict[str, str]:
    """Return every page by file name."""
    rules = all_rules()
    return {
        "README.md": index(rules.values()),
        **{f"{rule_id}.md": page(rule) for rule_id, rule in rules.items()},
    }


def write(folder: Path) -> None:
    """Write all pages into a folder and remove those of rules that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
