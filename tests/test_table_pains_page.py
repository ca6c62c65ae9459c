"""The page of rank tables' pains is complete, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (.*) \|$",
    (ROOT / "docs" / "table_pains.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
NAMED = r"`([\w/]+\.py)::(test_\w+)`"


def test_every_pain_has_its_line() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 50))


def test_every_line_names_a_test() -> None:
    for number, *_, tests in ROWS:
        assert re.fullmatch(rf"{NAMED}(, {NAMED})*", tests), number


def test_every_named_test_is_there() -> None:
    named = {pair for *_, tests in ROWS for pair in re.findall(NAMED, tests)}

    sources = {file: (ROOT / "tests" / file).read_text(encoding="utf-8") for file, _ in named}
    missing = [
        pair for pair in named if not re.search(rf"^ *def {pair[1]}\(", sources[pair[0]], re.MULTILINE)
    ]

    assert missing == []


def test_the_map_of_the_documentation_leads_to_it() -> None:
    assert "(table_pains.md)" in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
