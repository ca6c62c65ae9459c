"""Prepare one MPI rank without a file from a launcher: under a user's mpirun, or on another host."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.model.variables import composed
from hccl_tools.launch.mpi import job as rank_job
from hccl_tools.launch.mpi import shared_preparation
from hccl_tools.launch.mpi.planned_ranks import sha256
from hccl_tools.launch.mpi.prepared import PreparedRank
from hccl_tools.launch.planning import composition, environment, interpreter, ports, table_source
from hccl_tools.launch.planning import job as jobs
from hccl_tools.notation.printable import tell
from hccl_tools.processes import run_files
from hccl_tools.runs import directory, names, parents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.launch.model.request import JobTable
    from hccl_tools.launch.mpi.job import RankJob
    from hccl_tools.launch.mpi.options import RankOptions
    from hccl_tools.launch.mpi.world import MpiWorld


def prepare(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> PreparedRank:
    """Return the prepared rank of this process.

    Raises:
        HcclToolsError: The table, the devices or the program contradict what mpirun has started.
    """
    found = rank_job.find(options, world, environ)
    named = found.job.table
    run_dir = options.run_dir or shared_preparation.own_run_directory(options, world, environ)
    path = os.path.join(run_dir, names.TABLE)
    if named is None and (
        made := table_source.make(found.job, found.request, found.around, path, found.start)
    ):
        found = found._replace(job=found.job._replace(table=made))
    if options.run_dir is None:
        directory.create(run_dir, shared=True, mode=options.log_mode)
    else:
        directory.check_owner(run_dir, 0o777)  # The launcher has chosen the mode.
    facts = _facts(found, options, world, run_dir)
    if options.environment:
        composition.check_assigned(
            options.environment, composition.compose(found.job.placements, facts).ranks, facts
        )
    if (backup := environment.backup_variables(facts)) is not None:
        directory.write(run_dir, names.BACKUP_VARIABLES, backup)
    parts = composition.compose(found.here, facts)
    whole = partial(composed, environ, parts.inheritance, parts.common)
    argv = interpreter.command(found.request.program, found.python.path)
    starts = {one.rank: (one.device, {**parts.ranks[one.rank], **options.environment}) for one in found.here}
    if options.run_dir is None and world.local_rank == 0:
        first = world.rank if named is None else None
        settled = shared_preparation.Settled(parts.inheritance, argv, parts.common, starts, first)
        left = _left(settled, named, shared_preparation.key(options, environ), run_dir)
        shared_preparation.write(world, environ, left)
    if options.run_dir is None and world.rank == 0:
        _announce(found, world, run_dir)
    return PreparedRank(
        rank=world.rank,
        device=found.mine.device,
        argv=argv,
        environment=whole(starts[world.rank][1]),
        run_dir=run_dir,
        tail="none" if options.run_dir else options.tail,  # The launcher shows the logs itself.
        keep_binding=options.keep_binding,
        exec=options.exec,
        scheduler=_scheduler(options, world, facts, found.python, whole),
        port=facts.port,
        restart=options.restart,
    )


def _facts(found: RankJob, options: RankOptions, world: MpiWorld, run_dir: str) -> environment.JobFacts:
    job = found.job
    port = _port(found, options, world, run_dir)
    # Without a table the other hosts are unknown.
    known = found.start != "mpi" and len(job.placements) == world.size
    return environment.JobFacts(
        start=found.start,
        world_size=world.size,
        master=job.master,
        port=port,
        table=directory.write(run_dir, names.TABLE, job.table.data) if job.table is not None else None,
        devices=(),
        visible=found.around.visible,
        cpu=found.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        keep_mpi=options.keep_mpi,
        is_open_mpi=not world.is_mpich,
        endpoints=ports.endpoints(job.placements, master=job.master, port=port, servers=job.server_count)
        if known
        else (),
        endpoints_limit=ports.endpoints_limit(found.around.environ),
        servers=len({placement.server_index for placement in job.placements}) if known else None,
        super_pods=jobs.super_pods(job),
        interface=jobs.own_interface(job) if found.start == "torch" else None,
        run_dir=run_dir,
        buffered=options.buffered,
        set_by_user=environment.set_by_user(found.around.environ),
        under_mpirun=True,
        ignore_visible=options.ignore_visible,
        restart=options.restart,
    )


def _left(
    settled: shared_preparation.Settled, named: JobTable | None, key: str, run_dir: str
) -> shared_preparation.Left:
    folder = run_files.hold(run_dir).identity
    if named is None or not os.path.isabs(named.path):
        return shared_preparation.Left(folder, key, None, settled)
    raw = None
    with contextlib.suppress(OSError), open(named.path, "rb") as file:
        raw = file.read()
    # If the ranks get the table in another form, these bytes differ: each rank prepares itself.
    kept = settled if raw == named.data else None
    return shared_preparation.Left(folder, key, (named.path, sha256(named.data)), kept)


def _announce(found: RankJob, world: MpiWorld, run_dir: str) -> None:
    here = found.here
    count = f"{world.size} rank{'s' if world.size > 1 else ''}"
    devices = ", ".join(str(placement.device) for placement in here[:16]) + (
        ", ..." if len(here) > 16 else ""
    )
    what = (
        f"device{'s' if len(here) > 1 else ''} {devices}{'' if len(here) == world.size else ' on this host'}"
    )
    start = f"start method {found.start} ({found.start_reason})"
    logs = os.path.relpath(run_dir)
    first = f"{count}, {what}, {start}; {found.why}; logs: {logs}"
    tell(*(f"hccl-tools: {line}" for line in (first, *parents.warnings(os.path.dirname(run_dir)))))


def _port(found: RankJob, options: RankOptions, world: MpiWorld, run_dir: str) -> int:
    if options.scheduler_port is not None:
        return options.scheduler_port
    several = found.job.server_count > 1
    if (chosen := ports.chosen_port(None, os.environ, several_hosts=several)[0]) is not None:
        return chosen
    if several:
        return ports.DEFAULT_PORT
    if not found.ranks_meet:
        return 0
    path = os.path.join(run_dir, names.PORT)
    if world.rank == 0:
        port = ports.free_port()
        directory.write(run_dir, names.PORT, str(port).encode())
        return port
    return ports.wait_for_port_file(path, seconds=30.0)


def _scheduler(
    options: RankOptions,
    world: MpiWorld,
    facts: environment.JobFacts,
    python: interpreter.Interpreter,
    whole: Callable[[Mapping[str, str]], dict[str, str]],
) -> tuple[tuple[str, ...], dict[str, str]] | None:
    if options.scheduler_port is not None or world.rank != 0:
        return None
    if not composition.wants_scheduler(facts, python.frameworks):
        return None
    variables = composition.scheduler_environment(facts)
    argv = (python.path, "-c", composition.SCHEDULER_PROGRAM)
    return argv, whole(variables)
