"""The numbers of a table as differences, which zlib packs to a tenth.

Ranks and addresses count upwards, so a rank table has no two equal lines, and zlib alone cannot do much. Here
each number is replaced by its difference from the last number at the same place: after the same text, and for
a part of an address, after the same text before the address. The rest is not changed.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(rb"([^0-9]*)([0-9]+)")
#: Longer numbers, and numbers that begin with 0, are kept; a 0 before them says so.
_MOST_DIGITS = 15
#: Bytes of the text before a number that tell its place.
_LONGEST_PLACE = 48


class _Numbers:
    """The last number at each place."""

    def __init__(self) -> None:
        self._place, self._last = b"", dict[bytes, int]()

    def at(self, before: bytes) -> int:
        """Go to the next number, which has ``before`` before it; return the last one at its place."""
        self._place = (before if len(before) > 1 else self._place + before)[-_LONGEST_PLACE:]
        return self._last.get(self._place, 0)

    def keep(self, number: int) -> None:
        """Keep the number at this place."""
        self._last[self._place] = number


def encoded(data: bytes) -> bytes:
    """Return data with each number as the difference from the last one at its place."""
    numbers = _Numbers()

    def difference(found: re.Match[bytes]) -> bytes:
        before, digits = found.groups()
        last = numbers.at(before)
        if len(digits) > _MOST_DIGITS or (digits.startswith(b"0") and digits != b"0"):
            return before + b"0" + digits
        numbers.keep(number := int(digits))
        change = number - last
        return b"%b%d" % (before, 2 * change if change >= 0 else -2 * change - 1)

    return _NUMBER.sub(difference, data)


def decoded(data: bytes) -> bytes:
    """Return the data of which ``encoded`` has made this.

    Raises:
        ValueError: It has a number that ``encoded`` does not write.
    """
    numbers = _Numbers()

    def number(found: re.Match[bytes]) -> bytes:
        before, digits = found.groups()
        last = numbers.at(before)
        if digits.startswith(b"0") and digits != b"0":
            return before + digits[1:]
        change = int(digits[: _MOST_DIGITS + 2])
        value = last + (change // 2 if change % 2 == 0 else -(change + 1) // 2)
        if not 0 <= value < 10**_MOST_DIGITS:
            raise ValueError(digits)
        numbers.keep(value)
        return b"%b%d" % (before, value)

    return _NUMBER.sub(number, data)
