"""What one MPI rank has to start where no launcher has settled it: by hand, or on another host.

Without a table the ranks of a host take their devices in order; with one, each takes its own of the table.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch import environment, interpreter, placement, rank_settled, run_directory
from hccl_tools.launch.plan import TABLE_COPY
from hccl_tools.launch.shim import Prepared
from hccl_tools.launch.visible import VisibleDevices, visible_devices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.mpi_world import MpiWorld
    from hccl_tools.launch.placement import Seat
    from hccl_tools.launch.plan import Start
    from hccl_tools.launch.rank_options import RankOptions


def prepare(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> Prepared:
    """Return what this process has to start.

    Raises:
        HcclToolsError: The table, the devices or the program stand against it.
    """
    nodes = () if options.cpu else placement.present_devices(environ)
    visible = visible_devices(environ, nodes, cpu=options.cpu)
    seats, data, raw = _seats(options, world, visible)
    # Under `launch` the start is settled, and so is whether MindSpore needs a scheduler.
    ask = options.scheduler_port is None and options.start in {None, "mpi"}
    python = interpreter.find(options.python, own=True, environ=environ, ask=ask)
    start = _start(options, python.frameworks, has_table=data is not None)
    interpreter.check_program(options.kind, options.program, environ)
    run_dir = options.run_dir or _own_run_directory(options, world, environ)
    # MindSpore has no MPI start on the CPU: there its ranks meet at a scheduler.
    cpu = options.cpu or (start == "mpi" and not nodes and "mindspore" in python.frameworks)
    mine = next(seat for seat in seats if seat.rank == world.rank)
    facts = environment.JobFacts(
        start=start,
        world_size=world.size,
        master=options.master_address or "127.0.0.1",
        port=_port(options, world, run_dir) if start in {"cluster", "torch"} or cpu else 0,
        table=_copy(run_dir, data) if data is not None else None,
        devices=tuple(seat.device for seat in seats if seat.server_index == mine.server_index),
        visible=visible,
        cpu=cpu,
        keep_mpi=options.keep_mpi,
        open_mpi=world.launcher != "MPICH",
    )
    keep_mpi = options.keep_mpi or start == "mpi"
    kept, removed = environment.cleaned(environ, start=start, keep_mpi=keep_mpi)
    common = environment.common_environment(environ, buffered=options.buffered)
    kept.update(common)
    argv = interpreter.command(options.kind, options.program, python.path)
    if options.run_dir is None and world.local_rank == 0:
        here = [seat for seat in seats if seat.server_index == mine.server_index]
        beginnings = () if keep_mpi else environment.MPI_PREFIXES
        settled = rank_settled.Settled(argv, removed, beginnings, common, _starts(here, facts, options))
        # A table in another form than the ranks get was not judged by these very bytes.
        rank_settled.write(run_dir, options, raw, settled if raw == data else None)
    return Prepared(
        rank=mine.rank,
        device=mine.device,
        argv=argv,
        environment={**kept, **_starts([mine], facts, options)[mine.rank][1]},
        run_dir=run_dir,
        tail="none" if options.run_dir else options.tail,  # The launcher shows the logs itself.
        launched=options.run_dir is not None,
        keep_binding=options.keep_binding,
        exec=options.exec,
        scheduler=_scheduler(options, world, facts, python, kept),
        port=facts.port,
        restart=options.restart,
    )


def _own_run_directory(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> str:
    run_dir = rank_settled.own_run_directory(options.log_dir, world, environ)
    run_directory.create(run_dir, shared=True)
    return run_dir


def _starts(
    seats: list[Seat], facts: environment.JobFacts, options: RankOptions
) -> dict[int, tuple[int, dict[str, str]]]:
    """Return by rank the device and the variables of its own."""
    return {
        seat.rank: (seat.device, {**environment.rank_environment(seat, facts), **options.environment})
        for seat in seats
    }


def _seats(
    options: RankOptions, world: MpiWorld, visible: VisibleDevices
) -> tuple[list[Seat], bytes | None, bytes | None]:
    """Return the seats of the job, the bytes of its table and those of its file, ``None`` without one."""
    if options.rank_table is None:
        return _seats_in_order(options, world, visible), None, None
    from hccl_tools.launch import job_table  # noqa: PLC0415  (only with a table)

    raw = None
    with contextlib.suppress(OSError), open(options.rank_table, "rb") as file:
        raw = file.read()
    loaded = job_table.load_file(options.rank_table, product=options.product, ignore=options.ignore)
    if len(loaded.table) != world.size:
        raise LaunchError(
            f"mpirun started {world.size} ranks, but the table has {len(loaded.table)}",
            hint=f"mpirun -n {len(loaded.table)} ..., or take a table of {world.size} ranks",
        )
    return placement.seats_of_table(loaded.table), loaded.data, raw


def _seats_in_order(options: RankOptions, world: MpiWorld, visible: VisibleDevices) -> list[Seat]:
    """Return the seats without a table: on each host the listed or visible devices in order."""
    devices = options.devices or list(visible.chosen or range(world.local_size))
    if len(devices) < world.local_size:
        raise LaunchError(
            f"mpirun started {world.local_size} ranks on this host, but {len(devices)} devices are "
            f"{'listed' if options.devices else 'visible'}",
            hint="start fewer ranks per host, or rehearse with --cpu",
        )
    hosts = max(1, world.size // world.local_size)
    return placement.seats_of_devices(devices[: world.local_size], ["localhost"] * hosts)


def _start(options: RankOptions, frameworks: Mapping[str, str], *, has_table: bool) -> Start:
    if options.start is not None:
        return options.start
    if not has_table:
        return "mpi"
    return interpreter.choose_start(frameworks, cpu=options.cpu)[0]


def _copy(run_dir: str, data: bytes) -> str:
    """Put the table into the run directory, whole at once: the other ranks of this host do the same."""
    temporary = run_directory.write(run_dir, f".{TABLE_COPY}-{os.getpid()}", data)
    path = os.path.join(run_dir, TABLE_COPY)
    os.replace(temporary, path)
    return path


def _port(options: RankOptions, world: MpiWorld, run_dir: str) -> int:
    """Return the port where the ranks meet: rank 0 chooses a free one and tells the others by a file."""
    from hccl_tools.launch import ports  # noqa: PLC0415  (not under the MPI start)

    if options.scheduler_port is not None:
        return options.scheduler_port
    if not world.one_host:
        return ports.agreed_port(None, os.environ)[0]
    path = os.path.join(run_dir, "port")
    if world.rank == 0:
        port = ports.free_port()
        os.replace(run_directory.write(run_dir, ".port", str(port).encode()), path)
        return port
    return ports.told_port(path, seconds=30.0)


def _scheduler(
    options: RankOptions,
    world: MpiWorld,
    facts: environment.JobFacts,
    python: interpreter.Interpreter,
    kept: dict[str, str],
) -> tuple[tuple[str, ...], dict[str, str]] | None:
    if options.scheduler_port is not None or world.rank != 0 or "cluster" not in environment.families(facts):
        return None
    if facts.start == "mpi" and "mindspore" not in python.frameworks:
        return None
    from hccl_tools.launch import scheduler  # noqa: PLC0415  (rank 0 only)

    variables = {**kept, **environment.scheduler_environment(facts)}
    return (python.path, "-c", scheduler.PROGRAM), variables
