"""The devices of a server that are joined by one kind of link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.table.links import SELF, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator


class Bus(NamedTuple):
    """Devices of a server that are joined by one kind of link, by their places in the server."""

    kind: str
    places: list[int]


def buses(words: list[list[str]]) -> Iterator[Bus]:
    """Yield the sets of devices joined by each kind of link, the smallest first.

    A set in which the link of a pair is unknown is left out: the picture would claim it.
    """
    kinds = {word for line in words for word in line} - {SELF, UNKNOWN}
    found = []
    for kind in kinds:
        left = set(range(len(words)))
        while left:
            start = left.pop()
            places, open_ = {start}, [start]
            while open_:
                line = words[open_.pop()]
                new = {place for place in left if line[place] == kind}
                left -= new
                places |= new
                open_ += new
            known = all(words[one][other] != UNKNOWN for one in places for other in places)
            if len(places) > 1 and known:
                found.append(Bus(kind, sorted(places)))
    yield from sorted(found, key=lambda bus: (len(bus.places), bus.places))
