"""Lines on which a regular expression takes long: repeated parts of it that nearly match.

The time of a search depends on how often it can begin, and on how many ways each beginning can go on. A line
is made of the beginnings of matches, repeated, and followed by repeated parts of the pattern.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from hccl_tools.explain.knowledge.patterns import constants, parser

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPEATS = {
    constants.MAX_REPEAT,
    constants.MIN_REPEAT,
    getattr(constants, "POSSESSIVE_REPEAT", constants.MAX_REPEAT),
}
_BY_CATEGORY = {
    constants.CATEGORY_DIGIT: "7",
    constants.CATEGORY_WORD: "w",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_SPACE: "n",
    constants.CATEGORY_NOT_DIGIT: "d",
    constants.CATEGORY_NOT_WORD: "-",
}
#: What a negated class may not exclude.
_OTHERS = "x7 ;Z"
#: Parts of one pattern that are combined.
_MOST_PARTS = 40


#: What ends a line that a pattern matches but for its end, and lets each of its repeats be tried again.
_NO_MATCH = b"\x01"


def lines(pattern: bytes | str, size: int, flags: int = 0) -> Iterator[bytes]:
    """Yield lines of ``size`` bytes on which a pattern may take long; a line of text is in UTF-8."""
    found = parts(pattern, flags)
    for first, second in product(found, found):
        yield _filled(first, size // 2) + _filled(second, size - size // 2)
    for first in found:
        yield _filled(first, size)
        yield _filled(first, size - 1) + _NO_MATCH


def parts(pattern: bytes | str, flags: int = 0) -> list[bytes]:
    """Return texts that parts of a pattern match: each element, and each beginning of the pattern."""
    found: dict[str, None] = {}
    for alternative in _alternatives(parser.parse(pattern, flags)):
        for end in range(len(alternative)):
            found["".join(alternative[: end + 1])] = None
            found[alternative[end]] = None
        for element in alternative:
            if len(element) > 1:
                found[element[:-1]] = None
    code = "latin-1" if isinstance(pattern, bytes) else "utf-8"
    return [text.encode(code, errors="replace") for text in found if text][:_MOST_PARTS]


def _filled(text: bytes, size: int) -> bytes:
    return (text * (size // len(text) + 1))[:size]


def _alternatives(parsed: Any) -> list[list[str]]:
    """Return the elements of a match, once for each branch and with and without optional parts."""
    made: list[list[str]] = [[]]
    for operation, argument in parsed:
        choices = _choices(operation, argument)
        made = [[*before, *choice] for before in made for choice in choices][:32]
    return [_joined(elements) for elements in made]


def _joined(elements: list[str]) -> list[str]:
    """Join the characters of words: they are repeated as a whole."""
    joined: list[str] = []
    is_word = False
    for element in elements:
        if is_word and len(element) == 1:
            joined[-1] += element
        else:
            joined.append(element)
        is_word = len(element) == 1
    return joined


def _choices(operation: Any, argument: Any) -> list[list[str]]:
    if operation is constants.LITERAL:
        return [[chr(argument)]]
    if operation in {constants.NOT_LITERAL, constants.ANY}:
        return [[next(one for one in _OTHERS if operation is constants.ANY or ord(one) != argument) * 2]]
    if operation is constants.IN:
        return [[_of_class(argument) * 2]]
    if operation in _REPEATS:
        least, _most, body = argument
        inner = _alternatives(body)
        return [[part * 2 for part in one] for one in inner] + ([[]] if not least else [])
    if operation is constants.SUBPATTERN:
        return _alternatives(argument[-1])
    if operation is constants.BRANCH:
        return [one for branch in argument[1] for one in _alternatives(branch)]
    return [[]]


def _of_class(items: Any) -> str:
    if items[0][0] is constants.NEGATE:
        excluded = {chr(value) for kind, value in items[1:] if kind is constants.LITERAL}
        return next(one for one in _OTHERS if one not in excluded)
    kind, value = items[0]
    if kind is constants.CATEGORY:
        return _BY_CATEGORY.get(value, "x")
    return chr(value[0] if kind is constants.RANGE else value)
