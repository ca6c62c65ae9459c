"""Lines that are alike: which need not be judged again, and how many events of one kind are kept.

The lines of a storm of messages differ in their numbers only, and thousands of them say the same. With every
digit as 0, as well as those of long addresses in hexadecimal, they have one *shape*. A pattern that takes one
digit for another matches all lines of a shape or none. So a line is *settled* if one of its shape was judged,
and the numbers are equal that decide which event it is: of codes, the rank, the process and the peer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.explain.events import Event

#: Events of one message that are kept per process; all others say the same.
MOST_ALIKE = 20
_MOST_EVENTS = 20_000
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_NUMBER = re.compile(rb"[0-9]+")
#: An address; a shorter number may be one of an event or of an error.
_ADDRESS = re.compile(rb"0x[0-9a-f]{9,16}(?![0-9A-Za-z])")
#: A longer line is never settled.
LONGEST = 2048
#: Bytes of remembered shapes; then they are forgotten.
_MOST_SHAPES = 4 << 20


def shape_of(line: bytes) -> bytes:
    """Return a line with every digit as 0, of the same length."""
    if b"0x" in line:
        line = _ADDRESS.sub(_zeros, line)
    return line.translate(_ZEROS)


def _zeros(address: re.Match[bytes]) -> bytes:
    return b"0x" + b"0" * (len(address[0]) - 2)


class Kept:
    """The events of one log; of many alike only the first are kept."""

    def __init__(self, most_alike: int = MOST_ALIKE) -> None:
        self._most_alike = most_alike
        self.kept: list[Event] = []
        self._alike: dict[tuple[str, ...], int] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add events in the order of their lines."""
        for event in events:
            if not self.is_full(event):
                key = _key(event)
                self._alike[key] = self._alike.get(key, 0) + 1
                self.kept.append(event)

    def is_full(self, event: Event) -> bool:
        """Return whether an event like this one is not kept any more."""
        return len(self.kept) >= _MOST_EVENTS or self._alike.get(_key(event), 0) >= self._most_alike


def _key(event: Event) -> tuple[str, ...]:
    rank = "" if event.rank is None else str(event.rank)
    return event.message.id, event.pid, rank, event.fields.get("peer", "")


class _Judged(NamedTuple):
    """The places of the numbers that decide, and the numbers of the lines that were judged."""

    places: tuple[tuple[int, int], ...]
    numbers: set[tuple[bytes, ...]]


class Settled:
    """Remembers lines that were judged.

    Attributes:
        codes: Finds codes in a shape: its groups are their digits.
        numbered: The anchors with digits: a line that has one but for its digits is never settled.
    """

    def __init__(self, codes: re.Pattern[bytes], numbered: Iterable[bytes]) -> None:
        self._codes = codes
        self._numbered = [text.translate(_ZEROS) for text in numbered]
        self._in_all_logs: dict[bytes, _Judged] = {}
        self._in_log: dict[bytes, _Judged] = {}
        self._size = 0

    def begin_log(self) -> None:
        """Forget what is true of one log only."""
        self._in_log.clear()

    def has(self, line: bytes) -> bool:
        """Return whether a line like this one was judged."""
        if len(line) > LONGEST:
            return False
        shape = shape_of(line)
        for known in (self._in_all_logs, self._in_log):
            found = known.get(shape)
            if found is not None and tuple([line[begin:end] for begin, end in found.places]) in found.numbers:
                return True
        return False

    def add(self, line: bytes, event: Event | None = None, *, is_of_log: bool) -> None:
        """Remember a line that has no event, or an event of which there are enough.

        Args:
            is_of_log: Whether this is true of the log only that is read.
        """
        digits = line.translate(_ZEROS)
        if len(line) > LONGEST or any(text in digits for text in self._numbered):
            return
        shape = shape_of(line)
        values = _NUMBER.findall(" ".join(_key(event)[1:]).encode()) if event is not None else []
        wanted = {value.lstrip(b"0") or b"0" for value in values}
        places = {
            found.span(group)
            for found in self._codes.finditer(shape)
            for group in range(1, self._codes.groups + 1)
            if found.start(group) >= 0
        }
        for number in _NUMBER.finditer(line) if wanted else ():
            if any(value in number[0] for value in wanted):
                places.add(number.span())
        judged = _Judged(tuple(sorted(places)), set())
        known = self._in_log if is_of_log else self._in_all_logs
        self._size += len(shape)
        if self._size > _MOST_SHAPES:
            self._in_all_logs.clear()
            self._in_log.clear()
            self._size = len(shape)
        if shape not in known or len(known[shape].places) > len(places):
            known[shape] = judged
        if known[shape].places == judged.places:
            known[shape].numbers.add(tuple(line[begin:end] for begin, end in judged.places))
