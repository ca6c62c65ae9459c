"""What can be said of a pattern without a search: that it is fast, what its lines have, what numbers change."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The parser of regular expressions; it has another name in Python 3.10.
_PACKAGE = "re._" if sys.version_info >= (3, 11) else "sre_"
constants: Any = import_module(f"{_PACKAGE}constants")
parser: Any = import_module(f"{_PACKAGE}{'parser' if sys.version_info >= (3, 11) else 'parse'}")

#: Repetitions without an upper limit that a pattern may have side by side: each multiplies its time.
MOST_REPETITIONS = 20
MOST_OF_USERS = 6
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
#: A repetition up to this number counts as none.
_SMALL = 400
_ZERO, _NINE = b"09"
#: What compares a text with one before it.
_COMPARES = (constants.GROUPREF, constants.GROUPREF_EXISTS, constants.GROUPREF_IGNORE)
#: Bytes of a text that is worth a search.
_SHORTEST_TEXT = 2


def problem(pattern: bytes, *, most_repetitions: int = MOST_REPETITIONS) -> str:
    """Return why a pattern is refused, "" if it is not: wrong, or a repetition inside a repetition."""
    try:
        re.compile(pattern)
        parsed = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is no regular expression: {error}"
    if _is_nested(parsed, is_inside=False):
        return "it repeats a repetition, such as (a+)+, which can take forever"
    if _count(parsed) > most_repetitions:
        return f"it has more than {most_repetitions} repetitions without a limit"
    return ""


def needed(pattern: bytes) -> list[frozenset[bytes]]:
    """Return sets of texts without digits: a line that the pattern matches has at least one text of each."""
    parsed = parser.parse(pattern)
    return [] if parsed.state.flags & re.IGNORECASE else _needed(parsed)


def _needed(parsed: Any) -> list[frozenset[bytes]]:
    found, run = list[frozenset[bytes]](), bytearray()
    for operation, argument in (*parsed, (None, None)):
        if operation is constants.LITERAL and not _ZERO <= argument <= _NINE:
            run.append(argument)
            continue
        if len(run) >= _SHORTEST_TEXT:
            found.append(frozenset({bytes(run)}))
        run.clear()
        if operation is constants.BRANCH:
            branches = [_needed(body) for body in argument[1]]
            if all(branches):
                found.append(frozenset().union(*(max(sets, key=letters) for sets in branches)))
        elif operation is constants.SUBPATTERN and not argument[1] & re.IGNORECASE:
            found += _needed(argument[-1])
        elif operation is constants.ASSERT or (operation in _REPEATS and argument[0] > 0):
            found += _needed(_bodies(operation, argument)[0])
    return found


def letters(texts: Iterable[bytes]) -> int:
    """Return the number of letters of the text that has the fewest: with more, fewer lines have one."""
    return min(sum(map(str.isalpha, text.decode("latin-1"))) for text in texts)


def is_blind_to_digits(pattern: bytes) -> bool:
    """Return whether a pattern takes one digit for another: it matches 1, 2 and 3 or none of them."""
    return _is_blind(parser.parse(pattern))


def _is_blind(parsed: Any) -> bool:
    for operation, argument in parsed:
        if operation in _COMPARES:
            return False
        if operation in {constants.LITERAL, constants.NOT_LITERAL} and _ZERO <= argument <= _NINE:
            return False
        if operation is constants.RANGE:
            low, high = max(argument[0], _ZERO), min(argument[1], _NINE)
            if low <= high and (low, high) != (_ZERO, _NINE):
                return False
        bodies = [argument] if operation is constants.IN else _bodies(operation, argument)
        if not all(map(_is_blind, bodies)):
            return False
    return True


def _bodies(operation: Any, argument: Any) -> list[Any]:
    """Return the patterns inside one part of a pattern."""
    if operation in _REPEATS:
        return [argument[2]]
    if operation is constants.SUBPATTERN:
        return [argument[-1]]
    if operation is constants.BRANCH:
        return list(argument[1])
    if operation in {constants.ASSERT, constants.ASSERT_NOT}:
        return [argument[1]]
    # Conditions, atomic groups and possessive repetitions: the parts that are patterns.
    found = argument if isinstance(argument, tuple) else (argument,)
    return [part for part in found if isinstance(part, parser.SubPattern)]


def _is_nested(parsed: Any, *, is_inside: bool) -> bool:
    for operation, argument in parsed:
        is_long = operation in _REPEATS and argument[1] > _SMALL
        if is_long and is_inside:
            return True
        deeper = is_inside or (operation in _REPEATS and argument[1] > 1)
        if any(_is_nested(body, is_inside=deeper) for body in _bodies(operation, argument)):
            return True
    return False


def _count(parsed: Any) -> int:
    return sum(
        (operation in _REPEATS and argument[1] > _SMALL) + sum(map(_count, _bodies(operation, argument)))
        for operation, argument in parsed
    )
