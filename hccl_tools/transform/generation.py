"""Make a rank table from the facts about hosts."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError
from hccl_tools.formats import v2_0
from hccl_tools.notation.file_part import file_part
from hccl_tools.table.model import Group, RankTable, Server, SuperPod
from hccl_tools.table.products import assumed_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.host.facts import DeviceFacts, HostFacts
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import Column

#: A key of the server that every generator of these tables writes and HCCL does not read.
_FIELDS = {"host_nic_ip": "reserve"}


def table(hosts: Sequence[HostFacts], *, table_format: Format = "1.0") -> RankTable:
    """Return a table with the given hosts as servers.

    Args:
        hosts: In the order of the servers; ranks are numbered host by host.
        table_format: A group_list has no rank ids: HCCL numbers its devices by server_id as text, then by
            device id.

    Raises:
        TableError: A host lacks a value that the format requires.
    """
    if table_format == "2.0":
        return _of_levels(hosts)
    devices = [device for host in hosts for device in host.devices]
    columns: dict[str, Column] = {"device_id": [str(device.device_id) for device in devices]}
    if any(device.ips for device in devices):
        columns["device_ip"] = [",".join(device.ips) or None for device in devices]
    columns["rank_id"] = [str(rank) for rank in range(len(devices))]
    bounds = pairwise(accumulate((len(host.devices) for host in hosts), initial=0))
    in_groups = table_format == "group_list"
    ports = [str(host.device_port) if host.device_port else None for host in hosts for _ in host.devices]
    if any(ports):
        columns["device_port"] = ports
    servers = [
        Server(host.server_id, range(*rows), host.host_ip, _fields(host, pod, in_groups))
        for pod, (host, rows) in enumerate(zip(hosts, bounds, strict=True))
    ]
    made = RankTable(table_format, servers, columns)
    if in_groups:
        _refuse_order(hosts)
        made.groups = [Group("", range(len(servers)))]
        made.declared = {
            "group_count": "1",
            "device_count": [str(len(made))],
            "instance_count": [str(len(servers))],
        }
    if table_format == "1.2":
        columns["super_device_id"] = [
            _super_device_id(host, device) for host in hosts for device in host.devices
        ]
        made.super_pods = _super_pods(hosts)
    return made


def _fields(host: HostFacts, pod: int, in_groups: bool) -> dict[str, Any]:
    """Return the keys of a server except its devices."""
    if in_groups:
        return {"pod_name": str(pod)}
    return {**_FIELDS, **({"container_ip": host.container_ip} if host.container_ip else {})}


def _of_levels(hosts: Sequence[HostFacts]) -> RankTable:
    ranks: list[dict[str, Any]] = []
    for host in hosts:
        for device in host.devices:
            if not device.levels:
                raise TableError(
                    f"device {device.device_id} of {host.server_id} has no network levels, which a 2.0 table "
                    "needs",
                    hint=f"a 2.0 table is for an {assumed_for('2.0').title}",
                )
            ports = {"device_port": host.device_port} if host.device_port else {}
            ids = {"rank_id": len(ranks), "local_id": device.local_id, "device_id": device.device_id}
            ranks.append({**ids, **ports, "level_list": list(device.levels)})
    return v2_0.read({"version": "2.0", "status": "completed", "rank_count": len(ranks), "rank_list": ranks})


def _refuse_order(hosts: Sequence[HostFacts]) -> None:
    order = [(host.server_id, device.device_id) for host in hosts for device in host.devices]
    if order != sorted(order):
        raise TableError(
            "a group_list cannot keep this order: it has no rank ids, and HCCL numbers servers by their ids "
            "as text and devices by number",
            hint="specify the devices in ascending order, or make a 1.0 table",
        )


def _super_device_id(host: HostFacts, device: DeviceFacts) -> str:
    if device.super_device_id is None:
        raise TableError(
            f"device {device.device_id} of {host.server_id} has no super_device_id, which a 1.2 table needs",
            hint="on a machine outside super-pod mode use --format 1.0",
        )
    return str(device.super_device_id)


def _super_pods(hosts: Sequence[HostFacts]) -> list[SuperPod]:
    pods: dict[str, SuperPod] = {}
    for host in hosts:
        if host.super_pod_id is None:
            raise TableError(
                f"{host.server_id} has no super pod, which a 1.2 table needs",
                hint="on a machine outside super-pod mode use --format 1.0",
            )
        pods.setdefault(host.super_pod_id, SuperPod(host.super_pod_id, [])).server_ids.append(host.server_id)
    return list(pods.values())


def file_name(made: RankTable, server_id: str | None = None) -> str:
    """Return the usual name: ``hccl_4p_4567_10.0.0.1.json``, or for several servers ``hccl_2s_16p.json``.

    The device ids are concatenated in ascending order, regardless of the ranks. ``server_id`` is the id of
    the only host if the table does not have it (2.0). It may be a text of a log or of another host.
    """
    if len(made.servers) > 1 and server_id is None:
        return f"hccl_{len(made.servers)}s_{len(made)}p.json"
    ids = "".join(map(str, sorted(number for number in made.device_numbers if number is not None)))
    return f"hccl_{len(made)}p_{ids}_{file_part(server_id or made.servers[0].server_id)}.json"
