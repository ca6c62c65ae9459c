"""Links of the documentation lead to files and headings that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "rules"),
    ROOT / "sample_tables" / "README.md",
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead(path: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for link in _LINK.findall(text):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    assert dead(path, path.read_text(encoding="utf-8")) == []


def test_a_dead_link_is_found() -> None:
    readme = ROOT / "README.md"

    assert dead(readme, "[a](absent.md) [b](LICENSE) [c](README.md#absent) [d](https://example.org)") == [
        "absent.md", "README.md#absent",
    ]  # fmt: skip
