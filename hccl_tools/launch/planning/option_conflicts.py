"""Refuse options that contradict the rank table, which places every rank."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch import engines
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import count, operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.launch.model.request import Devices, Hosts, JobTable
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import VisibleDevices
    from hccl_tools.table.model import Server


def check_machines(
    loaded: JobTable, placements: Sequence[RankPlacement], hosts: Hosts, devices: Devices, engine: str
) -> None:
    """Refuse numbers of ranks and machines, and addresses, that differ from the table's.

    Raises:
        UsageError: An option contradicts the table.
    """
    for problem in _problems(loaded, placements, hosts, devices, engine):
        hint = "; ".join(filter(None, [loaded.conflict_hint, _smaller_table(loaded, devices.ranks)]))
        raise UsageError(problem, hint=hint)


def _smaller_table(loaded: JobTable, ranks: int | None) -> str | None:
    """Return the command for a table with fewer ranks, if HCCL accepts the first devices or servers."""
    from hccl_tools.transform.subsetting import subset  # noqa: PLC0415  (only for a wrong number)
    from hccl_tools.validation.checker import check_table  # noqa: PLC0415

    servers, devices = loaded.table.servers, sorted(loaded.table.device_numbers, key=lambda one: one or 0)
    if not ranks or ranks >= len(loaded.table) or not os.path.isabs(loaded.path):
        return None
    if len(servers) == 1:
        ids = [number for number in devices[:ranks] if number is not None]
        after, kept = subset(loaded.table, devices=ids), f"--devices {number_list.fold(ids)}"
    else:
        names = [server.server_id for server in servers[: ranks * len(servers) // len(loaded.table)]]
        if not names:
            return None
        after, kept = subset(loaded.table, servers=names), f"--servers {quote(','.join(names))}"
    if len(after) != ranks or not check_table(after).ok:
        return None
    return f"for a table of these ranks: `hccl-tools subset {operand(loaded.path)} {kept}`"


def _problems(
    loaded: JobTable, placements: Sequence[RankPlacement], hosts: Hosts, devices: Devices, engine: str
) -> Iterator[str]:
    servers, name = len(loaded.table.servers), loaded.path
    if devices.ranks is not None and devices.ranks != len(placements):
        yield f"-n {devices.ranks}, but the table has {count(len(placements), 'rank')} ({name})"
    if hosts.node_count is not None and hosts.node_count != servers:
        asked = f"{count(hosts.node_count, 'machine')} (--nnodes, or -n divided by --nproc-per-node)"
        yield f"{asked}, but {name} has {count(servers, 'server')}"
    if hosts.node_rank is not None and hosts.node_rank >= servers:
        yield f"--node-rank {hosts.node_rank}, but {name} has {count(servers, 'server')}"
    for server in loaded.table.servers if devices.per_node is not None else ():
        if len(server.rows) != devices.per_node:
            own, asked = count(len(server.rows), "rank"), count(devices.per_node or 0, "rank")
            yield f'{asked} per machine (--nproc-per-node), but "{server.server_id}" has {own} in {name}'
    yield from _other_addresses(loaded, placements, hosts.ips)
    one = "--server" if hosts.server is not None else "--node-rank"
    if servers > 1 and (hosts.server is not None or hosts.node_rank is not None):
        if hosts.all_here:
            yield f"--all-here runs the ranks of all servers, but {one} selects a single server"
        elif engines.get(engine).starts_all_hosts:
            yield f"--engine {engine} starts the ranks of all servers, but {one} selects a single server"


def _other_addresses(
    loaded: JobTable, placements: Sequence[RankPlacement], ips: Sequence[str]
) -> Iterator[str]:
    if not ips:
        return
    servers, name = loaded.table.servers, loaded.path
    names = [_names(server) for server in servers]
    known = ", ".join(server.server_id for server in servers[:4])
    for machine in ips:
        if not any(machine in own for own in names):
            yield f"--ips names {machine}, which is not a server of {name} ({known})"
    if len(ips) != len(names):
        yield f"--ips names {count(len(ips), 'machine')}, but {name} has {count(len(names), 'server')}"
    if ips[0] not in names[placements[0].server_index]:
        yield f"--ips begins with {ips[0]}, but rank 0 is on {placements[0].host} in {name}"


def _names(server: Server) -> set[object]:
    fields = (server.fields.get(key) for key in ("container_ip", "pod_name"))
    return {server.server_id, server.host_ip, *fields} - {None}


def check_devices(
    loaded: JobTable, local: Sequence[RankPlacement], listed: str, visible: VisibleDevices
) -> None:
    """Refuse ``--devices`` that differ from the devices of the table on a server of ``local``.

    Raises:
        UsageError: The devices differ from those of the table.
    """
    typed = sorted(visible.named_by(listed))
    used: dict[int, list[int]] = {}
    for placement in local:
        used.setdefault(placement.server_index, []).append(placement.device)
    for devices in used.values():
        if sorted(devices) != typed:
            named, has = (", ".join(map(str, ids)) for ids in (typed, sorted(devices)))
            raise UsageError(
                f"--devices {listed} selects devices {named} of this host, but {loaded.path} uses {has}",
                hint=loaded.conflict_hint,
            )
