"""Make the rank table of one instance of a service table (``server_group_list``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple
from hccl_tools.table.model import RankTable, Server, SuperPod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table.model import Column
    from hccl_tools.table.service_table import Instance, ServiceTable

#: The keys of a server and of a device that no rank table has.
_SERVER_KEYS = ("predict_port", "mgmt_port", "metric_port", "inter_comm_port", "hardware_type")
_SHOWN = 8


class InstanceTable(NamedTuple):
    """The rank table of an instance, in 1.2 if it has super pods, else in 1.0, and what changed.

    ``lost`` is the information that a rank table cannot hold, ``changed`` what differs from the file, one
    phrase each.
    """

    table: RankTable
    lost: list[str]
    changed: list[str]


def choose(table: ServiceTable, name: str) -> Instance:
    """Return an instance by its name: its group_id, or ``GROUP/SERVER`` where servers are instances.

    Args:
        name: SERVER is a server_ip or a server_id.

    Raises:
        TableError: No instance or several instances have this name.
    """
    wanted, _, server = name.partition("/")
    found = [one for one in table.instances if table.groups[one.group].name == wanted]
    if not found:
        raise TableError(f"the service table has no instance {wanted}", hint=_known(table, wanted))
    if server:
        found = [one for one in found if len(one.servers) == 1 and server in _names(table, one.servers[0])]
        if not found:
            message = f"group {wanted} has no server {server} that is an instance"
            raise TableError(message, hint=f"use --instance {wanted}, or see `hccl-tools show`")
    if len(found) > 1:
        example = table.servers[found[0].servers[0]].text("server_ip")
        what = "instances with this server" if server else "instances, one per server"
        hint = f"name a server: --instance {wanted}/{example}"
        raise TableError(f"group {wanted} has {len(found)} {what}", hint=hint)
    return found[0]


def _known(table: ServiceTable, wanted: str) -> str:
    others = {group.name: group.role for group in table.groups if group.role != "instance"}
    if wanted in others:
        return f"group {wanted} is the {others[wanted]}, which has no devices"
    names = list(dict.fromkeys(table.groups[one.group].name for one in table.instances))
    return f"its instances are {and_more(names, _SHOWN)}" if names else "it has no instances"


def _names(table: ServiceTable, server: int) -> set[str | None]:
    return {table.servers[server].text(key) for key in ("server_ip", "server_id")}


def rank_table(table: ServiceTable, instance: Instance, *, renumber: bool = False) -> InstanceTable:
    """Return the rank table of an instance without faults.

    Servers with one server_id, such as pods on one host, become one server. A server of its own keeps its
    server_ip as ``container_ip``, from which the platform made it. The ranks are those of the file, because
    the processes of the instance are started with them.

    Args:
        renumber: Give ranks other than 0 to N-1 new numbers, in the order of the old ranks; in file order
            if two devices have the same rank.

    Raises:
        TableError: The ranks are not 0 to N-1, and ``renumber`` is not set.

    Source:
        MindIE-Motor gen_global_ranktable.py, add_mindie_server_group.
    """
    hosts: dict[str, list[int]] = {}
    for index in instance.servers:
        hosts.setdefault(table.servers[index].text("server_id") or "", []).append(index)
    servers: list[Server] = []
    rows: list[int] = []
    for host, members in hosts.items():
        first = len(rows)
        rows += [row for index in members for row in table.servers[index].rows]
        alone = table.servers[members[0]].text("server_ip") if len(members) == 1 else None
        fields = {} if alone is None else {"container_ip": alone}
        servers.append(Server(host, range(first, len(rows)), fields=fields))
    columns: dict[str, Column] = {
        key: [table.devices[row].get(key) for row in rows] for key in ("device_id", "device_ip")
    }
    columns["rank_id"], changed = _ranks(table, instance, rows, renumber=renumber)
    pods = _super_pods(table, instance, list(hosts))
    sdids = [table.devices[row].get("super_device_id") for row in rows]
    is_1_2 = bool(pods) and None not in sdids
    if is_1_2:
        columns["super_device_id"] = sdids
    status = table.fields.get("status", "completed")
    made = RankTable("1.0", servers, columns, status)
    if is_1_2:
        made.format, made.super_pods = "1.2", pods
    return InstanceTable(made, _lost(table, instance, rows, servers), changed)


def _ranks(
    table: ServiceTable, instance: Instance, rows: Sequence[int], *, renumber: bool
) -> tuple[list[str], list[str]]:
    """Return the rank of each row as text, and the change as a phrase."""
    texts = [str(table.devices[row]["rank_id"]) for row in rows]
    numbers = [table.rank_numbers[row] or 0 for row in rows]
    if sorted(numbers) == list(range(len(rows))):
        return texts, []
    distinct = sorted(set(numbers))
    is_dense = len(distinct) == len(rows)
    problem = (
        f"ranks {fold(distinct)}" if is_dense else f"{len(rows)} devices with only {len(distinct)} ranks"
    )
    if not renumber:
        raise TableError(
            f"{instance.name} has {problem}; HCCL requires the ranks 0-{len(rows) - 1}",
            hint="--renumber gives them new numbers; its processes must then be started with the new ranks",
        )
    order = sorted(range(len(rows)), key=numbers.__getitem__) if is_dense else list(range(len(rows)))
    new = [""] * len(rows)
    for rank, place in enumerate(order):
        new[place] = str(rank)
    by = "in the order of the old ranks" if is_dense else "in the order of the file"
    return new, [f"{problem} became 0-{len(rows) - 1}, {by}"]


def _super_pods(table: ServiceTable, instance: Instance, hosts: Sequence[str]) -> list[SuperPod]:
    names = table.super_pods(instance.group)
    pods: dict[str, SuperPod] = {}
    for host in hosts:
        if host not in names:
            return []
        pods.setdefault(names[host], SuperPod(names[host], [])).server_ids.append(host)
    return list(pods.values())


def _lost(
    table: ServiceTable, instance: Instance, rows: Sequence[int], servers: Sequence[Server]
) -> list[str]:
    lost = []
    for key in _SERVER_KEYS:
        having = sum(key in table.servers[index].entry for index in instance.servers)
        lost += [f"{key} of {count(having, 'server')}"] if having else []
    having = sum("device_logical_id" in table.devices[row] for row in rows)
    lost += [f"device_logical_id of {count(having, 'device')}"] if having else []
    if len(servers) < len(instance.servers):
        joined = count(len(servers), "server")
        lost.append(f"the server_ip of {len(instance.servers)} pods, which became {joined}")
    return lost
