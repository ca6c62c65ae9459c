"""Recognise an entry of a table that was commented out: whether it belongs to the job is not known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

#: The characters of all comments that are read as entries.
_MOST_READ = 1 << 20
_BLOCKS = {"/*": "*/", "<!--": "-->"}
#: The longest value that a message shows.
_LONGEST = 40


class CommentedEntry(NamedTuple):
    """An entry that was commented out.

    Attributes:
        shown: The first key of it and its value, "" if the value is a list or an object.
        first: Its first line in the text.
        last: Its last line.
        start: The offset of its first comment.
    """

    shown: str
    first: int
    last: int
    start: int


def find(text: str, comments: Sequence[re.Match[str]]) -> CommentedEntry | None:
    """Return the first run of comments that together are one or more entries in JSON."""
    left = _MOST_READ
    for run in _runs(text, comments):
        content = "\n".join(_content(one["comment"]) for one in run).strip()
        left -= len(content)
        if left < 0:
            return None
        if not content.startswith("{") or (entry := _first_entry(content)) is None:
            continue
        key, value = next(iter(entry.items()))
        is_short = isinstance(value, (str, int)) and len(str(value)) <= _LONGEST
        shown = escaped(f'"{key}": {json.dumps(value)}') if is_short and len(key) <= _LONGEST else ""
        start, end = run[0].start(), run[-1].end()
        first = text.count("\n", 0, start) + 1
        return CommentedEntry(shown, first, first + text.count("\n", start, end), start)
    return None


def _runs(text: str, comments: Sequence[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield the comments in runs with nothing between them."""
    run: list[re.Match[str]] = []
    for one in comments:
        if run and text[run[-1].end() : one.start()].strip():
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _content(comment: str) -> str:
    """Return a comment without its signs."""
    for opening, closing in _BLOCKS.items():
        if comment.startswith(opening):
            return comment[len(opening) :].removesuffix(closing)
    return comment.lstrip("#/")


def _first_entry(content: str) -> dict[str, object] | None:
    """Return the first of the objects that a text lists; None if it is something else."""
    try:
        entries = json.loads(f"[{content.rstrip().removesuffix(',')}]")
    except (ValueError, RecursionError):
        return None
    first = entries[0]
    return first if isinstance(first, dict) and first else None
