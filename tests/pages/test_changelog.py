"""CHANGELOG.md has a section per command, and a line per change."""

from __future__ import annotations

from pathlib import Path

from hccl_tools.cli import COMMANDS

ROOT = Path(__file__).parents[2]
#: Sections that are not named after commands.
OTHERS = {"All commands", "Library", "Documentation", "Installation", "Security", "launch on several hosts"}
#: The longest line.
WIDEST = 120


def test_a_change_is_a_line_in_the_section_of_its_command() -> None:
    sections: dict[str, list[str]] = {}
    for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2].splitlines()[1:]:
        if line.startswith("### "):
            sections[line.removeprefix("### ")] = []
        elif line and sections:
            [*sections.values()][-1].append(line)

    names = {name for section in sections if section not in OTHERS for name in section.split(", ")}
    assert names - {*COMMANDS, *OTHERS} == set()
    long = [line for lines in sections.values() for line in lines if len(line) > WIDEST]
    assert [line for lines in sections.values() for line in lines if not line.startswith("- ")] + long == []
