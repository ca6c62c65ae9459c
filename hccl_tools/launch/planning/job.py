"""The ranks of a job and where they run, from its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import NOT_A_MEMBER
from hccl_tools.launch.planning import local_server
from hccl_tools.launch.planning.placement import place_ranks, rendezvous_address
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.request import Devices, JobTable, LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings, VisibleDevices

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
    from hccl_tools.host.local_addresses import interface_with, is_reachable, source_address  # noqa: PLC0415

    hosts = list(dict.fromkeys(one.host for one in job.placements if one.server_index == here))
    others = (one.host for one in job.placements if one.server_index != here)
    # The address from which a host sends to itself is its own.
    for destination in (*hosts, next(others), job.master):
        address = source_address(destination)
        if address is not None and is_reachable(address) and (name := interface_with(address)) is not None:
            return here, name
    return None


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
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_machines(loaded, placements, hosts, devices, start.engine)
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
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_devices(loaded, job.local, devices.listed, around.visible)
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
    raise LaunchError(
        f"the table uses device{'s' if len(outside) > 1 else ''} {listed}, outside the visible devices "
        f"{', '.join(map(str, visible.chosen or ()))} ({visible.source})",
        hint="make a table of the visible devices, or use --ignore-visible if the variable is wrong",
    )
