"""A log of a program that may write without end: its beginning and its end are kept."""

from __future__ import annotations

import os
from contextlib import suppress

#: Bytes at the beginning that are kept, and at least so many at the end.
FIRST, LAST = 1 << 20, 1 << 18


class BoundedLog:
    """A file that is empty, or is emptied; ``descriptor`` appends to it, and is closed with it."""

    def __init__(self, descriptor: int, first: int = FIRST, last: int = LAST) -> None:
        self._descriptor, self._first, self._last = descriptor, first, last
        self._head = 0
        #: What follows the beginning, as far as it is kept; and the number of bytes that were left out.
        self._end = bytearray()
        self._left_out = 0
        with suppress(OSError):
            os.ftruncate(descriptor, 0)

    def write(self, data: bytes) -> None:
        """Append data; what the disk does not take is lost."""
        with suppress(OSError):
            first = data[: self._first - self._head]
            append(self._descriptor, first)
            self._head += len(first)
            rest = data[len(first) :]
            self._end += rest
            if len(self._end) <= 2 * self._last:
                append(self._descriptor, rest)
            else:
                self._shorten()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _shorten(self) -> None:
        """Write the end again, without its first half."""
        surplus = len(self._end) - self._last
        # Whole lines are kept, unless the line is a long one.
        line = self._end.find(b"\n", surplus, surplus + self._last // 2) + 1
        del self._end[: line or surplus]
        self._left_out += line or surplus
        os.ftruncate(self._descriptor, self._head)
        append(self._descriptor, b"\n... %d bytes are left out here ...\n" % self._left_out + self._end)


def append(descriptor: int, data: bytes | bytearray) -> None:
    """Write all data to a file.

    Raises:
        OSError: The disk is full, for example.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
