from __future__ import annotations

from pathlib import Path

from hccl_tools.rules.pages import pages

FOLDER = Path(__file__).parents[2] / "docs" / "rules"


def test_published_pages_are_those_of_the_rules() -> None:
    stored = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")}

    assert stored == pages(), "run: python -m hccl_tools.rules.pages docs/rules"
