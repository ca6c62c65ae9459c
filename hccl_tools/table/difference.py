"""The differences of two rank tables by meaning: servers, ranks and the values of devices.

Layout, spelling, key order and keys that HCCL does not read do not count: two tables without a difference
have one fingerprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.table import fingerprint
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hccl_tools.table.model import RankTable

#: Compared by rank, not as a value of a device.
_PLACE = ("rank", "device")


class Place(NamedTuple):
    """The device of a rank: the ``server_id`` and the ``device_id``."""

    server: str
    device: int


class Move(NamedTuple):
    """A rank with another device, and that it has now."""

    rank: int
    before: Place
    after: Place


class ServerRanks(NamedTuple):
    """A server that only one table has, and its ranks in ascending order."""

    server: str
    ranks: list[int]


class Change(NamedTuple):
    """A value of a device, or of a server (``device`` is None), as in the files; None if it is absent."""

    server: str
    device: int | None
    key: str
    before: Any
    after: Any


class Difference(NamedTuple):
    """What differs between two tables.

    Attributes:
        formats: Both formats, if they cannot have one meaning: 2.0 and an earlier one.
        gone: The servers that only the first table has, in its order.
        added: The servers that only the second table has, in its order.
        reordered: Whether the servers that both tables have are in another order.
        moved: The ranks that have another device, ascending.
        ranks_gone: The ranks that only the first table has, ascending.
        ranks_added: The ranks that only the second table has, ascending.
        changes: Changed values of servers and devices that both tables have.
    """

    formats: tuple[str, str] | None
    gone: list[ServerRanks]
    added: list[ServerRanks]
    reordered: bool
    moved: list[Move]
    ranks_gone: list[int]
    ranks_added: list[int]
    changes: list[Change]

    @property
    def is_empty(self) -> bool:
        """Whether the tables have one meaning."""
        return not any(self)


class _Facts:
    """A table by server, by device and by rank."""

    def __init__(self, table: RankTable) -> None:
        self.table = table
        if why := problem(table):
            raise ValueError(why)
        self.keys, self.columns = fingerprint.normal_columns(table)
        names = [table.servers[index].server_id for index in table.server_of_row]
        places = map(Place, names, _known(table.device_numbers))
        self.place_of = dict(zip(_known(table.rank_numbers), places, strict=True))
        self.row_of = {place: row for row, place in enumerate(self.place_of.values())}
        pods = super_pods(table)
        self.servers = {
            name: _server_values(pods.get(name), found) for name, found in _servers(table).items()
        }
        self._ranks: dict[str, list[int]] = {name: [] for name in self.servers}
        for rank, at in sorted(self.place_of.items()):
            self._ranks[at.server].append(rank)

    def ranks_of(self, server: str) -> ServerRanks:
        return ServerRanks(server, self._ranks[server])

    def values(self, row: int) -> dict[str, tuple[Any, Any]]:
        """Return the normal form and the text of each value of a device."""
        table = self.table
        return {
            key: (column[row], table.columns[_COLUMN.get(key, key)][row])
            for key, column in zip(self.keys, self.columns, strict=True)
            if key not in _PLACE and column[row] is not None
        }


#: The column of a normal form, if its name differs.
_COLUMN = {"levels": "level_list"}


def problem(table: RankTable) -> str:
    """Return why a table cannot be compared; "" if each device has a rank and a device id of its own."""
    if None in table.rank_numbers or None in table.device_numbers:
        return "a rank id or device id is not a number that HCCL reads"
    if len(set(table.rank_numbers)) < len(table):
        return "two devices have one rank id"
    names = [table.servers[index].server_id for index in table.server_of_row]
    places = set(zip(names, table.device_numbers, strict=True))
    return "" if len(places) == len(table) else "a device occurs twice"


def _known(numbers: Iterable[int | None]) -> Iterator[int]:
    return (number for number in numbers if number is not None)


def _servers(table: RankTable) -> dict[str, str | None]:
    """Return the servers in the order that HCCL derives, each with its ``host_ip``."""
    return {
        name: next((one.host_ip for one in servers if one.host_ip), None)
        for name, servers in fingerprint.hosts(table)
    }


def _server_values(pod: str | None, host_ip: str | None) -> dict[str, tuple[Any, Any]]:
    found = {"host_ip": (fingerprint.normal_address(host_ip), host_ip)} if host_ip else {}
    return {**found, **({} if pod is None else {"super_pod_id": (pod, pod)})}


def compare(first: RankTable, second: RankTable) -> Difference:
    """Return the differences of two tables.

    Raises:
        ValueError: A table has a ``problem``.
    """
    before, after = _Facts(first), _Facts(second)
    common = [name for name in before.servers if name in after.servers]
    moved = [
        Move(rank, place, after.place_of[rank])
        for rank, place in sorted(before.place_of.items())
        if rank in after.place_of and after.place_of[rank] != place
    ]
    kinds = {first.format == "2.0", second.format == "2.0"}
    return Difference(
        (first.format, second.format) if len(kinds) > 1 else None,
        [before.ranks_of(name) for name in before.servers if name not in after.servers],
        [after.ranks_of(name) for name in after.servers if name not in before.servers],
        common != [name for name in after.servers if name in before.servers],
        moved,
        sorted(before.place_of.keys() - after.place_of.keys()),
        sorted(after.place_of.keys() - before.place_of.keys()),
        [*_server_changes(before, after, common), *_device_changes(before, after)],
    )


def _server_changes(before: _Facts, after: _Facts, common: list[str]) -> list[Change]:
    return [
        change
        for name in common
        for change in _changes(Place(name, -1), before.servers[name], after.servers[name])
    ]


def _device_changes(before: _Facts, after: _Facts) -> list[Change]:
    return [
        change
        for place, row in before.row_of.items()
        if place in after.row_of
        for change in _changes(place, before.values(row), after.values(after.row_of[place]))
    ]


def _changes(
    place: Place, before: Mapping[str, tuple[Any, Any]], after: Mapping[str, tuple[Any, Any]]
) -> list[Change]:
    absent = (None, None)
    device = None if place.device < 0 else place.device
    return [
        Change(place.server, device, key, old[1], new[1])
        for key in dict.fromkeys([*before, *after])
        if (old := before.get(key, absent))[0] != (new := after.get(key, absent))[0]
    ]
