"""Convert a table to another format.

A group_list has no rank ids, 1.0 has no super pods, and only 2.0 describes network levels: so 1.0, 1.2 and
group_list can be converted to each other, and 2.0 cannot be converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.formats import group_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.table.model import Group, RankTable, Server, SuperPod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import Column
    from hccl_tools.transform.super_pod_plan import SuperPodMembership

#: The keys of a device that HCCL reads in 1.0 and 1.2, and those that it reads in 1.2 only.
_SERVER_LIST_KEYS = frozenset(
    {"device_port", "device_vnic_port", "host_port", "net_position", "net_protocol"}
)
_SUPER_POD_KEYS = frozenset({"super_device_id", "backup_device_ip", "backup_device_port"})
_SHOWN = 3


def convert(
    table: RankTable,
    *,
    to: Format,
    super_pods: Mapping[str, SuperPodMembership] | None = None,
    renumber: bool = False,
) -> RankTable:
    """Return a table in another format, with the same servers, devices, ranks and addresses.

    ``dropped_information`` returns the information that the other format cannot store.

    Args:
        super_pods: For 1.2: each server's super pod and the super_device_ids of its devices.
        renumber: For group_list: accept HCCL's numbering (by server_id as text, then device id) if the
            table's ranks differ from it.

    Raises:
        TableError: The new format needs information that the table lacks.
    """
    if to == table.format:
        return table
    if "2.0" in (table.format, to):
        raise _impossible(table.format, to)
    made = _from_group_list(table) if table.format == "group_list" else table
    if to == "group_list":
        return _to_group_list(made, renumber=renumber)
    if to == "1.2":
        return _with_super_pods(made, super_pods)
    return _plain(made, "1.0")


def _impossible(given: str, to: str) -> TableError:
    if to == "2.0":
        return TableError(
            f"a {given} table cannot be converted to 2.0, which needs each device's network levels "
            "(net_layer, net_instance_id), its addresses and ports on each level, and its local_id",
            hint="2.0 is for Ascend 950 alone: make it on its hosts with `hccl-tools gen --format 2.0`",
        )
    return TableError(
        f"a 2.0 table cannot be converted to {to}, which has no network levels",
        hint="use the 2.0 table; `hccl-tools show -f json` prints its servers and ranks for programs",
    )


def _from_group_list(table: RankTable) -> RankTable:
    """Return the 1.0 table that HCCL derives from a group_list: servers in the order of their ranks.

    Instances on one host become one server. A server with one instance keeps its other keys, such as
    ``pod_name``, by which the pod recognises itself.

    Source:
        hcomm topoinfo_ranktableStandard.cc:328-352 (ranks), :578 (instances of one server).
    """
    ranks = table.rank_numbers
    rows: dict[str, list[int]] = {}
    instances: dict[str, list[Server]] = {}
    for server in table.servers:
        rows.setdefault(server.server_id, []).extend(server.rows)
        instances.setdefault(server.server_id, []).append(server)
    names = sorted(rows, key=lambda name: min(ranks[row] or 0 for row in rows[name]))
    order = [row for name in names for row in sorted(rows[name], key=lambda row: ranks[row] or 0)]
    servers, first = [], 0
    for name in names:
        fields = dict(instances[name][0].fields) if len(instances[name]) == 1 else {}
        servers.append(Server(name, range(first, first + len(rows[name])), fields=fields))
        first += len(rows[name])
    columns = {key: [column[row] for row in order] for key, column in table.columns.items()}
    return RankTable("1.0", servers, columns, table.status, fields=dict(table.fields))


def _to_group_list(table: RankTable, *, renumber: bool) -> RankTable:
    plain = _plain(table, "group_list", without=_SERVER_LIST_KEYS)
    servers = []
    for server in plain.servers:
        fields = {"pod_name": server.server_id, **server.fields}
        servers.append(Server(server.server_id, server.rows, None, fields))
    plain.servers = servers
    plain.groups = [Group("group", range(len(servers)))]
    own = plain.columns.pop("rank_id")
    plain.columns["rank_id"] = group_list.rank_ids(servers, plain.device_numbers)
    if not renumber and table.rank_numbers != plain.rank_numbers:
        moved = [row for row, rank in enumerate(plain.rank_numbers) if rank != table.rank_numbers[row]]
        row = moved[0]
        raise TableError(
            f"{len(moved)} of {len(own)} ranks would change: HCCL numbers a group_list by server_id as "
            f"text, then by device id, so that rank {own[row]} becomes {plain.rank_ids[row]}",
            hint="--renumber accepts HCCL's numbering; use the 1.0 table if the ranks must not change",
        )
    return plain


def _with_super_pods(table: RankTable, memberships: Mapping[str, SuperPodMembership] | None) -> RankTable:
    if memberships is None:
        raise TableError(
            "a 1.2 table needs each server's super pod and each device's super_device_id",
            hint='set them with --super-pods FILE: {"10.0.0.1": {"super_pod_id": "0", "super_device_ids": '
            '{"0": "0", "1": "65537"}}}, or a 1.2 table with these servers',
        )
    made = _plain(table, "1.2")
    pods: dict[str, SuperPod] = {}
    column: Column = [None] * len(made)
    for server in made.servers:
        membership = memberships.get(server.server_id)
        if membership is None:
            raise TableError(
                f"the --super-pods file has no server {server.server_id}", hint=_known(list(memberships))
            )
        pods.setdefault(membership.super_pod_id, SuperPod(membership.super_pod_id, [])).server_ids.append(
            server.server_id
        )
        for row in server.rows:
            device = made.device_numbers[row]
            column[row] = membership.super_device_ids.get(device if device is not None else -1)
            if column[row] is None:
                raise TableError(
                    f"the --super-pods file has no super_device_id for device {device} of {server.server_id}",
                    hint="`npu-smi info -t spod-info -i NPU -c CHIP` shows it as SDID",
                )
    made.columns["super_device_id"] = column
    made.super_pods = list(pods.values())
    return made


def _known(names: Sequence[str]) -> str:
    return f"the file has {and_more(names, _SHOWN)}" if names else "the file has no servers"


def _plain(table: RankTable, to: Format, *, without: frozenset[str] = frozenset()) -> RankTable:
    """Return a copy without super pods and their keys; ``cluster_list`` stays in 1.0 only."""
    dropped = _SUPER_POD_KEYS | without
    columns = {key: list(column) for key, column in table.columns.items() if key not in dropped}
    gone = {"super_pod_list"} if to == "1.0" else {"super_pod_list", "cluster_list"}
    fields = {key: value for key, value in table.fields.items() if key not in gone}
    servers = [
        Server(server.server_id, server.rows, server.host_ip, dict(server.fields)) for server in table.servers
    ]
    return RankTable(to, servers, columns, table.status, fields=fields)


def dropped_information(before: RankTable, after: RankTable) -> list[str]:
    """Return the information that a converted table lacks, one line per kind, with counts."""
    lines = []
    if before.super_pods and not after.super_pods:
        lines.append(f"{count(len(before.super_pods), 'super pod')}: the servers in each")
    named = [group.group_name for group in before.groups or () if group.group_name]
    if named and not after.groups:
        names = ", ".join(f'"{name}"' for name in named[:_SHOWN])
        more = ", ..." if len(named) > _SHOWN else ""
        lines.append(f"{count(len(named), 'group name')} ({names}{more})")
    if len(after.servers) < len(before.servers):
        hosts_left = count(len(after.servers), "server")
        lines.append(f"the pod names of {len(before.servers)} instances, which became {hosts_left}")
    for key, column in before.columns.items():
        having = sum(value is not None for value in column)
        if having and key not in after.columns:
            lines.append(f"{key} of {count(having, 'device')}")
    hosts = sum(server.host_ip is not None for server in before.servers)
    if hosts and all(server.host_ip is None for server in after.servers):
        lines.append(f"host_ip of {count(hosts, 'server')}")
    lines += [f'"{key}" of the table' for key in before.fields if key not in after.fields]
    if after.format == "group_list" and before.rank_numbers != after.rank_numbers:
        changed = sum(map(int.__ne__, _ranks(before), _ranks(after)))
        lines.append(
            f"{count(changed, 'rank id')}: HCCL numbers a group_list by server_id as text, then by device id"
        )
    return lines


def _ranks(table: RankTable) -> list[int]:
    return [rank if rank is not None else -1 for rank in table.rank_numbers]


def kept(before: RankTable, after: RankTable) -> list[str]:
    """Return the information in keys that the new format does not define, one line per kind."""
    if before.format != "group_list" or after.format == "group_list":
        return []
    named = sum("pod_name" in server.fields for server in after.servers)
    why = f"HCCL ignores it in a {after.format} table; `launch` recognises the pod by it"
    return [f"pod_name of {count(named, 'server')}: {why}"] if named else []


def invented_information(before: RankTable, after: RankTable) -> list[str]:
    """Return the information that the conversion added to a table, one line per kind."""
    if after.format == "group_list" and before.format != "group_list":
        named = sum("pod_name" not in server.fields for server in before.servers)
        lines = ['group_name "group"']
        return [*lines, f"pod_name of {count(named, 'instance')}: the server_id"] if named else lines
    return []
