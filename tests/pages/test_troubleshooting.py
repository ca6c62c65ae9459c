"""The pages on troubleshooting say what rules, checks and messages say."""

from __future__ import annotations

import pytest

from tests.support import troubleshooting
from tests.support.reference_pages import DOCS

HOW = "run: python -m tests.support.reference_pages"


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("en/troubleshooting.md", troubleshooting.english),
        ("zh/troubleshooting.md", troubleshooting.chinese),
        ("zh/codes.md", troubleshooting.chinese_codes),
    ],
)
def test_the_published_page_is_made_of_them(page: str, made: object) -> None:
    stored = (DOCS / page).read_text(encoding="utf-8")

    assert callable(made)
    assert stored == made(), HOW


def test_each_row_says_what_to_do() -> None:
    rows = [line for line in troubleshooting.chinese().splitlines() if line.startswith("| HC")]

    assert len(rows) == len({row.split()[1] for row in rows}) >= 60
    assert all(cell.strip() for row in rows for cell in row.split(" | "))
