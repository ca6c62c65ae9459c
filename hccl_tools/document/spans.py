"""Where the values of a JSON text stand: many places in one pass.

The C scanner of ``json`` steps over whatever is not wanted, so that a place at the end of a table of 65,536
ranks costs little more than parsing it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    #: Returns the value that begins at an index of a text, and where it ends.
    _Step = Callable[[str, int], tuple[Any, int]]

#: Keys of a path that are followed; a deeper one leads to its ancestor there. Two calls a level stay below
#: Python's limit of 1000, and no rank table is deeper than 8.
_DEPTH_LIMIT = 100
_BLANKS = re.compile(r"[ \t\n\r]*")
_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
#: Items of a list that hold no others, with their commas: where none is wanted, they are passed in one step.
_PLAIN_ITEMS = re.compile(
    r'(?:(?:\{[ \t\n\r]*\}|\[[ \t\n\r]*\]|[-+.\w]+|"[^"\\]*")[ \t\n\r]*,[ \t\n\r]*){1,1000}'
)
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_TEXT_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]')
_DEEPER = {"{": 1, "[": 1, "}": -1, "]": -1}


class Span(NamedTuple):
    """From ``start`` up to ``end`` stands a value, from ``key_start`` up to ``key_end`` its key with quotes.

    The key's are ``None`` for the items of a list, for the whole document, and where a path leads to no value
    (its nearest ancestor stands in).
    """

    start: int
    end: int
    key_start: int | None = None
    key_end: int | None = None


class _Wanted(dict[Any, "_Wanted"]):
    """The wanted places below one value; ``span`` is its own, ``asked`` says whether that is wanted, too."""

    def __init__(self) -> None:
        super().__init__()
        self.span: Span | None = None
        self.asked = False
        self.found: list[_Wanted] = []

    def forget(self) -> None:
        """Drop what was found: the key came again, and the last one counts."""
        self.span = None
        for inner in self.found:
            inner.forget()
        self.found.clear()


class _AllFound(Exception):  # noqa: N818  (it is good news)
    """The place of every path is known."""


def find_spans(text: str, paths: Iterable[tuple[str | int, ...]], *, unique: bool = False) -> list[Span]:
    """Return the span of each path, in characters.

    Args:
        text: Holds a valid JSON value; what follows the value does not matter.
        paths: Object keys and list indices, outermost first, in any order.
        unique: No object has a key twice, so that nothing behind the last place has to be looked at.
    """
    wanted = [path[:_DEPTH_LIMIT] for path in paths]
    # Numbers are only stepped over: no limit on their digits may stop that.
    step = json.JSONDecoder(parse_int=str, parse_float=str).scan_once  # type: ignore[attr-defined]
    try:
        root = _scanned(text, wanted, step, unique=unique)
    except RecursionError:  # the text is nested deeper than Python's scanner goes
        deep = lambda text, at: _step_over_brackets(text, at) or step(text, at)  # noqa: E731
        root = _scanned(text, wanted, deep, unique=unique)
    return [_nearest(root, path) for path in wanted]


def _scanned(text: str, wanted: Iterable[tuple[str | int, ...]], step: _Step, *, unique: bool) -> _Wanted:
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
        _Scan(text, step, missing if unique else -1).value(_blanks(text, 0), root, None, None)
    return root


def _step_over_brackets(text: str, at: int) -> tuple[None, int] | None:
    """Return where an object or list ends, found by counting brackets; ``None`` at any other value."""
    if text[at] not in "{[":
        return None
    depth = 0
    for found in _TEXT_OR_BRACKET.finditer(text, at):
        depth += _DEEPER.get(found[0], 0)
        if depth == 0:
            return None, found.end()
    raise ValueError("the text is not valid JSON")


def _nearest(root: _Wanted, path: tuple[str | int, ...]) -> Span:
    """Return the span of a path, or where it leads nowhere that of its nearest ancestor."""
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
    """One pass over a text that is known to be valid."""

    def __init__(self, text: str, step: _Step, missing: int) -> None:
        self._text = text
        self._step = step
        #: How many places are not found yet; negative where the whole text is to be looked at.
        self._missing = missing

    def value(self, at: int, node: _Wanted, key_start: int | None, key_end: int | None) -> int:
        """Note the span of the value at ``at`` and of what is wanted inside; return where it ends."""
        char = self._text[at]
        if not node or char not in "{[":
            end: int = self._step(self._text, at)[1]
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
