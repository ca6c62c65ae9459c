from __future__ import annotations

from pathlib import Path

import pytest

from hccl_tools.rules.pages import example_lines
from tests.support import reference_pages

FOLDER = Path(__file__).parents[2] / "docs" / "rules"


def test_published_pages_are_those_of_the_rules() -> None:
    stored = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")}

    assert stored == reference_pages.rules(), "run: python -m tests.support.reference_pages"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ('/server_list/0/server_id = ""', ['/server_list/0/server_id = ""']),
        ("remove /status; host is 10.0.0.9", ["without /status", "this host's address is 10.0.0.9"]),
        ('text {"version": "1.0",}', ['{"version": "1.0",}']),
        ("base 2x4", ["a table of 2 servers with 4 devices each"]),
        ("size 41943041", ["a file of 41,943,041 bytes, blanks not counted"]),
        ("table", ["the table unchanged"]),
        ("marked", ["a byte order mark before the table"]),
    ],
)
def test_examples_are_told_in_words(steps: str, words: list[str]) -> None:
    assert example_lines(steps) == words


def test_no_page_shows_a_step_as_the_tests_write_it() -> None:
    steps = ("base ", "text ", "host ", "swap ", "size ", "file ", "remove ", "table", "env ", "levels ")
    for name, page in reference_pages.rules().items():
        shown = [line.strip() for line in page.splitlines() if line.startswith("    ")]
        assert [line for line in shown if line.startswith(steps)] == [], name
