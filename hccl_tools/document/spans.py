"""Find the spans of values in a JSON text, for many paths in one pass.

The C scanner of ``json`` skips all other values, so that a span at the end of a table of 65,536 ranks costs
little more than parsing the table.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    #: Returns the value at an index of a text, and the index after it.
    _Step = Callable[[str, int], tuple[Any, int]]

#: The maximum number of keys in a path; a longer path is cut to this length. Two calls per level stay below
#: Python's recursion limit of 1000, and no rank table is deeper than 8.
_DEPTH_LIMIT = 100
#: Characters of a list or object that are always scanned: more than an output format shows.
BEGINNING = 1000
_BLANKS = re.compile(r"[ \t\n\r]*")
_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
#: List items without nested values, with their commas: they are skipped in one step if none is wanted.
_PLAIN_ITEMS = re.compile(
    r'(?:(?:\{[ \t\n\r]*\}|\[[ \t\n\r]*\]|[-+.\w]+|"[^"\\]*")[ \t\n\r]*,[ \t\n\r]*){1,1000}'
)
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_TEXT_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]')
_DEEPER = {"{": 1, "[": 1, "}": -1, "]": -1}


class Span(NamedTuple):
    """The start and end of a value, and of its key with quotes.

    The bounds of the key are ``None`` for list items, for the whole document, and for a path without a value,
    which gets the span of its nearest ancestor.
    """

    start: int
    end: int
    key_start: int | None = None
    key_end: int | None = None


class _Wanted(dict[Any, "_Wanted"]):
    """A value in the tree of the values whose spans are searched; the items are the values inside it.

    ``asked`` tells whether the span of the value itself is searched, ``span`` is the result.
    """

    def __init__(self) -> None:
        super().__init__()
        self.span: Span | None = None
        self.asked = False
        self.found: list[_Wanted] = []

    def forget(self) -> None:
        """Drop the known spans after a duplicate key, because its last value counts."""
        self.span = None
        for inner in self.found:
            inner.forget()
        self.found.clear()


class _AllFound(Exception):  # noqa: N818  (not an error)
    """The spans of all paths are known."""


def find_spans(
    text: str, paths: Iterable[tuple[str | int, ...]], *, unique: bool = False, whole: bool = True
) -> list[Span]:
    """Return the span of each path, in characters.

    Args:
        text: A valid JSON value, with any text after it.
        paths: Object keys and list indices, outermost first, in any order.
        unique: Whether no object has duplicate keys, so that the scan can stop after the last value.
        whole: Whether the ends of long lists and objects are needed; if not, the span of the last one may end
            after its first ``BEGINNING`` characters.
    """
    wanted = [path[:_DEPTH_LIMIT] for path in paths]
    # Numbers are only skipped, so Python's limit on their digits must not apply.
    step = json.JSONDecoder(parse_int=str, parse_float=str).scan_once  # type: ignore[attr-defined]
    try:
        root = _scanned(text, wanted, step, unique=unique, whole=whole)
    except RecursionError:  # the text is nested deeper than Python's scanner goes
        deep = lambda text, at: _step_over_brackets(text, at) or step(text, at)  # noqa: E731
        root = _scanned(text, wanted, deep, unique=unique, whole=whole)
    return [_nearest(root, path) for path in wanted]


def _scanned(
    text: str, wanted: Iterable[tuple[str | int, ...]], step: _Step, *, unique: bool, whole: bool
) -> _Wanted:
    root, missing = _Wanted(), 0
    for path in wanted:
        node = root
        for key in path:
            following = node.get(key)
            if following is None:
                following = node[key] = _Wanted()
            node = following
        missing += not node.asked
        node.asked = True
    with suppress(_AllFound):
        _Scan(text, step, missing if unique else -1, whole=whole).value(_blanks(text, 0), root, None, None)
    return root


def _step_over_brackets(text: str, at: int) -> tuple[None, int] | None:
    """Return the end of an object or list, found by counting brackets; ``None`` for any other value."""
    if text[at] not in "{[":
        return None
    depth = 0
    for found in _TEXT_OR_BRACKET.finditer(text, at):
        depth += _DEEPER.get(found[0], 0)
        if depth == 0:
            return None, found.end()
    raise ValueError("the text is not valid JSON")


def _near_end(text: str, at: int) -> int:
    """Return the end of an object or list, or of its beginning if it is long."""
    beginning = text[at : at + BEGINNING]
    with suppress(ValueError):
        if (found := _step_over_brackets(beginning, 0)) is not None:
            return at + found[1]
    return at + len(beginning)


def _nearest(root: _Wanted, path: tuple[str | int, ...]) -> Span:
    """Return the span of a path, or the span of its nearest ancestor that has a span."""
    nodes = [root]
    for key in path:
        nodes.append(nodes[-1][key])
    if (own := nodes[-1].span) is not None:
        return own
    span = next((node.span for node in reversed(nodes) if node.span is not None), Span(0, 0))
    return Span(span.start, span.end)


def _blanks(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # matches the empty text too


class _Scan:
    def __init__(self, text: str, step: _Step, missing: int, *, whole: bool) -> None:
        self._text = text
        self._step = step
        self._whole = whole
        #: The number of wanted values that are not found yet; negative to scan the whole text.
        self._missing = missing

    def value(self, at: int, node: _Wanted, key_start: int | None, key_end: int | None) -> int:
        """Record the span of the value at ``at`` and of the wanted values inside; return its end."""
        char = self._text[at]
        if not node and char in "{[" and self._missing == 1 and not self._whole:
            end = _near_end(self._text, at)
        elif not node or char not in "{[":
            end = self._step(self._text, at)[1]
        else:
            end = self._object(at + 1, node) if char == "{" else self._list(at + 1, node)
        node.span = Span(at, end, key_start, key_end)
        if node.asked:
            self._missing -= 1
            if not self._missing:
                raise _AllFound
        return end

    def _object(self, at: int, node: _Wanted) -> int:
        text, step = self._text, self._step
        if (end := _blanks(text, at)) < len(text) and text[end] == "}":
            return end + 1
        while True:
            plain = _KEY.match(text, at)
            if plain:
                key, key_start, key_end, at = plain[1], plain.start(1) - 1, plain.end(1) + 1, plain.end()
            else:
                key_start = _blanks(text, at)
                key, key_end = step(text, key_start)
                at = _COLON.match(text, key_end).end()  # type: ignore[union-attr]  # the text is valid
            following = node.get(key)
            if following is None:
                at = step(text, at)[1]
            else:
                if following.span is not None:
                    following.forget()
                node.found.append(following)
                at = self.value(at, following, key_start, key_end)
            at = _blanks(text, at)
            if text[at] == "}":
                return at + 1
            at += 1

    def _list(self, at: int, node: _Wanted) -> int:
        text, step = self._text, self._step
        at = _blanks(text, at)
        if text[at] == "]":
            return at + 1
        index, last = 0, max((key for key in node if type(key) is int), default=-1)
        while True:
            following = node.get(index)
            if following is None:
                at = step(text, at)[1]
            else:
                node.found.append(following)
                at = self.value(at, following, None, None)
            at = _blanks(text, at)
            if text[at] == "]":
                return at + 1
            at = _blanks(text, at + 1)
            index += 1
            while index > last and (run := _PLAIN_ITEMS.match(text, at)):
                at = run.end()
