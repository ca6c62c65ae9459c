"""``docs/architecture.md``: its picture shows today's imports, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.folder_picture import picture

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_picture_shows_the_imports(request: pytest.FixtureRequest) -> None:
    file = ROOT / "docs" / "architecture.svg"
    if request.config.getoption("--update-golden"):
        file.write_text(picture(), encoding="utf-8")

    assert file.read_text(encoding="utf-8") == picture()


def test_every_named_file_exists() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_.]+)`", PAGE)
    places = (ROOT, ROOT / "hccl_tools")

    assert len(named) > 30
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_contributing_page_leads_to_it() -> None:
    assert "(docs/architecture.md)" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
