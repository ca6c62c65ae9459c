"""The rank table, independent of file formats.

The devices are stored as columns, so that a table of 65,536 ranks is read, checked and written in a fraction
of a second: ``table.rank_ids[i]``, ``table.device_ids[i]`` and so on belong to the i-th device in file order.
Strings are kept as in the file: HCCL reads ``"007"`` and ``"7 "`` as 7, and a table that is read and written
again must not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed
from hccl_tools.table.hccl_numbers import read_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.table.format_names import Format


#: One value per device; ``None`` if the device does not have the key, ``hccl_values.NULL`` if it is ``null``
#: in the file. Strings in 1.x and group_list tables, numbers in 2.0 tables.
Column = list[Any]


@dataclass(slots=True)
class Server:
    """A machine (in a group_list, a pod) and the rows of its devices in the columns.

    ``fields`` has the other keys of its entry, such as ``host_nic_ip``, unchanged.
    """

    server_id: str
    rows: Sequence[int]
    host_ip: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The name or address under which other hosts reach it: host_ip, else server_id."""
        return self.host_ip or self.server_id

    @property
    def has_own_container_ip(self) -> bool:
        """Whether its container_ip is not its server_id: its containers have a network of their own."""
        own = self.fields.get("container_ip")
        return isinstance(own, str) and own not in ("", self.server_id)


@dataclass(slots=True)
class SuperPod:
    """A super pod (A3) and its servers by ``server_id``, in file order."""

    super_pod_id: str
    server_ids: list[str]
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """A group of a group_list table: ``servers`` are indices into ``RankTable.servers``."""

    group_name: str
    servers: Sequence[int]
    fields: dict[str, Any] = field(default_factory=dict)


class Device(NamedTuple):
    """One device of a table, for callers that need a device instead of columns.

    ``rank_id`` and ``device_id`` are the numbers that HCCL reads; ``row`` is the index in the columns.
    """

    row: int
    rank_id: int
    device_id: int
    device_ip: str | None
    server_index: int
    server_id: str


@dataclass
class RankTable:
    """A rank table: servers in file order and one column per key of their devices.

    Attributes:
        servers: The servers in file order.
        columns: One value per device for each device key (``rank_id``, ``device_id``, ``device_ip``, unknown
            keys). A group_list has no rank ids: its column ``rank_id`` has HCCL's numbering, by server_id
            as text, then by device id.
        status: "completed", or the status of a table that is not ready; any value in 2.0: HCCL ignores it.
        fields: Other top-level keys.
        declared: The counts in the file, for the rules; they are computed when a table is written.
    """

    format: Format
    servers: list[Server]
    columns: dict[str, Column]
    status: Any = "completed"
    super_pods: list[SuperPod] | None = None
    groups: list[Group] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.columns["device_id"])

    def column(self, key: str) -> Column:
        """Return the column of a device key; all values are ``None`` if no device has the key."""
        found = self.columns.get(key)
        return found if found is not None else [None] * len(self)

    @property
    def rank_ids(self) -> Column:
        """The rank ids as in the file."""
        return self.columns["rank_id"]

    @property
    def device_ids(self) -> Column:
        """The device ids as in the file."""
        return self.columns["device_id"]

    @property
    def device_ips(self) -> Column:
        """The device addresses; ``None`` for devices without an address and in 2.0 tables."""
        return self.column("device_ip")

    @cached_property
    def rank_numbers(self) -> list[int | None]:
        """The rank ids as HCCL reads them; ``None`` for ids that HCCL refuses."""
        return read_column(self.rank_ids)

    @cached_property
    def is_in_rank_order(self) -> bool:
        """Whether the entries are the ranks 0 to N-1 in this order: then no entry repeats or lacks a rank."""
        return self.rank_numbers == list(range(len(self)))

    @cached_property
    def device_numbers(self) -> list[int | None]:
        """The device ids as HCCL reads them; ``None`` for ids that HCCL refuses."""
        ids = self.device_ids  # few different values, each of which is parsed once
        different = list(set(ids)) if set(map(type, ids)) == {str} else ids
        if len(different) == len(ids):
            return read_column(ids)
        return list(map(dict(zip(different, read_column(different), strict=True)).__getitem__, ids))

    @cached_property
    def devices_of_each(self) -> list[int | None] | None:
        """The device numbers of each server; ``None`` unless all list the same ones in the same order."""
        numbers, count = self.device_numbers, len(self.servers)
        size = len(numbers) // count if count else 0
        is_equal = size * count == len(numbers) and all(len(server.rows) == size for server in self.servers)
        return numbers[:size] if is_equal and numbers == numbers[:size] * count else None

    @cached_property
    def server_of_row(self) -> list[int]:
        """The index of each row's server."""
        owner = [0] * len(self)
        for index, server in enumerate(self.servers):
            for row in server.rows:
                owner[row] = index
        return owner

    @cached_property
    def place_in_groups(self) -> dict[int, tuple[int, int]]:
        """The group of each server of a group_list, and its index among the servers of the group."""
        return {
            index: (number, place)
            for number, group in enumerate(self.groups or ())
            for place, index in enumerate(group.servers)
        }

    def device(self, row: int) -> Device:
        """Return the device of a row; its ids must be readable, as in every valid table."""
        server_index = self.server_of_row[row]
        rank_id, device_id = self.rank_numbers[row], self.device_numbers[row]
        if rank_id is None or device_id is None:
            raise ValueError(f"row {row} has no readable rank_id and device_id")
        ips = self.columns.get("device_ip")
        ip = ips[row] if ips is not None else None
        return Device(row, rank_id, device_id, ip, server_index, self.servers[server_index].server_id)

    def devices(self) -> Iterator[Device]:
        """Yield the devices in file order."""
        return map(self.device, range(len(self)))

    def by_rank(self) -> list[Device]:
        """Return the devices sorted by rank id; in a valid table the index is the rank id."""
        return sorted(self.devices(), key=lambda device: device.rank_id)


def super_pods(table: RankTable) -> dict[str, str]:
    """Return the super pod of each server, by server_id."""
    return {server: pod.super_pod_id for pod in table.super_pods or () for server in pod.server_ids}


#: The greatest number of servers that are all listed; otherwise only the first and the last are shown.
FOLD_ABOVE = 32


def address_key(server: Server) -> tuple[int, bytes] | None:
    """Return the sort key of a server: its server_id, else host_ip, as a number; None without an address."""
    for text in (server.server_id, server.host_ip):
        raw = packed(text) if text else None
        if raw is not None:
            return len(raw), raw
    return None


def out_of_order(table: RankTable) -> tuple[str, str] | None:
    """Return the first two consecutive servers whose addresses are not in numeric order, else None."""
    before = None
    for index, server in enumerate(table.servers):
        key = address_key(server)
        if before is not None and key is not None and before > key:
            return table.servers[index - 1].server_id, server.server_id
        before = key
    return None
