"""Check that a pattern cannot take exponential time."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

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
