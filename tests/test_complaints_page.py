"""The page of complaints is complete, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (?:`(test_\w+)` )?\|$",
    (ROOT / "docs" / "complaints.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_every_complaint_has_its_line() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 58))


def test_every_named_test_is_there() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    assert [name for *_, name in ROWS if name and f"def {name}(" not in sources] == []


def test_a_line_without_a_test_says_why() -> None:
    assert [number for number, _, answer, name in ROWS if not name and "No test: " not in answer] == []
