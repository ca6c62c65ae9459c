"""Find private keys in a text: PEM, OpenSSH, SSH2, PGP and PuTTY blocks, whole or cut.

The lines of a block may have the prefixes of a log, stand in a JSON text with escaped newlines, or be the
items of a JSON list. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The first and the last line of a block. Of the first line of a text, the beginning may be missing.
_MARK = re.compile(
    r"-{4,5} ?(?P<which>BEGIN|END) (?P<label>[A-Za-z0-9 ]{3,64})-{0,5}"
    r"|\A(?P<cut>[A-Z0-9 ]{0,64}KEY(?: BLOCK)?) ?-{4,5}"
    r"|(?P<openssh>)(?=b3BlbnNzaC1rZXkt)"
    r"|(?P<putty>Private-Lines: *\d{1,6})|Private-(?:MAC|Hash): *[0-9A-Fa-f]*"
)
#: Up to this length, everything between the first and the last line is the block; a longer one is cut off, or
#: the two lines belong to two blocks.
_LONGEST = 1 << 20
#: A newline, also escaped once or several times.
_NEWLINE = re.compile(r"\r?\n|(?<!\\)\\+(?:r\\+n|[nr])|\r")
_AROUND = " \t\"',[]\\"
_BODY = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\"
_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Comment|Version|Charset|MessageID|Hash|Subject|x-[\w-]{1,40}): ?"
)
#: So many letters in a row are key material, independent of what precedes them.
_WIDE = 32
#: The first line of a body is at least so wide; a shorter word after the mark is text.
_NARROW = 12
#: The most letters of a log before the words of a block.
_LONGEST_PREFIX = 512
#: Lines of other processes between two lines of a block whose last line is missing.
_MOST_FOREIGN = 20
_NUMBERS = re.compile(r"\d+")
_SAME_LINE = re.compile(r"[ \t\"',]*[A-Za-z0-9+/=]{16,}")


class _Line(NamedTuple):
    """A line of a text: its positions, and those of its last word without quotes."""

    start: int
    word: int
    end: int


class _Mark(NamedTuple):
    start: int
    end: int
    begins: bool


def find(text: str) -> list[tuple[int, int]]:
    """Return the positions of private keys in a text, in order."""
    marks = list(_marks(text))
    found: list[tuple[int, int]] = []
    done = 0
    for number, mark in enumerate(marks):
        if mark.end <= done:
            continue
        after = marks[number + 1] if number + 1 < len(marks) else None
        if mark.begins and after and not after.begins and after.start - mark.end <= _LONGEST:
            spans = [(mark.start, after.end)]
        elif mark.begins:
            spans = _cut_off(text, mark, after.start if after else len(text))
        else:
            spans = _without_beginning(text, done, mark)
        found += spans
        done = max(mark.end, spans[-1][1])
    return list(_joined(text, found))


def _marks(text: str) -> Iterator[_Mark]:
    for match in _MARK.finditer(text):
        label = (match["label"] or match["cut"] or "KEY").upper()
        if "KEY" in label and "PUBLIC" not in label:
            begins = match["which"] == "BEGIN" or match.lastgroup in {"cut", "openssh", "putty"}
            yield _Mark(match.start(), match.end(), begins)


def _cut_off(text: str, mark: _Mark, limit: int) -> list[tuple[int, int]]:
    """Return the parts of a block without a last line: up to what can no longer be key material."""
    end = mark.end
    while match := _SAME_LINE.match(text, end, limit):  # a key in one line
        end = match.end()
    floor = max(0, mark.start - _LONGEST_PREFIX)
    head = max(floor, text.rfind("\n", floor, mark.start) + 1)
    return [(mark.start, end), *_material(text, _lines(text, end, limit), _prefix(text[head : mark.start]))]


def _without_beginning(text: str, floor: int, mark: _Mark) -> list[tuple[int, int]]:
    """Return the parts of a block whose first line is missing, from the last line upwards."""
    lines = list(_lines(text, floor, mark.start))
    last = lines.pop() if lines else _Line(floor, floor, floor)
    prefix = _prefix(text[max(last.start, mark.start - _LONGEST_PREFIX) : mark.start])
    above = reversed(lines)
    short = next(above, None)  # the last line of the body, or the checksum
    first = [(short.word, short.end)] if short and _is_bare(text, short, prefix) else []
    rest = above if first else chain([short] if short else [], above)
    return [*sorted([*first, *_material(text, rest, prefix)]), (mark.start, mark.end)]


def _lines(text: str, start: int, limit: int) -> Iterator[_Line]:
    """Yield the lines of a part of a text."""
    for match in chain(_NEWLINE.finditer(text, start, limit), [None]):
        end = match.start() if match else limit
        line = text[start:end]
        bare = line.rstrip(_AROUND)
        yield _Line(start, start + len(bare.rstrip(_BODY)), start + len(bare))
        start = match.end() if match else limit


def _material(text: str, lines: Iterable[_Line], prefix: str) -> list[tuple[int, int]]:
    """Return the positions of key material in lines, up to the first line without any."""
    found: list[tuple[int, int]] = []
    width = foreign = 0
    is_over = False
    for line in lines:
        size = line.end - line.word
        is_checksum = 0 < size < _NARROW and text[line.word] == "="
        is_bare = _is_bare(text, line, prefix) and (not is_over or is_checksum)
        if is_bare or size >= _WIDE or (size == width and size >= _NARROW):
            found.append((line.word, line.end))
            # A shorter line is the last one of a body.
            is_over = is_over or size < width
            width, foreign = width or size, 0
        elif line.end > line.start and not _HEADER.search(text, line.start, min(line.end, line.start + 256)):
            foreign += 1
            if foreign > _MOST_FOREIGN:
                break
    return found


def _is_bare(text: str, line: _Line, prefix: str) -> bool:
    """Return whether a line is one word after the prefix that the mark has."""
    before = _prefix(text[line.start : min(line.word, line.start + _LONGEST_PREFIX)])
    return line.word < line.end and before in {"", prefix}


def _prefix(text: str) -> str:
    """Return what precedes the words of a block in each line, without numbers that count."""
    return _NUMBERS.sub("0", text).strip(_AROUND)


def _joined(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join parts with only newlines and quotes between them."""
    at = -1
    start = 0
    for begin, end in spans:
        if at < 0:
            start = begin
        elif _NEWLINE.sub("", text[at:begin]).strip(_AROUND + "\n"):
            yield start, at
            start = begin
        at = max(at, end)
    if at >= 0:
        yield start, at
