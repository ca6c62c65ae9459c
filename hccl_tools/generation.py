"""From the facts about hosts to a rank table: pure, no input and no output."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.table import Group, RankTable, Server, SuperPod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.discover.facts import DeviceFacts, HostFacts
    from hccl_tools.table import Column, Format

#: What every generator of these tables writes beside the devices; HCCL does not read it.
_FIELDS = {"host_nic_ip": "reserve"}


def table(hosts: Sequence[HostFacts], *, table_format: Format = "1.0") -> RankTable:
    """Return the table of some hosts.

    Args:
        hosts: In the order in which they become servers; ranks run along the devices of one host, then on
            to the next.
        table_format: ``1.0``, ``1.2`` or ``group_list``; a group_list has no rank ids, HCCL numbers its
            devices by server_id as text, then by device id.

    Raises:
        TableError: A host lacks something that the format needs.
    """
    devices = [device for host in hosts for device in host.devices]
    columns: dict[str, Column] = {"device_id": [str(device.device_id) for device in devices]}
    if any(device.ips for device in devices):
        columns["device_ip"] = [",".join(device.ips) or None for device in devices]
    columns["rank_id"] = [str(rank) for rank in range(len(devices))]
    bounds = pairwise(accumulate((len(host.devices) for host in hosts), initial=0))
    in_groups = table_format == "group_list"
    servers = [
        Server(host.server_id, range(*rows), fields={"pod_name": str(pod)} if in_groups else {**_FIELDS})
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


def _refuse_order(hosts: Sequence[HostFacts]) -> None:
    """Refuse an order of ranks that a group_list cannot say: HCCL numbers by server_id, then by device id."""
    order = [(host.server_id, device.device_id) for host in hosts for device in host.devices]
    if order != sorted(order):
        raise TableError(
            "a group_list cannot keep this order: it has no rank ids, and HCCL numbers servers by their ids "
            "as text and devices by number",
            hint="name the devices ascending, or make a 1.0 table",
        )


def _super_device_id(host: HostFacts, device: DeviceFacts) -> str:
    if device.super_device_id is None:
        raise TableError(
            f"device {device.device_id} of {host.server_id} has no super_device_id, which a 1.2 table needs",
            hint="a machine outside super-pod mode takes --format 1.0",
        )
    return str(device.super_device_id)


def _super_pods(hosts: Sequence[HostFacts]) -> list[SuperPod]:
    pods: dict[str, SuperPod] = {}
    for host in hosts:
        if host.super_pod_id is None:
            raise TableError(
                f"{host.server_id} is in no super pod, which a 1.2 table needs",
                hint="a machine outside super-pod mode takes --format 1.0",
            )
        pods.setdefault(host.super_pod_id, SuperPod(host.super_pod_id, [])).server_ids.append(host.server_id)
    return list(pods.values())


def file_name(made: RankTable) -> str:
    """Return the name users know: ``hccl_4p_4567_10.0.0.1.json``; for several servers ``hccl_2s_16p.json``.

    The device ids ascend and stand joined, those of two digits too, whatever the rank order.
    """
    if len(made.servers) > 1:
        return f"hccl_{len(made.servers)}s_{len(made)}p.json"
    ids = "".join(map(str, sorted(number for number in made.device_numbers if number is not None)))
    return f"hccl_{len(made)}p_{ids}_{made.servers[0].server_id}.json"
