"""The ranks of a job and where they run: from its table, or from devices alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import NOT_A_MEMBER
from hccl_tools.launch.planning import local_server
from hccl_tools.launch.planning.placement import place_ranks, place_ranks_without_table, rendezvous_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.request import Devices, Hosts, JobTable, LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings, VisibleDevices

LOOPBACK = "127.0.0.1"
_NO_NPU = "no NPU on this host: ranks get device numbers all the same; --cpu rehearses on the CPU"
_MORE_THAN_DEVICES = "more ranks than devices, and no table: DEVICE_ID only counts, no device is looked at"


class Job(NamedTuple):
    """The ranks of a job and where each runs."""

    #: By rank.
    placements: list[RankPlacement]
    #: The index of this host's server; ``None`` where all ranks run here or an engine starts them.
    local_server: int | None
    server_count: int
    #: The address where the ranks meet: that of rank 0's host.
    master: str
    table: JobTable | None = None
    #: Whether the device ids are only numbers: there is no table, and there are fewer devices than ranks.
    devices_are_placeholders: bool = False

    @property
    def local(self) -> list[RankPlacement]:
        """The placements of this host."""
        return [
            placement for placement in self.placements if self.local_server in (None, placement.server_index)
        ]


def of_request(request: LaunchRequest, around: Surroundings, table: JobTable | None, notes: list[str]) -> Job:
    """Return the job that was asked for; sentences for the user are added to ``notes``.

    Raises:
        UsageError: Options exclude each other, or contradict the table.
        LaunchError: This host or its devices contradict the table.
    """
    if table is not None:
        notes += (*((table.why,) if table.why else ()), *table.notes)
        return of_table(table, request, around, notes)
    if not (around.nodes or request.start.cpu or request.table.no_table):
        notes.append(_NO_NPU)
    job = _without_table(request, around)
    notes += [_MORE_THAN_DEVICES] if job.devices_are_placeholders else []
    return job


def of_table(loaded: JobTable, request: LaunchRequest, around: Surroundings, notes: list[str]) -> Job:
    """Return the job of a table; sentences for the user are added to ``notes``.

    Raises:
        UsageError: An option contradicts the table.
        LaunchError: This host or its devices contradict it.
    """
    hosts, devices, start = request.hosts, request.devices, request.start
    table, placements = loaded.table, place_ranks(loaded.table)
    is_local = not engines.get(start.engine).starts_all_hosts
    if request.part is None and _names_machines(hosts, devices):
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_machines(loaded, placements, hosts, devices, start.engine)
    local, servers, master = None, len(table.servers), LOOPBACK
    if hosts.all_here:
        _check_all_here(devices, len(placements), cpu=start.cpu)
        servers = 1
    else:
        if is_local:  # Otherwise each host is found, and checked, by its own supervisor.
            local = _local_server(loaded, placements, request, around, notes)
        master = hosts.master_address or rendezvous_address(table, placements)
    job = Job(placements, local, servers, master, loaded)
    if devices.listed is not None and request.part is None and request.table.made is None:
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_devices(loaded, job.local, devices.listed, around.visible)
    if is_local and not (hosts.all_here or start.cpu or devices.ignore_visible):
        _check_visible(job.local, around.visible)
    return job


def _names_machines(hosts: Hosts, devices: Devices) -> bool:
    named = (devices.ranks, devices.per_node, hosts.node_count, hosts.node_rank, hosts.server)
    return bool(hosts.ips) or any(one is not None for one in named)


def _local_server(
    loaded: JobTable,
    placements: Sequence[RankPlacement],
    request: LaunchRequest,
    around: Surroundings,
    notes: list[str],
) -> int | None:
    """Return the index of this host's server, ``None`` where it is the only one."""
    here = local_server.find(
        loaded.table,
        placements,
        request.hosts,
        around,
        local_check=request.table.local_check,
        notes=notes,
    )
    if request.hosts.node_rank is not None:
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_node_rank(loaded, placements, request.hosts, here)
    return here if len(loaded.table.servers) > 1 or here == NOT_A_MEMBER else None


def _without_table(request: LaunchRequest, around: Surroundings) -> Job:
    from hccl_tools.launch.planning import without_table  # noqa: PLC0415

    start, no_table = request.start, request.table.no_table
    names = without_table.host_names(request.hosts)
    if len(names) > 1 and engines.get(start.engine).starts_all_hosts:
        raise UsageError(
            f"--engine {start.engine} brings ranks to other machines by a rank table or --hostfile",
            hint="add one of them, or leave --engine out and type the command on each machine",
        )
    here = without_table.this_host(names, request.hosts)
    devices = without_table.choose_devices(
        request.devices, around.visible, len(names), cpu=start.cpu, no_table=no_table
    )
    if len(names) > 1 and start.method == "table":
        raise UsageError(
            "--start table needs a rank table for several machines", hint="add --rank-table FILE"
        )
    return Job(
        place_ranks_without_table(devices, names),
        here if len(names) > 1 else None,
        len(names),
        without_table.rendezvous_address(names, request.hosts),
        devices_are_placeholders=no_table and bool(around.visible.outside(devices)),
    )


def _check_all_here(devices: Devices, count: int, *, cpu: bool) -> None:
    if not cpu:
        raise UsageError("--all-here is a rehearsal and needs --cpu", hint="add --cpu")
    if count > devices.max_ranks:
        allowed = f"--max-ranks {devices.max_ranks}"
        raise LaunchError(
            f"the table has {count} ranks, more than {allowed} allows on one machine",
            hint=f"add --max-ranks {count} if this machine can bear them",
        )


def _check_visible(local: Sequence[RankPlacement], visible: VisibleDevices) -> None:
    outside = visible.outside([placement.device for placement in local])
    if not outside:
        return
    listed = ", ".join(map(str, outside))
    raise LaunchError(
        f"the table uses device{'s' if len(outside) > 1 else ''} {listed}, outside the visible "
        f"{', '.join(map(str, visible.chosen or ()))} ({visible.source})",
        hint="make a table of the visible devices, or say --ignore-visible if the variable is wrong",
    )
