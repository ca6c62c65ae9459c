"""Find the lines of a block that can have a message: one pass over its text for all messages.

Most lines of a log differ in their numbers only. Without its digits a line is a *shape*; a shape without the
anchor of any message is remembered, and lines of this shape are not looked at again. The words of a new shape
say which anchors it can have, so that the time hardly depends on the number of messages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DIGITS = b"0123456789"
#: A progress bar ends its lines with a carriage return: what follows is a line of its own.
_LINES = bytes.maketrans(b"\r", b"\n")
#: All but letters become blanks.
_LETTERS = bytes(byte if chr(byte).isascii() and chr(byte).isalpha() else 0x20 for byte in range(256))
#: An anchor with digits that is shorter without them, or has no letters, is searched in the text itself.
_SHORTEST_SHAPE = 3
#: Bytes of remembered shapes; then they are forgotten, as in a log in which no two lines are alike.
_MOST_SHAPES = 4 << 20
#: Words that are remembered, with the parts that they have.
_MOST_WORDS = 1 << 16
#: New shapes of a block, times the anchors that it has, up to which its shapes are remembered: with more the
#: lines of the log are not alike.
_MOST_TESTS = 4_000
#: If more than half of the shapes of a block are new, so many blocks are searched as they are.
_WHOLE_BLOCKS = 15
#: A block with fewer lines says nothing about the log.
_FEW_LINES = 100
#: The letters of codes such as EI0006, E19999: their numbers are not part of a shape.
_CODE = re.compile(rb"E(?:[A-Z][0-9]{4}|[0-9]{5})(?![A-Za-z0-9])")
_CODE_LETTERS = frozenset(b"E%c" % letter for letter in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ") | {b"E"}


class Hit(NamedTuple):
    """A line that can have a message.

    Attributes:
        start: Where it begins in the block.
        at: Where its first anchor is.
        anchors: The indices of its anchors; empty if the line only has words that a code may follow.
    """

    start: int
    at: int
    anchors: set[int]


class _Anchor(NamedTuple):
    number: int
    text: bytes
    shape: bytes
    word: bytes
    is_whole: bool


class Sieve:
    """Finds lines with anchors; ``before_codes`` are words that a numeric code may follow."""

    def __init__(self, anchors: Sequence[bytes], before_codes: Iterable[bytes] = ()) -> None:
        self._count = len(anchors)
        self._codes: dict[bytes, list[int]] = {}
        for index, text in enumerate(anchors):
            if _CODE.fullmatch(text):
                self._codes.setdefault(text, []).append(index)
        every = [_anchor(index, text) for index, text in enumerate((*anchors, *before_codes))]
        every = [one for one in every if one.text not in self._codes]
        bare = [one for one in every if _is_number(one)]
        self._bare: dict[bytes, list[int]] = {}
        for one in bare:
            self._bare.setdefault(one.text, []).append(one.number)
        self._by_word: dict[bytes, list[_Anchor]] = {}
        self._by_part: dict[bytes, list[_Anchor]] = {}
        for one in every:
            if one.text not in self._bare:
                known = self._by_word if one.is_whole else self._by_part
                known.setdefault(one.word, []).append(one)
        self._words = frozenset(self._by_word)
        self._known: set[bytes] = set()
        self._with_parts: dict[bytes, list[bytes]] = {}
        self._silent: set[bytes] = set()
        self._silent_size = self._whole_blocks = 0

    def hits(self, data: bytes) -> list[Hit]:
        """Return the lines of a block that have an anchor, in their order."""
        found: dict[int, Hit] = {}
        for one in self._present(data):
            for at in _places(data, one.text):
                self._add(found, data, at, one.number)
        for text, numbers in self._bare.items():
            for at in _places(data, text):
                for number in numbers:
                    self._add(found, data, at, number)
        return [found[start] for start in sorted(found)]

    def _add(self, found: dict[int, Hit], data: bytes, at: int, number: int) -> None:
        start = begin_of_line(data, at)
        hit = found.get(start)
        if hit is None or at < hit.at:
            hit = found[start] = Hit(start, at, hit.anchors if hit else set())
        if number < self._count:
            hit.anchors.add(number)

    def _present(self, data: bytes) -> list[_Anchor]:
        """Return the anchors that lines of a block may have; remember the shapes that have none."""
        text, shapes = self._new_text(data)
        if not text:
            return []
        words = set(text.translate(_LETTERS).split())
        possible = [one for word in self._words & words for one in self._by_word[word]]
        possible += [one for part in self._parts_of(words) for one in self._by_part[part]]
        present = [one for one in possible if one.shape in text]
        has_code = not words.isdisjoint(_CODE_LETTERS)
        self._remember(shapes, [one.shape for one in present], has_code=has_code)
        if has_code:
            present += self._codes_in(data)
        return present

    def _parts_of(self, words: set[bytes]) -> set[bytes]:
        """Return the parts of words that anchors have; each word is searched for them once."""
        if len(self._known) > _MOST_WORDS:
            self._known.clear()
            self._with_parts.clear()
        new = words - self._known
        joined = b" ".join(new)
        for part in self._by_part:
            if part in joined:
                for word in new:
                    if part in word:
                        self._with_parts.setdefault(word, []).append(part)
        self._known |= new
        return {part for word in self._with_parts.keys() & words for part in self._with_parts[word]}

    def _new_text(self, data: bytes) -> tuple[bytes, set[bytes]]:
        """Return the shapes of a block that are not remembered, as a text and one by one.

        After a block in which few lines are alike, the next ones are not taken apart: the text is all of it.
        """
        plain = data.translate(_LINES, _DIGITS)
        if self._whole_blocks > 0:
            self._whole_blocks -= 1
            return plain, set()
        lines = plain.split(b"\n")
        shapes = set(lines) - self._silent
        if len(lines) > _FEW_LINES and len(shapes) * 2 > len(lines):
            self._whole_blocks = _WHOLE_BLOCKS
            return plain, set()
        return b"\n".join(shapes), shapes

    def _codes_in(self, data: bytes) -> list[_Anchor]:
        """Return the codes of a text as anchors: those of messages, and all others."""
        return [
            _Anchor(index, code, b"", b"", is_whole=False)
            for code in set(_CODE.findall(data))
            for index in self._codes.get(code, (self._count,))
        ]

    def _remember(self, shapes: set[bytes], present: Sequence[bytes], *, has_code: bool) -> None:
        if has_code:
            shapes = {
                shape for shape in shapes if _CODE_LETTERS.isdisjoint(shape.translate(_LETTERS).split())
            }
        if present:
            if len(shapes) * len(present) > _MOST_TESTS:
                return
            shapes = {shape for shape in shapes if not any(one in shape for one in present)}
        self._silent_size += sum(map(len, shapes))
        if self._silent_size > _MOST_SHAPES:
            self._silent.clear()
            self._silent_size = sum(map(len, shapes))
        self._silent |= shapes


def begin_of_line(data: bytes, at: int) -> int:
    """Return where the line of a place begins; a carriage return ends a line, too."""
    start = data.rfind(b"\n", 0, at) + 1
    return data.rfind(b"\r", start, at) + 1 or start


def end_of_line(data: bytes, start: int, longest: int) -> int:
    """Return where a line ends, at most ``longest`` bytes after a place in it."""
    last = min(len(data), start + longest)
    end = data.find(b"\n", start, last)
    end = last if end < 0 else end
    shorter = data.find(b"\r", start, end)
    return end if shorter < 0 else shorter


def _anchor(index: int, text: bytes) -> _Anchor:
    """Return an anchor with its longest word, if possible one that no line has as a part of a longer word."""
    shape = text.translate(None, _DIGITS)
    inner = [found[0] for found in re.finditer(rb"(?<=[^A-Za-z])[A-Za-z]+(?=[^A-Za-z])", shape)]
    if inner:
        return _Anchor(index, text, shape, max(inner, key=len), is_whole=True)
    parts = shape.translate(_LETTERS).split()
    return _Anchor(index, text, shape, max(parts, key=len, default=b""), is_whole=False)


def _is_number(anchor: _Anchor) -> bool:
    """Whether little but digits is in an anchor: many lines have the rest."""
    return anchor.shape != anchor.text and (not anchor.word or len(anchor.shape) < _SHORTEST_SHAPE)


def _places(data: bytes, word: bytes) -> Iterator[int]:
    """Yield a place of a word in each line that has it."""
    at = data.find(word)
    while at >= 0:
        yield at
        end = end_of_line(data, at, len(data))
        at = data.find(word, end) if end < len(data) else -1
