"""Determine the job of an MPI rank without ``launch``: from a table, else from the devices in order."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch.model.request import (
    Devices,
    Hosts,
    LaunchRequest,
    Part,
    Program,
    StartChoice,
    TableChoice,
)
from hccl_tools.launch.planning import (
    composition,
    interpreter,
    local_npus,
    program_check,
    table_source,
    without_table,
)
from hccl_tools.launch.planning import job as jobs
from hccl_tools.launch.planning.job import Job
from hccl_tools.launch.planning.placement import place_ranks, place_ranks_without_table
from hccl_tools.launch.planning.visible_devices import surroundings
from hccl_tools.notation.phrases import count, operand
from hccl_tools.processes import procfs
from hccl_tools.programs.mpirun import is_open_mpi_launcher
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import JobTable
    from hccl_tools.launch.mpi.options import RankOptions
    from hccl_tools.launch.mpi.world import MpiWorld
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings


class RankJob(NamedTuple):
    """A rank's job and its sources.

    ``why`` is the source of the table, or of the devices in a job without a table. Without a table only the
    placements of this host are known.
    """

    job: Job
    mine: RankPlacement
    request: LaunchRequest
    around: Surroundings
    python: interpreter.Interpreter
    start: Start
    start_reason: str
    why: str
    cpu: bool

    @property
    def here(self) -> list[RankPlacement]:
        """The placements of this rank's server, by rank."""
        return [
            placement for placement in self.job.placements if placement.server_index == self.mine.server_index
        ]

    @property
    def ranks_meet(self) -> bool:
        """Whether the ranks need a rendezvous port on rank 0's host."""
        return composition.ranks_meet(self.start, self.python.frameworks, cpu=self.cpu)


def find(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> RankJob:
    """Return the job of this process.

    Raises:
        HcclToolsError: The table, the devices or the program contradict what mpirun has started.
    """
    request = _request(options, world)
    around = surroundings(environ, None, cpu=options.cpu, ignore_visible=options.ignore_visible)
    wanted = around.uses_npus and request.table.local_check and not request.hosts.all_here
    with local_npus.compared(around.nodes, around.environ, wanted=wanted) as addresses:
        return _found(request, options, world, environ, around._replace(addresses=addresses))


def _found(
    request: LaunchRequest,
    options: RankOptions,
    world: MpiWorld,
    environ: Mapping[str, str],
    around: Surroundings,
) -> RankJob:
    loaded = table_source.find(request, around, "")
    # Under `launch` the start and the need for MindSpore's scheduler are already determined.
    # Paddle's ranks need a port under the start "table".
    ask = options.scheduler_port is None and options.start in {None, "mpi", "table"}
    python = interpreter.find(request.program, environ, ask=ask)
    start, reason = _start(options, python.frameworks, has_table=loaded is not None)
    # MindSpore has no MPI start on the CPU: there its ranks need a scheduler at a known address.
    can_meet = world.one_host or options.master_address is not None or loaded is not None
    for_mindspore = start == "mpi" and not around.nodes and "mindspore" in python.frameworks
    cpu = options.cpu or (for_mindspore and can_meet)
    if loaded is not None:
        _check_passed_on(loaded, options, world, environ)
        job = _of_table(loaded, request, around, world)
        _check_devices(options, loaded, job, world)
        why = loaded.why or f"--rank-table {loaded.path}"
    else:
        job, why = _in_order(options, request, around, world)
        _check_meeting(job, start, request, meet=composition.ranks_meet(start, python.frameworks, cpu=cpu))
    program_check.check(request.program, environ)
    mine = next(placement for placement in job.placements if placement.rank == world.rank)
    return RankJob(job, mine, request, around, python, start, reason, why, cpu)


def _request(options: RankOptions, world: MpiWorld) -> LaunchRequest:
    under_launch = options.run_dir is not None
    return LaunchRequest(
        program=Program(options.program, options.kind, options.python, own_python=True),
        table=TableChoice(
            file=options.rank_table,
            # The launcher has already looked for a table.
            no_table=options.no_table or (under_launch and options.rank_table is None),
            product=options.product,
            ignore=options.ignore,
            local_check=options.local_check and not under_launch,
        ),
        hosts=Hosts(
            server=options.server,
            master_address=options.master_address,
            all_here=options.cpu and world.one_host,
        ),
        devices=Devices(ignore_visible=options.ignore_visible, max_ranks=sys.maxsize),
        start=StartChoice(method=options.start, cpu=options.cpu),
        part=Part(options.run_dir) if options.run_dir is not None else None,
    )


def _start(options: RankOptions, frameworks: Mapping[str, str], *, has_table: bool) -> tuple[Start, str]:
    if options.start is not None:
        return options.start, "--start"
    if not has_table:
        return "mpi", "ranks are MPI processes"
    return interpreter.choose_start(frameworks, cpu=options.cpu)


def _check_passed_on(
    loaded: JobTable, options: RankOptions, world: MpiWorld, environ: Mapping[str, str]
) -> None:
    """Refuse a table that only the ranks of this host have: Open MPI does not forward shell variables."""
    if options.rank_table is not None or world.one_host or not world.is_open_mpi:
        return
    words = procfs.read(f"/proc/{os.getppid()}/cmdline")
    named = next((name for name in table_source.TABLE_VARIABLES if environ.get(name)), None)
    if named is None or named in words or not is_open_mpi_launcher(words.partition("\0")[0]):
        return

    raise LaunchError(
        f"{named} names {loaded.path}, but mpirun does not pass {named} to other hosts",
        hint=f"mpirun -x {named} ..., or -m hccl_tools.launch.rank --rank-table {operand(loaded.path)} ...",
    )


def _check_meeting(job: Job, start: Start, request: LaunchRequest, *, meet: bool) -> None:
    if job.server_count == 1 or not (start == "table" or (meet and request.hosts.master_address is None)):
        return
    raise UsageError(
        f"--start {start} on several hosts needs a rank table" + (" or --master-addr" if meet else ""),
        hint="add --rank-table FILE (RANK_TABLE_FILE of the shell may not reach other hosts)",
    )


def _of_table(loaded: JobTable, request: LaunchRequest, around: Surroundings, world: MpiWorld) -> Job:
    size, servers = len(loaded.table), loaded.table.servers
    if size != world.size:
        advice = f"mpirun -n {size} ..., or --no-table to ignore the table"
        raise LaunchError(
            f"mpirun started {count(world.size, 'rank')}, but the table has {size} ({loaded.path})",
            hint=f"{advice}; {loaded.why}" if loaded.why else advice,
        )
    mine = place_ranks(loaded.table)[world.rank]
    if not request.table.local_check and request.hosts.server is None:
        server_id = servers[mine.server_index].server_id
        request = request._replace(hosts=request.hosts._replace(server=server_id))
    job = jobs.of_table(loaded, request, around, [])
    server = servers[mine.server_index].server_id
    if mine.local_size != world.local_size and not request.hosts.all_here:
        own = count(mine.local_size, "rank")
        # The first rank of a host reports this, even if it is on the right server.
        raise LaunchError(
            f"mpirun started {count(world.local_size, 'rank')} on this host, but the table has "
            f'{own} on server "{server}" ({loaded.path})',
            hint=f"mpirun --host HOST:{mine.local_size} ..., or -ppn {mine.local_size} with MPICH",
        )
    if job.local_server not in {None, mine.server_index}:
        raise LaunchError(
            f'rank {world.rank} is on server "{server}" in {loaded.path}, but '
            f'mpirun started it on "{servers[job.local_server or 0].server_id}"',
            hint="list the hosts for mpirun in the order of the table's ranks and fill them one by one "
            "(--map-by slot)",
        )
    return job


def _check_devices(options: RankOptions, loaded: JobTable, job: Job, world: MpiWorld) -> None:
    if options.devices is None:
        return
    server = job.placements[world.rank].server_index
    used = sorted(placement.device for placement in job.placements if placement.server_index == server)
    if sorted(options.devices) != used:
        raise UsageError(
            f"--devices {_listed(options.devices)}, but {loaded.path} uses {_listed(used)} on this host",
            hint=loaded.conflict_hint,
        )


def _in_order(
    options: RankOptions, request: LaunchRequest, around: Surroundings, world: MpiWorld
) -> tuple[Job, str]:
    """Return the job without a table (this host's placements only) and the source of its devices."""
    visible = around.visible
    if options.devices is not None:
        devices, why = options.devices, "--devices"
        limited = not (request.start.cpu or request.table.no_table or request.devices.ignore_visible)
        if limited and (outside := visible.outside(devices)):
            raise LaunchError(
                f"--devices names {_listed(outside)}, but only {_listed(visible.chosen or ())} are visible "
                f"({visible.source})",
                hint="use visible devices, or add --ignore-visible if the variable is wrong",
            )
        if len(devices) < world.local_size:
            raise LaunchError(
                f"mpirun started {world.local_size} ranks on this host, but --devices names {len(devices)}",
                hint="start fewer ranks per host, or list more devices",
            )
    else:
        local = request.devices._replace(ranks=world.local_size)
        devices = without_table.choose_devices(
            local, visible, 1, cpu=options.cpu, no_table=request.table.no_table
        )
        why = visible.source if visible.chosen else "no NPU on this host"
    first = world.rank - world.local_rank
    index = max(0, first) // world.local_size
    placements = place_ranks_without_table(devices[: world.local_size], ["localhost"])
    placements = [
        placement._replace(rank=first + placement.rank, server_index=index) for placement in placements
    ]
    placeholders = request.table.no_table and bool(visible.outside(devices))
    servers = 1 if world.one_host else -(-world.size // world.local_size)
    master = request.hosts.master_address or jobs.LOOPBACK
    return Job(
        placements, None, servers, master, devices_are_placeholders=placeholders
    ), f"no rank table, devices in order ({why})"


def _listed(devices: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, devices))
