"""A service table (``server_group_list``): the groups of a serving cluster, their servers and devices.

The table is read by MindIE-Motor and by omni-infer, not by HCCL; it has a rank table for each instance. The
model keeps damaged entries, so that rules can report every fault and paths stay those of the file: an entry
that is not an object is an empty one, and a value that is not a string is ``None`` in a column.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from hccl_tools.records import NamedTuple
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_column

if TYPE_CHECKING:
    from hccl_tools.table.model import Column

    #: A location in the document: object keys and array indices, outermost first.
    Path = tuple[str | int, ...]

#: The programs that read such a table.
Reader = Literal["MindIE-Motor", "omni-infer"]
#: What the servers of a group run. "scheduler" is omni-infer's name for the entry point.
Role = Literal["coordinator", "controller", "scheduler", "instance"]
Object = dict[str, Any]


class ServiceServer(NamedTuple):
    """A server of a group (with Kubernetes, a pod) and the rows of its devices."""

    group: int
    place: int
    rows: range
    entry: Object

    def text(self, key: str) -> str | None:
        """Return the string under a key, ``None`` if there is none."""
        value = self.entry.get(key)
        return value if isinstance(value, str) else None


class ServiceGroup(NamedTuple):
    """A group: its number (``None`` if unreadable), the indices of its servers, and what they run."""

    number: int | None
    servers: range
    role: Role
    entry: Object

    @property
    def name(self) -> str:
        """The group_id as in the file."""
        return str(self.entry.get("group_id"))


class Instance(NamedTuple):
    """Servers that compute together: the index of their group, and their own indices."""

    group: int
    servers: range
    name: str


class ServiceTable:
    """A service table.

    Attributes:
        reader: The program for which the table was made, by its groups.
        groups: The groups in file order.
        servers: The servers of all groups in file order.
        devices: The devices of all servers in file order; a row is an index into this list.
        fields: The top-level keys other than ``server_group_list``.
    """

    def __init__(
        self,
        reader: Reader,
        groups: list[ServiceGroup],
        servers: list[ServiceServer],
        devices: list[Object],
        fields: Object,
    ) -> None:
        self.reader, self.groups, self.servers = reader, groups, servers
        self.devices, self.fields = devices, fields
        self._columns: dict[str, list[str | None]] = {}
        self._server_columns: dict[str, list[str | None]] = {}

    def column(self, key: str) -> list[str | None]:
        """Return one value per device; ``None`` for a device without a string under the key."""
        if key not in self._columns:
            self._columns[key] = _texts(self.devices, key)
        return self._columns[key]

    def server_column(self, key: str) -> list[str | None]:
        """Return one value per server; ``None`` for a server without a string under the key."""
        if key not in self._server_columns:
            self._server_columns[key] = _texts([server.entry for server in self.servers], key)
        return self._server_columns[key]

    @cached_property
    def rank_numbers(self) -> list[int | None]:
        """The rank ids of the devices; ``None`` for those that are not numbers in strings."""
        return read_column(self.column("rank_id"))

    @cached_property
    def device_numbers(self) -> list[int | None]:
        """The device ids of the devices; ``None`` for those that are not numbers in strings."""
        return read_column(self.column("device_id"))

    @cached_property
    def instances(self) -> list[Instance]:
        """The instances with servers, in file order.

        Usually, an instance is a group. If a table of MindIE-Motor has only one group of instances, each of
        its servers is an instance if each has its own rank 0 (prefill and decode on single servers).
        """
        groups = [
            (index, group)
            for index, group in enumerate(self.groups)
            if group.role == "instance" and group.servers
        ]
        if len(groups) == 1 and self.reader == "MindIE-Motor":
            index, group = groups[0]
            if len(group.servers) > 1 and all(map(self._has_rank_0, group.servers)):
                return [
                    Instance(index, range(one, one + 1), f"server {number} of group {group.name}")
                    for number, one in enumerate(group.servers)
                ]
        return [Instance(index, group.servers, f"group {group.name}") for index, group in groups]

    @cached_property
    def unordered_instances(self) -> list[Instance]:
        """The instances whose rank ids are not 0 to N-1 in this order."""
        ranks, found = self.rank_numbers, []
        for instance in self.instances:
            rows = self.rows(instance.servers)
            if ranks[rows.start : rows.stop] != list(range(len(rows))):
                found.append(instance)
        return found

    @cached_property
    def devices_by_host(self) -> dict[str | None, set[int | None]]:
        """The numbers of the devices of each server_id."""
        found: dict[str | None, set[int | None]] = {}
        for server in self.servers:
            own = self.device_numbers[server.rows.start : server.rows.stop]
            found.setdefault(server.text("server_id"), set()).update(own)
        return found

    @cached_property
    def misplaced_groups(self) -> list[int]:
        """The groups whose number is not their place."""
        return [place for place, group in enumerate(self.groups) if group.number != place]

    @cached_property
    def free_numbers(self) -> dict[int, int]:
        """For the number of each group the next higher one that no group has."""
        found = dict[int, int]()
        for number in sorted(
            {group.number for group in self.groups if group.number is not None}, reverse=True
        ):
            found[number] = found.get(number + 1, number + 1)
        return found

    @cached_property
    def hosts_are_distinct(self) -> bool:
        """Whether no two servers of instances are on one host."""
        column = self.server_column("server_id")
        hosts = [column[server] for instance in self.instances for server in instance.servers]
        return len(set(hosts)) == len(hosts)

    def _has_rank_0(self, server: int) -> bool:
        rows = self.servers[server].rows
        return 0 in self.rank_numbers[rows.start : rows.stop]

    def super_pods(self, group: int) -> dict[str, str]:
        """Return the super pod of each server of a group, by server_id; unreadable entries are left out."""
        pods = self.groups[group].entry.get("super_pod_list")
        found = {}
        for pod in pods if isinstance(pods, list) else ():
            name = pod.get("super_pod_id") if isinstance(pod, dict) else None
            members = pod.get("server_list") if isinstance(pod, dict) else None
            for member in members if isinstance(members, list) else ():
                server = member.get("server_id") if isinstance(member, dict) else None
                if isinstance(name, str) and isinstance(server, str):
                    found[server] = name
        return found

    def rows(self, servers: range) -> range:
        """Return the rows of servers that are next to each other."""
        return range(self._first_rows[servers.start], self._first_rows[servers.stop])

    @cached_property
    def _first_rows(self) -> list[int]:
        """The first row of each server, and the row after the last device."""
        return [*(server.rows.start for server in self.servers), len(self.devices)]

    def server_of_row(self, row: int) -> int:
        """Return the index of the server of a device."""
        return bisect_right(self._first_rows, row) - 1

    def group_path(self, group: int, *keys: str | int) -> Path:
        """Return the path of a group, or of one of its keys."""
        return (SERVICE, group, *keys)

    def server_path(self, server: int, *keys: str | int) -> Path:
        """Return the path of a server, or of one of its keys."""
        one = self.servers[server]
        return (SERVICE, one.group, "server_list", one.place, *keys)

    def device_path(self, row: int, *keys: str | int) -> Path:
        """Return the path of a device, or of one of its keys."""
        server = self.server_of_row(row)
        return self.server_path(server, "device", row - self.servers[server].rows.start, *keys)


def _texts(holders: list[Object], key: str) -> list[str | None]:
    try:
        values: Column = list(map(itemgetter(key), holders))
        "".join(values)  # the fastest way to see that all are strings
    except (KeyError, TypeError):
        values = [holder.get(key) for holder in holders]
        if not set(map(type, values)) <= {str, type(None)}:
            values = [value if isinstance(value, str) else None for value in values]
    return values
