"""The ranks of a job and where they run, from its table."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.host.local_addresses import interface_with, is_reachable, source_address
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import NOT_A_MEMBER
from hccl_tools.launch.planning import local_server, program_check
from hccl_tools.launch.planning.placement import place_ranks, rendezvous_address
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import count, operand
from hccl_tools.records import NamedTuple
from hccl_tools.table import model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.launch.model.request import Devices, Hosts, JobTable, LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings, VisibleDevices
    from hccl_tools.table.model import Server

LOOPBACK = "127.0.0.1"


class Job(NamedTuple):
    """The ranks of a job and where each runs."""

    #: By rank.
    placements: list[RankPlacement]
    #: The index of this host's server; ``None`` if all ranks run here or an engine starts them.
    local_server: int | None
    server_count: int
    #: The rendezvous address of the ranks: the address of rank 0's host.
    master: str
    table: JobTable | None = None
    #: Whether the device ids are placeholders: there is no table and fewer devices than ranks.
    devices_are_placeholders: bool = False

    @property
    def local(self) -> list[RankPlacement]:
        """The placements of this host."""
        return [
            placement for placement in self.placements if self.local_server in (None, placement.server_index)
        ]


def own_interface(job: Job) -> tuple[int, str] | None:
    """Return the index of this host's server and its interface with the address of the job.

    ``None`` in a job on one server, for a host outside the job, and if no interface has an address of the
    job: gloo then connects to the address of the host's own name, which /etc/hosts often maps to 127.0.1.1.
    """
    here = job.local_server
    if job.server_count == 1 or here is None or here == NOT_A_MEMBER:
        return None
    hosts = list(dict.fromkeys(one.host for one in job.placements if one.server_index == here))
    others = (one.host for one in job.placements if one.server_index != here)
    # The address from which a host sends to itself is its own.
    for destination in (*hosts, next(others), job.master):
        address = source_address(destination)
        if address is not None and is_reachable(address) and (name := interface_with(address)) is not None:
            return here, name
    return None


def super_pods(job: Job) -> tuple[str | None, ...]:
    """Return the super pod of each server of a table with several super pods; empty for another table."""
    table = job.table and job.table.table
    if not table or len(table.super_pods or ()) < 2:
        return ()
    pods = model.super_pods(table)
    return tuple(pods.get(server.server_id) for server in table.servers)


def of_table(loaded: JobTable, request: LaunchRequest, around: Surroundings, notes: list[str]) -> Job:
    """Return the job of a table; append notes for the user to ``notes``.

    Raises:
        UsageError: An option contradicts the table.
        LaunchError: This host or its devices contradict the table.
    """
    notes += (*((loaded.why,) if loaded.why else ()), *loaded.notes)
    hosts, devices, start = request.hosts, request.devices, request.start
    table, placements = loaded.table, place_ranks(loaded.table)
    is_local = not engines.get(start.engine).starts_all_hosts
    typed = (devices.ranks, devices.per_node, hosts.node_count, hosts.node_rank, hosts.server, *hosts.ips)
    if request.part is None and any(one is not None for one in typed):
        check_machines(loaded, placements, hosts, devices, start.engine)
    here, servers, master = None, len(table.servers), LOOPBACK
    if hosts.all_here:
        _check_all_here(devices, len(placements), cpu=start.cpu)
        servers = 1
    else:
        if is_local:  # Otherwise each host's supervisor finds and checks its server.
            local_check = request.table.local_check
            found = local_server.find(table, placements, hosts, around, local_check=local_check, notes=notes)
            here = found if servers > 1 or found == NOT_A_MEMBER else None
        master = hosts.master_address or rendezvous_address(table, placements)
    job = Job(placements, here, servers, master, loaded)
    if devices.listed is not None and request.part is None and request.table.made is None:
        check_devices(loaded, job.local, devices.listed, around.visible)
    if is_local and not (hosts.all_here or start.cpu or devices.ignore_visible):
        _check_visible(job.local, around.visible)
    return job


def _check_all_here(devices: Devices, count: int, *, cpu: bool) -> None:
    if not cpu:
        raise UsageError("--all-here needs --cpu", hint="add --cpu")
    if count > devices.max_ranks:
        allowed = f"--max-ranks {devices.max_ranks}"
        raise LaunchError(
            f"the table has {count} ranks, more than {allowed} allows on one machine",
            hint=f"add --max-ranks {count} if this machine has the memory for them",
        )


def _check_visible(local: Sequence[RankPlacement], visible: VisibleDevices) -> None:
    outside = visible.outside([placement.device for placement in local])
    if not outside:
        return
    listed = ", ".join(map(str, outside))
    raise local_server.OtherDevicesError(
        f"the table uses device{'s' if len(outside) > 1 else ''} {listed}, outside the visible devices "
        f"{', '.join(map(str, visible.chosen or ()))} ({visible.source})",
        hint="make a table of the visible devices, or use --ignore-visible if the variable is wrong",
    )


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
    servers, devices = loaded.table.servers, sorted(loaded.table.device_numbers, key=lambda one: one or 0)
    if not ranks or ranks >= len(loaded.table) or not os.path.isabs(loaded.path):
        return None
    suggestions = program_check.suggestions()
    if len(servers) == 1:
        ids = [number for number in devices[:ranks] if number is not None]
        after, kept = suggestions.subset(loaded.table, devices=ids), f"--devices {number_list.fold(ids)}"
    else:
        names = [server.server_id for server in servers[: ranks * len(servers) // len(loaded.table)]]
        if not names:
            return None
        after, kept = suggestions.subset(loaded.table, servers=names), f"--servers {quote(','.join(names))}"
    if len(after) != ranks or not suggestions.check_table(after).ok:
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
