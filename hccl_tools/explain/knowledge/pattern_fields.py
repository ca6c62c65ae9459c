"""Which fields every line with a message has, and which of them are numbers, by the pattern of the message."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from hccl_tools.explain.knowledge.patterns import constants, parser
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Python refuses to convert longer numbers.
_MOST_DIGITS = 4000
_NUMERIC = frozenset(map(ord, "-0123456789"))
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, getattr(constants, "POSSESSIVE_REPEAT", None))


class PatternFields(NamedTuple):
    """The fields of a pattern.

    Attributes:
        required: The names of the fields that no match lacks.
        numbers: The fields whose text can be a number only, with the greatest length that it can have.
    """

    required: frozenset[str]
    numbers: dict[str, int]


@cache
def pattern_fields(pattern: bytes) -> PatternFields:
    """Return the fields of a pattern."""
    parsed = parser.parse(pattern)
    names = {number: name for name, number in parsed.state.groupdict.items()}
    bodies = dict(_groups(parsed))
    return PatternFields(
        frozenset(names[number] for number in _always(parsed) if number in names),
        {
            name: min(bodies[number].getwidth()[1], _MOST_DIGITS)
            for number, name in names.items()
            if _is_numeric(bodies[number])
        },
    )


def is_number(text: str, longest: int) -> bool:
    """Return whether a text is a whole number of up to so many characters, which ``int`` accepts."""
    digits = text.removeprefix("-")
    return len(text) <= longest and digits.isascii() and digits.isdecimal()


def _bodies(operation: Any, argument: Any) -> Iterator[Any]:
    """Yield the patterns inside one part of a pattern."""
    for one in argument if isinstance(argument, tuple) else (argument,):
        if isinstance(one, parser.SubPattern):
            yield one
        elif operation is constants.BRANCH and isinstance(one, list):
            yield from one


def _groups(parsed: Any) -> Iterator[tuple[int, Any]]:
    for operation, argument in parsed:
        if operation is constants.SUBPATTERN and argument[0] is not None:
            yield argument[0], argument[-1]
        for body in _bodies(operation, argument):
            yield from _groups(body)


def _always(parsed: Any) -> set[int]:
    """Return the groups that have a text in every match."""
    found: set[int] = set()
    for operation, argument in parsed:
        inside = [_always(body) for body in _bodies(operation, argument)]
        if not inside or operation is constants.ASSERT_NOT or operation is constants.GROUPREF_EXISTS:
            continue
        if operation in _REPEATS and argument[0] == 0:
            continue
        found |= set.intersection(*inside)
        if operation is constants.SUBPATTERN and argument[0] is not None and argument[-1].getwidth()[0]:
            found.add(argument[0])
    return found


def _is_numeric(parsed: Any) -> bool:
    """Return whether a pattern matches only digits and a sign."""
    for operation, argument in parsed:
        if operation is constants.LITERAL:
            if argument not in _NUMERIC:
                return False
        elif operation is constants.IN:
            if not all(_is_digit(*one) for one in argument):
                return False
        elif operation not in _REPEATS or not _is_numeric(argument[2]):
            return False
    return True


def _is_digit(operation: Any, argument: Any) -> bool:
    if operation is constants.RANGE:
        return bool(ord("0") <= argument[0] <= argument[1] <= ord("9"))
    if operation is constants.LITERAL:
        return argument in _NUMERIC
    return operation is constants.CATEGORY and argument is constants.CATEGORY_DIGIT
