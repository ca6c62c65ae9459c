"""The state of a merge: the columns of all tables, and the source of each server.

A cluster of thousands of machines is merged from as many files, so only the servers and columns of a table
are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.table.model import RankTable, Server, SuperPod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import Column


class TableBatch(NamedTuple):
    """Consecutive tables that differ in their servers only, read as one; a cluster has thousands of tables.

    ``sizes`` has the number of servers of each table. If a batch has several tables, the ranks of each table
    are 0 to N-1 in file order.
    """

    names: list[str]
    table: RankTable
    sizes: list[int]

    @classmethod
    def of(cls, name: str, table: RankTable) -> TableBatch:
        """Return a batch of one table."""
        return cls([name], table, [len(table.servers)])


class Origin(NamedTuple):
    """The source of a server: the index of the table, and the index of the server in it."""

    table: int
    server: int


@dataclass
class MergeState:
    """Concatenated tables of one format; the rows of the devices are in the order given.

    Attributes:
        names: The names of the tables in messages.
        origins: The source of each server.
        field_origin: For each of ``fields``, the first table that has the field.
        groups: The servers of each group by name, and the group's other keys.
        ranks: For each row, the position of its rank among all ranks, table after table.
        without_pods: The first table that has no super pods.
    """

    names: list[str] = field(default_factory=list)
    format: Format = "1.0"
    status: Any = None
    servers: list[Server] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    field_origin: dict[str, int] = field(default_factory=dict)
    pods: dict[str, SuperPod] = field(default_factory=dict)
    groups: dict[str, tuple[list[int], dict[str, Any]]] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)
    without_pods: int | None = None

    def append(self, batch: TableBatch) -> None:
        """Append tables whose rank ids are distinct numbers."""
        table = batch.table
        number, first_server, first_row = len(self.names), len(self.servers), len(self.ranks)
        self.names += batch.names
        if number == 0:
            self.format = table.format
        self.status = table.status if self.status is None else self.status
        self.ranks += (
            range(first_row, first_row + len(table))
            if len(batch.sizes) > 1
            else _dense_rank_order(table, first_row)
        )
        self._add_columns(table.columns, first_row, len(table))
        self.servers += [
            Server(server.server_id, _moved(server.rows, first_row), server.host_ip, server.fields)
            for server in table.servers
        ]
        for place, size in enumerate(batch.sizes, number):
            self.origins += [Origin(place, index) for index in range(size)]
        self._add_pods(number, table.super_pods)
        for group in table.groups or ():
            indices, _ = self.groups.setdefault(group.group_name, ([], group.fields))
            indices += [first_server + index for index in group.servers]
        for key, value in table.fields.items():
            if key not in self.fields:
                self.fields[key], self.field_origin[key] = value, number
            elif key == "cluster_list":
                self.fields[key] = joined_clusters(self.fields[key], value)

    def _add_columns(self, columns: dict[str, Column], first_row: int, count: int) -> None:
        for key in columns:
            if key not in self.columns:
                self.columns[key] = [None] * first_row
        for key, column in self.columns.items():
            column.extend(columns.get(key) or [None] * count)

    def _add_pods(self, number: int, pods: list[SuperPod] | None) -> None:
        if pods is None and self.without_pods is None:
            self.without_pods = number
        for pod in pods or ():
            known = self.pods.get(pod.super_pod_id)
            if known is None:
                self.pods[pod.super_pod_id] = SuperPod(pod.super_pod_id, list(pod.server_ids), pod.fields)
            else:
                known.server_ids += pod.server_ids

    def server_of_row(self, row: int) -> int:
        """Return the index of the server that a device belongs to."""
        return next(index for index, server in enumerate(self.servers) if row in server.rows)


def joined_clusters(first: Any, second: Any) -> Any:
    """Merge two ``cluster_list``: a cluster in both lists gets the servers of both."""
    if not isinstance(first, list) or not isinstance(second, list):
        return first
    joined = {_cluster_key(entry, index): dict(entry) for index, entry in enumerate(first)}
    for index, entry in enumerate(second):
        known = joined.setdefault(_cluster_key(entry, len(first) + index), {**entry, "server_list": []})
        known["server_list"] = [*known.get("server_list", []), *entry.get("server_list", [])]
    return list(joined.values())


def _cluster_key(entry: dict[str, Any], index: int) -> tuple[str, object]:
    name = entry.get("cluster_id")
    return ("named", name) if isinstance(name, str) else ("nameless", index)


def _dense_rank_order(table: RankTable, first: int) -> list[int]:
    """Return for each device the position of its rank in the table, counted from ``first``."""
    numbers = [number or 0 for number in table.rank_numbers]
    if numbers == list(range(len(numbers))):
        return list(range(first, first + len(numbers)))
    places = [0] * len(numbers)
    for place, row in enumerate(sorted(range(len(numbers)), key=numbers.__getitem__)):
        places[row] = first + place
    return places


def _moved(rows: Sequence[int], by: int) -> Sequence[int]:
    if isinstance(rows, range):
        return range(rows.start + by, rows.stop + by)
    return [row + by for row in rows]
