"""The boxes of a picture without coordinates: devices, servers, folded servers, super pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.table.links import SELF, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


class Npu(NamedTuple):
    """One device; ``rank`` and ``device`` are None if HCCL cannot read them."""

    row: int
    rank: int | None
    device: int | None
    addresses: list[str]


class ServerBox(NamedTuple):
    """A server that is drawn.

    ``npus`` is sorted by device id; ``hidden`` is the number of devices that are not in it. ``groups`` has a
    name and the number of devices of each group, in the same order.
    """

    number: int
    server_id: str
    npus: list[Npu]
    hidden: int
    groups: list[tuple[str, int]]
    buses: list[Bus]


class Fold(NamedTuple):
    """Servers that are not drawn, ``marked`` of them with a mark; ``alike``: equal to their neighbours."""

    indices: list[int]
    marked: int
    alike: bool


class PodBox(NamedTuple):
    """A super pod, or all servers of a table without super pods; ``link`` is that between its servers."""

    name: str | None
    items: list[ServerBox | Fold]
    link: str


class Scene(NamedTuple):
    """All that is drawn; ``link`` is that between the super pods, ``unseen`` counts super pods left out."""

    pods: list[PodBox]
    link: str
    unseen: int
    servers: Sequence[int]

    @property
    def is_folded(self) -> bool:
        """Whether some servers are not drawn."""
        return self.unseen > 0 or any(isinstance(item, Fold) for pod in self.pods for item in pod.items)


class Selection(NamedTuple):
    """The servers to draw.

    Attributes:
        servers: The indices of the servers of the picture.
        important: The servers that are not folded because of a mark, the most important first.
        marked: All servers with a mark.
        unfold: Whether all servers are drawn.
    """

    servers: Sequence[int]
    important: Sequence[int] = ()
    marked: Collection[int] = ()
    unfold: bool = False


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
