"""Entries that were commented out are named, and whether they belong to the job is asked."""

from __future__ import annotations

import json

import pytest

from hccl_tools.document.document import Document
from hccl_tools.document.explanation import explained
from tests.support.tables import table

LINES = json.dumps(table("1.0", 2, 8), indent=2).split("\n")
FIRST = next(number for number, line in enumerate(LINES) if '"device_id": "4"' in line) - 1
LAST = next(number for number in range(FIRST, len(LINES)) if LINES[number].strip() == "},")


def told(text: str) -> tuple[str, str]:
    problem = explained(Document.parse(text.encode(), "x"))
    assert problem is not None
    return problem.message, problem.hint


def expected(lines: str, them: str) -> tuple[str, str]:
    return (
        f'an entry is commented out: {lines}, "device_id": "4"',
        f"remove the signs of the comment from {lines} if the job uses the entry, else delete {them}",
    )


@pytest.mark.parametrize("sign", ["#", "//", "    # ", "  //  "])
def test_an_entry_of_commented_lines_is_named(sign: str) -> None:
    lines = [f"{sign}{line}" if FIRST <= number <= LAST else line for number, line in enumerate(LINES)]

    assert told("\n".join(lines)) == expected(f"lines {FIRST + 1}-{LAST + 1}", "these lines")


@pytest.mark.parametrize("signs", [("/*", "*/"), ("<!--", "-->")])
def test_an_entry_in_one_comment_is_named(signs: tuple[str, str]) -> None:
    lines = [*LINES]
    lines[FIRST], lines[LAST] = signs[0] + lines[FIRST], lines[LAST] + signs[1]

    assert told("\n".join(lines)) == expected(f"lines {FIRST + 1}-{LAST + 1}", "these lines")


def test_an_entry_on_one_line_is_named() -> None:
    entry = " ".join(line.strip() for line in LINES[FIRST : LAST + 1])
    lines = [*LINES[:FIRST], f"// {entry}", *LINES[LAST + 1 :]]

    assert told("\n".join(lines)) == expected(f"line {FIRST + 1}", "the line")


def test_comments_that_are_no_entries_are_removed() -> None:
    lines = [*LINES[:FIRST], "# {", "# made by hand", *LINES[FIRST:]]

    assert told("\n".join(lines))[1] == "remove both comments"
