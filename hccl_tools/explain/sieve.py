"""Find the lines of a block that can have a message: one pass over its text for all messages.

Most lines of a log differ in their numbers only. Without the digits and some letters of its numbers a line
is a *shape*. A shape is judged once: it has the anchors of some messages, or of none, and most lines of a log
are of shapes that are known to have none. The words of new shapes say which anchors they can have, so that
the time hardly depends on the number of messages.
"""

from __future__ import annotations

import re
from itertools import compress, count
from typing import TYPE_CHECKING

from hccl_tools.explain.knowledge.patterns import letters
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.explain.alike import Settled

    #: Sets of texts: a line has one text of each.
    _Needed = Sequence[Collection[bytes]]

_DIGITS = b"0123456789"
#: What a shape lacks: with two letters of hexadecimal numbers, addresses have few shapes, and words differ.
_LEFT_OUT = _DIGITS + b"abdf"
#: A progress bar ends its lines with a carriage return: what follows is a line of its own.
_LINES = bytes.maketrans(b"\r", b"\n")
#: All but letters become blanks.
_LETTERS = bytes(byte if chr(byte).isascii() and chr(byte).isalpha() else 0x20 for byte in range(256))
#: An anchor whose shape is shorter, or has no letters, is known by the other texts of its lines with so many.
_SHORTEST_SHAPE, _FEWEST_LETTERS = 3, 2
#: Bytes of remembered shapes; then they are forgotten, as in a log in which no two lines are alike.
_MOST_SHAPES = 4 << 20
#: Words that are remembered, with the parts that they have.
_MOST_WORDS = 1 << 16
#: If more than half of the shapes of a block are new, so many blocks are searched as they are.
_WHOLE_BLOCKS = 15
#: A block with fewer lines says nothing about the log.
_FEW_LINES = 100
#: The letters of codes such as EI0006, E19999, and the codes: their numbers are not part of a shape.
_CODE_LETTERS = re.compile(rb"E(?<![A-Za-z]E)[A-Z]?(?![A-Za-z])")
_CODE = re.compile(rb"E(?:[A-Z][0-9]{4}|[0-9]{5})(?![A-Za-z0-9])")


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
    """An anchor; ``word`` is the one that its lines have, as a whole or as a part of a longer one."""

    number: int
    text: bytes
    shape: bytes
    word: bytes
    is_whole: bool


#: A code that is the anchor of any message, or of none.
_ANY_CODE = _Anchor(-1, b"", b"", b"", is_whole=False)


class Sieve:
    """Finds lines with anchors."""

    def __init__(
        self,
        anchors: Sequence[bytes],
        before_codes: Iterable[bytes] = (),
        needed: Callable[[int], _Needed] = lambda _: (),
    ) -> None:
        """Prepare the search.

        Args:
            anchors: Texts, of which a message has one.
            before_codes: Words that a numeric code may follow.
            needed: Returns what the lines of an anchor have besides, by its index.
        """
        self._count = len(anchors)
        self._needed_of = needed
        self._needed: dict[int, tuple[_Needed, _Needed]] = {}
        self._codes: dict[bytes, list[int]] = {}
        self._by_word: dict[bytes, list[_Anchor]] = {}
        self._by_part: dict[bytes, list[_Anchor]] = {}
        self._wordless: list[_Anchor] = []
        self._in_text: list[_Anchor] = []
        for index, text in enumerate((*anchors, *before_codes)):
            if _CODE.fullmatch(text):
                self._codes.setdefault(text, []).append(index)
            else:
                self._add_anchor(_anchor(index, text))
        self._words = frozenset(self._by_word)
        self._known_words: set[bytes] = set()
        self._with_parts: dict[bytes, list[bytes]] = {}
        self._silent: set[bytes] = set()
        self._loud: dict[bytes, list[_Anchor]] = {}
        self._size = self._whole_blocks = 0

    def hits(self, data: bytes, settled: Settled | None = None) -> list[Hit]:
        """Return the lines of a block that have an anchor, in their order.

        Args:
            settled: The lines that are left out; lines that turn out to have no anchor are added.
        """
        if b"\r" in data:
            data = data.translate(_LINES)  # Else a line without a newline is looked for up to the next one.
        found: dict[int, list[_Anchor]] = {}
        for one in self._in_text:
            self._search(data, one, settled, found)
        plain = data.translate(None, _LEFT_OUT)
        shapes = plain.split(b"\n") if self._whole_blocks <= 0 else []
        other = set(shapes).difference(self._silent)
        new = other.difference(self._loud)
        if self._whole_blocks > 0 or (len(shapes) > _FEW_LINES and len(new) * 2 > len(shapes)):
            self._whole_blocks = (self._whole_blocks or _WHOLE_BLOCKS + 1) - 1
            for one in self._present(plain):
                self._search(data, one, settled, found)
        elif other:
            known = {shape: self._loud[shape] for shape in other - new}
            self._take(data, shapes, {**known, **self._judged(new)}, settled, found)
        made = (self._hit(data, start, found[start], settled) for start in sorted(found))
        return [hit for hit in made if hit is not None]

    @staticmethod
    def _search(data: bytes, one: _Anchor, settled: Settled | None, found: dict[int, list[_Anchor]]) -> None:
        """Add the lines of a block that have an anchor, by their beginnings."""
        for at in _places_of(_CODE, data) if one is _ANY_CODE else _places(data, one.text):
            start = begin_of_line(data, at)
            if settled is None or not settled.has(_line(data, start)):
                found.setdefault(start, []).append(one)

    @staticmethod
    def _take(
        data: bytes,
        shapes: Sequence[bytes],
        loud: Mapping[bytes, Sequence[_Anchor]],
        settled: Settled | None,
        found: dict[int, list[_Anchor]],
    ) -> None:
        """Add the lines of a block whose shapes have anchors, unless they are settled."""
        lines = data.split(b"\n")
        start, last = 0, 0
        for index in compress(count(), map(loud.__contains__, shapes)):
            if settled is None or not settled.has(lines[index]):
                start += sum(map(len, lines[last:index])) + index - last
                last = index
                found.setdefault(start, []).extend(loud[shapes[index]])

    def _hit(
        self, data: bytes, start: int, possible: Sequence[_Anchor], settled: Settled | None
    ) -> Hit | None:
        """Return a line with those of the possible anchors that it has; None if it has none."""
        line = _line(data, start)
        anchors, first = set[int](), len(line)
        for one in possible:
            if one is _ANY_CODE:
                for code in _CODE.finditer(line):
                    first = min(first, code.start())
                    anchors.update(self._codes.get(code[0], ()))
            elif (at := line.find(one.text)) >= 0 and _has(line, self._needs(one.number)[0]):
                first = min(first, at)
                if one.number < self._count:
                    anchors.add(one.number)
        if first < len(line):
            return Hit(start, start + first, anchors)
        if settled is not None:
            settled.add(line, is_of_log=False)
        return None

    def _judged(self, shapes: Collection[bytes]) -> dict[bytes, list[_Anchor]]:
        """Return the new shapes that can have anchors; remember these, and those that have none."""
        loud: dict[bytes, list[_Anchor]] = {}
        if not shapes:
            return loud
        text = b"\n".join(shapes)
        for one in self._present(text):
            for at in _places_of(_CODE_LETTERS, text) if one is _ANY_CODE else _places(text, one.shape):
                shape = text[begin_of_line(text, at) : end_of_line(text, at, len(text))]
                if _has(shape, self._needs(one.number)[1]):
                    loud.setdefault(shape, []).append(one)
        self._size += len(text)
        if self._size > _MOST_SHAPES:
            self._silent.clear()
            self._loud.clear()
            self._size = len(text)
        self._silent.update(shapes)
        self._silent.difference_update(loud)
        self._loud.update(loud)
        return loud

    def _present(self, text: bytes) -> list[_Anchor]:
        """Return the anchors that a text of shapes can have."""
        words = set(text.translate(_LETTERS).split())
        possible = [*self._wordless, *(one for word in self._words & words for one in self._by_word[word])]
        possible += [one for part in self._parts_of(words) for one in self._by_part[part]]
        present = {one.number: one for one in possible if one.shape in text}
        codes = [_ANY_CODE] if _CODE_LETTERS.search(text) else []
        return [*present.values(), *codes]

    def _parts_of(self, words: set[bytes]) -> set[bytes]:
        """Return the parts of words that anchors have; each word is searched for them once."""
        if len(self._known_words) > _MOST_WORDS:
            self._known_words.clear()
            self._with_parts.clear()
        new = words - self._known_words
        joined = b" ".join(new)
        for part in self._by_part:
            if part in joined:
                for word in new:
                    if part in word:
                        self._with_parts.setdefault(word, []).append(part)
        self._known_words |= new
        return {part for word in self._with_parts.keys() & words for part in self._with_parts[word]}

    def _needs(self, number: int) -> tuple[_Needed, _Needed]:
        """Return what the lines of an anchor have besides, and what their shapes have."""
        found = self._needed.get(number)
        if found is None:
            of_line = self._needed_of(number) if 0 <= number < self._count else ()
            shapes = [[text.translate(None, _LEFT_OUT) for text in texts] for texts in of_line]
            found = self._needed[number] = of_line, [texts for texts in shapes if all(texts)]
        return found

    def _add_anchor(self, one: _Anchor) -> None:
        """Add an anchor by its word; if it has little but digits, by those of other texts of its lines."""
        if one.word and (one.shape == one.text or len(one.shape) >= _SHORTEST_SHAPE):
            known = self._by_word if one.is_whole else self._by_part
            known.setdefault(one.word, []).append(one)
            return
        if one.shape == one.text:
            self._wordless.append(one)
            return
        texts = max(self._needs(one.number)[1], key=letters, default=[b""])
        if letters(texts) < _FEWEST_LETTERS:
            self._in_text.append(one)
            return
        for text in texts:
            word = max(text.translate(_LETTERS).split(), key=len)
            self._by_part.setdefault(word, []).append(one)


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


def _line(data: bytes, start: int) -> bytes:
    return data[start : end_of_line(data, start, len(data))]


def _has(line: bytes, needed: _Needed) -> bool:
    return all(any(text in line for text in texts) for texts in needed)


def _anchor(index: int, text: bytes) -> _Anchor:
    """Return an anchor with its longest word, if possible one that no line has as a part of a longer word."""
    shape = text.translate(None, _LEFT_OUT)
    inner = [found[0] for found in re.finditer(rb"(?<=[^A-Za-z])[A-Za-z]+(?=[^A-Za-z])", shape)]
    if inner:
        return _Anchor(index, text, shape, max(inner, key=len), is_whole=True)
    parts = shape.translate(_LETTERS).split()
    return _Anchor(index, text, shape, max(parts, key=len, default=b""), is_whole=False)


def _places(data: bytes, word: bytes) -> Iterator[int]:
    """Yield a place of a word in each line that has it."""
    at = data.find(word)
    while at >= 0:
        yield at
        end = end_of_line(data, at, len(data))
        at = data.find(word, end) if end < len(data) else -1


def _places_of(pattern: re.Pattern[bytes], data: bytes) -> Iterator[int]:
    """Yield a place of a pattern in each line that has it: a line may have thousands of codes."""
    found = pattern.search(data)
    while found is not None:
        yield found.start()
        end = end_of_line(data, found.start(), len(data))
        found = pattern.search(data, end) if end < len(data) else None
