"""The hosts of a job that was started by hand on each of them, also without a plan because of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.launch import engines
from hccl_tools.launch.cluster.job_addresses import of_table, resolved
from hccl_tools.launch.planning import local_server, placement, ports, table_source, without_table
from hccl_tools.launch.planning.visible_devices import surroundings
from hccl_tools.records import NamedTuple
from hccl_tools.validation import checker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.planning.visible_devices import Surroundings
    from hccl_tools.table.model import RankTable


class JobHosts(NamedTuple):
    """The hosts of a job, as one of them knows them.

    Attributes:
        own: The index of this host's server.
        master: The index of rank 0's server.
        names: The names of the servers, by index.
        address: The address and port of the rendezvous.
        addresses: The addresses of all hosts; ``None`` if the job has no table.
    """

    own: int
    master: int
    names: tuple[str, ...]
    address: tuple[str, int]
    addresses: frozenset[str] | None

    @property
    def name(self) -> str:
        """The name of this host."""
        return self.names[self.own]


def of_plan(prepared: PreparedLaunch) -> JobHosts | None:
    """Return the hosts of a plan; ``None`` if they do not have a rendezvous."""
    plan = prepared.plan
    if plan.local_server is None or plan.rendezvous is None:
        return None
    names = {process.server_index: process.host for process in plan.ranks}
    return _hosts(plan.local_server, plan.ranks[0].server_index, names, plan.rendezvous, prepared.table)


def of_request(request: LaunchRequest, environ: Mapping[str, str]) -> JobHosts | None:
    """Return the hosts of a job without a plan, or ``None`` if they cannot be determined.

    A table with errors may have valid servers.
    """
    if engines.get(request.start.engine).starts_all_hosts or request.hosts.all_here:
        return None
    try:
        around = surroundings(environ, (), cpu=request.start.cpu, ignore_visible=True)
        own, placements, master, table = _places(request, around)
        port = ports.chosen_port(request.hosts.start_port, environ)[0] or ports.DEFAULT_PORT
    except HcclToolsError:
        return None
    names = {each.server_index: each.host for each in placements}
    if own < 0 or len(names) < 2 or sorted(names) != [*range(len(names))]:
        return None
    return _hosts(own, placements[0].server_index, names, (master, port), table)


def _places(
    request: LaunchRequest, around: Surroundings
) -> tuple[int, Sequence[RankPlacement], str, RankTable | None]:
    """Return the index of this host's server, the places of the ranks, rank 0's address, and the table."""
    located = table_source.locate(request.table, around.environ)
    if located is None:
        job = without_table.job_of(request, around, [])
        return -1 if job.local_server is None else job.local_server, job.placements, job.master, None
    table = None if located[0] == "-" else checker.validate(located[0], product=request.table.product).table
    if table is None:
        return -1, (), "", None
    placements, hosts = placement.place_ranks(table), request.hosts
    own = local_server.find(table, placements, hosts, around, local_check=False, notes=[])
    return own, placements, hosts.master_address or placement.rendezvous_address(table, placements), table


def _hosts(
    own: int, master: int, names: Mapping[int, str], address: tuple[str, int], table: RankTable | None
) -> JobHosts:
    listed = tuple(names[server] for server in sorted(names))
    known = None if table is None else frozenset(resolved(listed) | of_table(table))
    return JobHosts(own, master, listed, address, known)
