"""Make a table of the selected servers and devices of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.formats import group_list
from hccl_tools.notation import exclusion
from hccl_tools.table.model import Group, RankTable, Server, SuperPod
from hccl_tools.transform.spare import index_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hccl_tools.notation.exclusion import Exclusion

#: The keys of a server, besides server_id and host_ip, whose value is a name of its host.
_NAMES = ("container_ip", "pod_name", "pod_ip")


def subset(
    table: RankTable, *, servers: Sequence[str] | None = None, devices: Sequence[int] | None = None
) -> RankTable:
    """Return a table of the selected servers and devices; ranks are renumbered in their old order.

    Args:
        servers: The server_ids to keep, which stay in the table's order; None for all.
        devices: The device ids to keep on each of these servers; None for all.

    Raises:
        TableError: A server or device does not exist.
    """
    return _part(table, {index: _rows(table, index, devices) for index in _indices(table, servers)})


def without(table: RankTable, exclusions: Sequence[Exclusion]) -> RankTable:
    """Return a table without some hosts, or devices of hosts; ranks are renumbered in their old order.

    A host is a server that has the name as its server_id, host_ip, container_ip, pod_name or pod_ip.

    Raises:
        UsageError: A host or device does not exist, or nothing is left.
    """
    names = [
        (one.server_id, one.host_ip, *(_text(one.fields.get(key)) for key in _NAMES)) for one in table.servers
    ]
    excluded = exclusion.matched(exclusions, names, where="the table", what="server")
    ids = table.device_numbers
    rows_of = {}
    for index, server in enumerate(table.servers):
        devices = excluded.get(index, frozenset())
        if devices is None:
            continue
        present = [number for row in server.rows if (number := ids[row]) is not None]
        exclusion.refuse_absent_devices(f"server {server.server_id}", devices, present)
        if rows := [row for row in server.rows if ids[row] not in devices]:
            rows_of[index] = rows
    if not rows_of:
        raise exclusion.nothing_left("the table")
    return _part(table, rows_of)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _part(table: RankTable, rows_of: Mapping[int, Sequence[int]]) -> RankTable:
    """Return a table of some rows of some servers, which are named by their indices in ascending order."""
    indices = list(rows_of)
    kept = [row for index in indices for row in rows_of[index]]
    if table.format == "2.0":
        kept.sort()
    place = {row: number for number, row in enumerate(kept)}
    ranks = table.rank_numbers
    following = {row: number for number, row in enumerate(sorted(kept, key=lambda row: ranks[row] or 0))}
    columns = {key: [column[row] for row in kept] for key, column in table.columns.items()}
    numbered = [following[row] for row in kept]
    columns["rank_id"] = list(numbered) if table.format == "2.0" else list(map(str, numbered))
    own = []
    for index in indices:
        old = table.servers[index]
        rows = [place[row] for row in rows_of[index]]
        whole = range(rows[0], rows[0] + len(rows))
        own.append(
            Server(old.server_id, whole if table.format != "2.0" else rows, old.host_ip, dict(old.fields))
        )
    made = RankTable(
        table.format,
        own,
        columns,
        table.status,
        _super_pods(table, own),
        _groups(table, indices),
        _fields(table, own),
    )
    if made.format == "group_list":
        made.columns["rank_id"] = group_list.rank_ids(own, made.device_numbers)
    return made


def _indices(table: RankTable, servers: Sequence[str] | None) -> list[int]:
    if servers is None:
        return list(range(len(table.servers)))
    return sorted({index_of(table, name) for name in servers})


def _rows(table: RankTable, index: int, devices: Sequence[int] | None) -> list[int]:
    server, ids = table.servers[index], table.device_numbers
    if devices is None:
        return list(server.rows)
    present = {ids[row] for row in server.rows}
    absent = [str(device) for device in devices if device not in present]
    if absent:
        has = ", ".join(str(device) for device in sorted(number for number in present if number is not None))
        what = "device" if len(absent) == 1 else "devices"
        raise TableError(f"server {server.server_id} has no {what} {', '.join(absent)}", hint=f"it has {has}")
    return [row for row in server.rows if ids[row] in devices]


def _super_pods(table: RankTable, own: list[Server]) -> list[SuperPod] | None:
    names = {server.server_id for server in own}
    pods = [
        SuperPod(pod.super_pod_id, [name for name in pod.server_ids if name in names], pod.fields)
        for pod in table.super_pods or ()
    ]
    return [pod for pod in pods if pod.server_ids] or None


def _groups(table: RankTable, indices: list[int]) -> list[Group] | None:
    if table.groups is None:
        return None
    groups, first = [], 0
    for group in table.groups:
        count = sum(index in group.servers for index in indices)
        if count:
            groups.append(Group(group.group_name, range(first, first + count), group.fields))
            first += count
    return groups


def _fields(table: RankTable, own: list[Server]) -> dict[str, Any]:
    """Return the other keys of the table; ``cluster_list`` without clusters whose servers are all omitted."""
    fields = dict(table.fields)
    clusters = fields.get("cluster_list")
    if isinstance(clusters, list):
        names = {server.server_id for server in own}
        cut = [
            {
                **cluster,
                "server_list": [
                    one for one in cluster.get("server_list", []) if one.get("server_id") in names
                ],
            }
            for cluster in clusters
        ]
        fields["cluster_list"] = [cluster for cluster in cut if cluster["server_list"]]
    return fields
