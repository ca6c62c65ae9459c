"""The page on the commands says what `--help` says."""

from __future__ import annotations

from hccl_tools.cli import COMMANDS
from tests.support import command_pages
from tests.support.reference_pages import DOCS


def test_the_published_page_is_made_of_the_commands() -> None:
    stored = (DOCS / "en" / "reference" / "commands.md").read_text(encoding="utf-8")

    assert stored == command_pages.commands(), "run: python -m tests.support.reference_pages"


def test_every_command_has_its_options_and_examples() -> None:
    page = command_pages.commands()

    assert all(f"\n## {name}\n" in page for name in (*COMMANDS, "scaling run", "key copy"))
    assert "| `--devices RANGE` | Physical device ids, in rank order: 4-7 or 7,6,5,4. |" in page
    assert "```text\nExamples:\n  hccl-tools gen  " in page
