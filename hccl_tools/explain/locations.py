"""Where a rank, a device or an address is: its host, its device, and its line in the rank table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.diagnostics.diagnostic import pointer
from hccl_tools.document.document import Document
from hccl_tools.document.reading import read_file
from hccl_tools.formats import StructureError
from hccl_tools.notation.phrases import operand
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.table.model import RankTable

#: What logs write for a device without an address.
NO_ADDRESS = {"", UNSET, "::", "unknown"}


class Place(NamedTuple):
    """A rank, as far as it is known; ``host`` is a name or an address, ``device`` a physical id."""

    rank: int | None = None
    host: str = ""
    device: int | None = None
    address: str = ""

    def merged(self, other: Place) -> Place:
        """Return this place with what is unknown taken from another one."""
        return Place(
            self.rank if self.rank is not None else other.rank,
            self.host or other.host,
            self.device if self.device is not None else other.device,
            self.address or other.address,
        )

    @property
    def name(self) -> str:
        """The place in a sentence: ``rank 5 (device 5 of 10.0.0.2, address 192.168.1.5)``."""
        where = [] if self.device is None else [f"device {self.device}"]
        if self.host:
            host = without_marks(self.host)
            where = [f"{where[0]} of {host}" if where else f"host {host}"]
        where += [f"address {without_marks(self.address)}"] if self.address else []
        if self.rank is None:
            return ", ".join(where)
        whose = "the scheduler" if self.rank < 0 else f"rank {self.rank}"
        return whose + (f" ({', '.join(where)})" if where else "")

    @property
    def short(self) -> str:
        """The rank alone if it is known, else the name."""
        return f"rank {self.rank}" if self.rank is not None and self.rank >= 0 else self.name


def without_marks(text: str) -> str:
    """Return a text of a log for a sentence: without backquotes, between which there are commands to type."""
    return text.replace("`", "'")


class TableLine(NamedTuple):
    """A line of the rank table: file, line from 1, and JSON pointer."""

    file: str
    line: int
    pointer: str


class Places:
    """All known places, by rank, by address, and by host and device."""

    def __init__(self) -> None:
        self.by_rank: dict[int, Place] = {}
        self._by_address: dict[str, Place] = {}
        self._by_device: dict[tuple[str, int], Place] = {}
        self._ambiguous: set[str | tuple[str, int]] = set()
        self.table: TablePlaces | None = None

    def copy(self) -> Places:
        """Return the same places, to which others can be added."""
        copied = Places()
        copied.by_rank, copied._by_address = dict(self.by_rank), dict(self._by_address)
        copied._by_device, copied._ambiguous = dict(self._by_device), set(self._ambiguous)
        copied.table = self.table
        return copied

    def add(self, place: Place) -> None:
        """Add a place; what is already known about its rank stays."""
        place = place._replace(address="" if place.address in NO_ADDRESS else place.address)
        rank = place.rank
        if rank is not None:
            place = self.by_rank.get(rank, place).merged(place)
            self.by_rank[rank] = place
        if place.address and self._by_address.setdefault(place.address, place).rank != rank:
            self._ambiguous.add(place.address)
        if place.host and place.device is not None:
            key = (place.host, place.device)
            if self._by_device.setdefault(key, place).rank != rank:
                self._ambiguous.add(key)

    def find(self, place: Place) -> Place:
        """Return what is known about a place; the place itself if nothing is."""
        known: Place | None = None
        if place.rank is not None:
            known = self.by_rank.get(place.rank)
        elif place.address and place.address in self._by_address:
            known = self._by_address[place.address]
        elif place.host and place.device is not None:
            known = self._by_device.get((place.host, place.device))
        if known is None:
            return place
        rank = known.rank
        return place.merged(known if rank is None else self.by_rank.get(rank, known))

    def at_device(self, place: Place) -> Place | None:
        """Return the rank at a device or an address, if exactly one is known there."""
        keys: list[str | tuple[str, int]] = [place.address] if place.address else []
        keys += [(place.host, place.device)] if place.host and place.device is not None else []
        for key in keys:
            known = self._by_address.get(key) if isinstance(key, str) else self._by_device.get(key)
            if known is not None and known.rank is not None and key not in self._ambiguous:
                return self.by_rank.get(known.rank, known)
        return None

    def line(self, place: Place) -> TableLine | None:
        """Return the line of the rank table for a rank; None without a table."""
        return self.table.line(place.rank) if self.table is not None and place.rank is not None else None


class TablePlaces:
    """The rank table: the place of each rank, and its line."""

    def __init__(self, name: str, document: Document, table: RankTable) -> None:
        self.name, self._document, self._table = name, document, table
        self._rows: Mapping[int, int] = {
            rank: row for row, rank in enumerate(table.rank_numbers) if rank is not None
        }

    def __len__(self) -> int:
        return len(self._table)

    def places(self) -> list[Place]:
        """Return the places of all ranks."""
        table = self._table
        owners, addresses = table.server_of_row, table.device_ips
        return [
            Place(
                rank,
                str(table.servers[owners[row]].server_id),
                table.device_numbers[row],
                str(addresses[row] or ""),
            )
            for rank, row in self._rows.items()
        ]

    def line(self, rank: int) -> TableLine | None:
        """Return the line of a rank; None if the table does not have it."""
        row = self._rows.get(rank)
        if row is None:
            return None
        path = formats.module(self._table.format).device_path(self._table, row)
        (span,) = self._document.spans([path])
        return TableLine(self.name, self._document.position(span.start).line, pointer(path))


def read_table(name: str, shown: str = "") -> tuple[TablePlaces | None, str]:
    """Return the places of a rank table, and a sentence if it cannot be used.

    Raises:
        InputError: The file cannot be read.
    """
    shown = shown or name
    document = Document.parse(read_file(name), shown)
    try:
        table = formats.read(document.value) if document.problem is None else None
    except StructureError:
        table = None
    if table is None:
        why = f"`hccl-tools validate {operand(shown)}` says why"
        return None, f"{shown} cannot be read as a rank table: {why}"
    return TablePlaces(shown, document, table), ""
