"""Lists of numbers with ranges, as the Linux kernel writes them: ``0-3,8``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The most numbers of a list: more than there are ranks in any job.
MOST = 1 << 20
#: More hosts than any cluster with HCCL has; a longer list is a mistake, such as ``[1-99999999]``.
MOST_HOSTS = 16384
_SPAN = r"(?a)([0-9]{1,9})(?:-([0-9]{1,9}))?"


def span(item: str) -> tuple[int, int] | None:
    """Return the first and last number of an item, ``8`` or ``0-3``; ``None`` for any other text.

    The first number may be the higher one.
    """
    found = re.fullmatch(_SPAN, item)
    return None if found is None else (int(found[1]), int(found[2] or found[1]))


class TooManyNumbersError(ValueError):
    """A list has more numbers than it may have."""


def parse(text: str, most: int = MOST) -> list[int]:
    """Return the numbers of a list in its order; an empty list has none.

    Raises:
        ValueError: An item is not a number or a range.
        TooManyNumbersError: The list has more than ``most`` numbers.

    >>> parse("0-2,8")
    [0, 1, 2, 8]
    """
    numbers: list[int] = []
    for item in filter(None, text.split(",")):
        found = span(item)
        if found is None:
            raise ValueError(f'"{item}" is not a number or a range')
        added = range(found[0], found[1] + 1)
        if len(numbers) + len(added) > most:
            raise TooManyNumbersError(f"more than {most:,} numbers")
        numbers += added
    return numbers


def distinct(text: str, last: int) -> set[int]:
    """Return the numbers of a list that are at most ``last``; other texts in it are skipped.

    The list may come from another user or host: each number is made once, even if the list repeats it.

    >>> sorted(distinct("8-9,x,0-2,1-3", 8))
    [0, 1, 2, 3, 8]
    """
    found: set[int] = set()
    end = 0
    for low, high in sorted(filter(None, map(span, text.split(",")))):
        found.update(range(max(low, end), min(high, last) + 1))
        end = max(end, high + 1)
    return found


def fold(numbers: Iterable[int], separator: str = ",") -> str:
    """Return numbers in their order, consecutive numbers as ranges.

    >>> fold([0, 1, 2, 3, 8, 9]), fold([7, 6, 5])
    ('0-3,8-9', '7,6,5')
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return separator.join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def rank_ranges(ranks: Iterable[int], most: int = 12) -> str:
    """Return ranks as text with ranges, at most so many of these: ``rank 3`` or ``ranks 0-1,3-63``.

    >>> rank_ranges([3, 0, 1]), rank_ranges([0, 2, 4, 5, 6], 2)
    ('ranks 0-1,3', 'ranks 0,2 and 3 more')
    """
    known = sorted(ranks)
    spans = fold(known).split(",")
    more = len(known) - len(parse(",".join(spans[:most]))) if len(spans) > most else 0
    listed = ",".join(spans[:most]) + (f" and {more:,} more" if more else "")
    return f"rank{'' if len(known) == 1 else 's'} {listed}"


def rank_list(ranks: Iterable[int]) -> str:
    """Return ranks as text: ``rank 3`` or ``ranks 0-2, 5``.

    >>> rank_list([5, 0, 1, 2])
    'ranks 0-2, 5'
    """
    words = fold(sorted(ranks), ", ")
    return f"rank {words}" if words.isdigit() else f"ranks {words}"


def holes_in(numbers: Sequence[int | None], most: int = 3) -> list[tuple[int, range]]:
    """Return the index after each hole, and the numbers that are missing there.

    There is none if the numbers do not go up from 0, or have more than ``most`` holes.

    >>> holes_in([0, 1, 4])
    [(2, range(2, 4))]
    """
    found: list[tuple[int, range]] = []
    last = -1
    for row, number in enumerate(numbers):
        if number is None or number <= last:
            return []
        if number > last + 1:
            found.append((row, range(last + 1, number)))
            if row == 0 or len(found) > most:
                return []
        last = number
    return found
