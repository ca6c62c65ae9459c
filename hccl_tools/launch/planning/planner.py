"""Make the plan of a launch from what was asked for, the table, and what this host is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.inheritance import composed
from hccl_tools.launch.model.plan import FACTS_FILE, TABLE_COPY, Plan, RankProcess
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.planning import composition, cpu_affinity, environment, interpreter, log_paths, ports
from hccl_tools.launch.planning import job as jobs
from hccl_tools.launch.planning.visible_devices import surroundings
from hccl_tools.launch.runs import directory, private_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.engines.engine import Engine, Located
    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.job import Job
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings
    from hccl_tools.table.model import RankTable


class PreparedLaunch(NamedTuple):
    """A plan, the environment that its processes inherit, this host's device nodes, and the table."""

    plan: Plan
    environment: dict[str, str]
    nodes: tuple[int, ...] = ()
    table_data: bytes | None = None
    table: RankTable | None = None

    @property
    def shared_environment(self) -> dict[str, str]:
        """The environment of every process; each rank's own variables are set on top of it."""
        return {**self.environment, **self.plan.common}


def prepare(
    request: LaunchRequest,
    *,
    environ: Mapping[str, str],
    working_dir: str,
    nodes: tuple[int, ...] | None = None,
) -> PreparedLaunch:
    """Return the plan of a launch; nothing is written or started.

    Args:
        request: What the user asked for.
        environ: The caller's environment.
        working_dir: The caller's directory, absolute; relative names count from it.
        nodes: The device nodes of this host; looked up where ``None``.

    Raises:
        UsageError: What was asked for cannot be meant.
        LaunchError: The table, the devices or the program stand against it.
    """
    around = surroundings(request, environ, nodes)
    notes = list(request.remarks)
    run_dir = request.run_dir or directory.path_for(request.log_dir, environ)
    engine = engines.get(request.engine)
    job = jobs.of_request(request, around, notes, made_at=os.path.join(run_dir, TABLE_COPY))
    python, start, start_reason = _start(request, environ, notes, job, engine)
    if job.table is None:
        job = jobs.with_own_table(job, request, around, os.path.join(run_dir, TABLE_COPY), start)
        notes += job.table.notes if job.table else ()
    _check(request, len(job.placements), environ, python.path)
    engine, located = _locate(engine, request, environ, job)
    facts = _facts(request, job, start, engine, around=around, run_dir=run_dir, notes=notes)
    parts = composition.compose(job.placements, facts)
    kept = composed(environ, parts.passed_on, {}, {})
    supervisor, travelling = _for_other_hosts(request, engine, job, facts, python=python.path, kept=kept)
    plan = Plan(
        processes=_processes(request, job, facts, python, parts),
        start=start,
        engine=request.engine,
        run_dir=run_dir,
        working_dir=working_dir,
        world_size=len(job.placements),
        table=job.table.path if job.table else None,
        common=parts.common,
        inheritance=parts.inheritance,
        removed=tuple(sorted(filter(parts.passed_on.removes, environ))),
        notes=(*notes, *composition.check_assigned(request.environment, parts.ranks, facts)),
        local_server=job.local_server,
        supervisor=supervisor,
        exported=tuple(sorted(travelling)),
        only_exported=not request.export_defaults,
        engine_program=located.program,
        engine_flavour=located.flavour,
        nodes=located.nodes,
        shim_command=_shim(request, environ) if engine.starts_mpi_ranks and not supervisor else (),
        cpu=request.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        rendezvous=(job.master, facts.port) if _meets(request, job) else None,
        cores=cpu_affinity.cores_of("none" if supervisor else request.bind, job.local, environ),
        chosen=_chosen(job, start, start_reason, python),
    )
    table = (job.table.data, job.table.table) if job.table else ()
    return PreparedLaunch(plan, {**kept, **travelling}, around.nodes, *table)


def _check(request: LaunchRequest, world_size: int, environ: Mapping[str, str], python: str) -> None:
    """Refuse ranks that the job does not have, and a program that is not there."""
    named = {"--tail": request.tail if request.tail != "all" else (), "--stdin": request.stdin}
    for option, ranks in named.items():
        for rank in ranks:
            if rank >= world_size:
                last = f"its ranks are 0 to {world_size - 1}" if world_size > 1 else "its only rank is 0"
                raise UsageError(f"{option} {rank}: the job has no rank {rank}", hint=last)
    own = {**environ, **request.environment}
    log_paths.check(request)
    interpreter.check_program(request.kind, request.program, own, python=python)


def _meets(request: LaunchRequest, job: Job) -> bool:
    """Tell whether the command is typed on each of several hosts, which then compare what they have."""
    by_hand = job.local_server is not None and job.server_count > 1 and request.run_dir is None
    return by_hand and request.preflight


def _chosen(job: Job, start: Start, reason: str, python: interpreter.Interpreter) -> dict[str, str]:
    """Return what was taken and why, by subject."""
    table = (
        {"rank table": job.table.path, "product": job.table.product} if job.table else {"rank table": "none"}
    )
    return {**table, "start": f"{start} ({reason})", "python": f"{python.path} ({python.reason})"}


def _start(
    request: LaunchRequest, environ: Mapping[str, str], notes: list[str], job: Job, engine: Engine
) -> tuple[interpreter.Interpreter, Start, str]:
    """Return the ranks' Python, how the framework is started, and why so."""
    mpi_ranks = engine.starts_mpi_ranks and job.table is None
    plain = request.kind == "program" and job.table is None and not request.cpu
    settled = request.start or ("mpi" if mpi_ranks else "table" if plain else None)
    # Under an MPI start on the CPU it has to be known whether MindSpore is there and needs its scheduler.
    ask = settled is None or (settled == "mpi" and request.cpu)
    python = interpreter.find(request.python, own=request.own_python, environ=environ, ask=ask)
    if settled is not None:
        reason = "--start" if request.start else "ranks are MPI processes" if mpi_ranks else "a plain program"
        return python, settled, reason
    start, reason = interpreter.choose_start(python.frameworks, cpu=request.cpu)
    if request.cpu and reason == interpreter.NO_FRAMEWORK:
        notes.append(f"{reason} ({python.path}); --python names another")
    return python, start, reason


def _locate(
    engine: Engine, request: LaunchRequest, environ: Mapping[str, str], job: Job
) -> tuple[Engine, Located]:
    """Return the engine in the flavour that was found, and its program."""
    if job.table is None and engine.starts_all_hosts and not engine.starts_mpi_ranks:
        raise UsageError(f"--engine {engine.name} needs a rank table", hint="add --rank-table FILE")
    located = engine.locate(
        environ, request.mpirun, list(dict.fromkeys(placement.host for placement in job.placements))
    )
    return engine.of_flavour(located.flavour), located


def _for_other_hosts(
    request: LaunchRequest,
    engine: Engine,
    job: Job,
    facts: environment.JobFacts,
    *,
    python: str,
    kept: Mapping[str, str],
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command of each host's supervisor and the variables for it, if the engine starts these."""
    if not engine.starts_all_hosts or job.table is None:
        return (), {}
    if engine.starts_mpi_ranks and facts.start == "mpi":
        if job.server_count > 1:
            raise LaunchError(
                f"--start mpi makes MPI processes of this host, and the table has {job.server_count} servers",
                hint="leave --start out, or start them by hand: mpirun ... python -m hccl_tools.launch.rank "
                "--rank-table FILE",
            )
        return (), {}
    from hccl_tools.launch.planning import packed_table, remote_launch  # noqa: PLC0415  (few engines)

    run_dir = os.path.dirname(facts.table or "")
    command = remote_launch.supervisor(
        request, start=facts.start, port=facts.port or ports.DEFAULT_PORT, python=python, run_dir=run_dir
    )
    return command, {
        **remote_launch.exported(kept, also=request.export, usual=request.export_defaults),
        **packed_table.pack(job.table.data),
        LAUNCHER_VARIABLE: "",
    }


def _shim(request: LaunchRequest, environ: Mapping[str, str]) -> tuple[str, ...]:
    from hccl_tools.launch.planning import remote_launch  # noqa: PLC0415  (for MPI ranks only)

    return remote_launch.shim(request, os.path.join(private_files.new_path(environ), FACTS_FILE))


def _facts(
    request: LaunchRequest,
    job: Job,
    start: Start,
    engine: Engine,
    *,
    around: Surroundings,
    run_dir: str,
    notes: list[str],
) -> environment.JobFacts:
    if job.server_count > 1:
        port, whence = ports.cluster_port(request.start_port, around.environ)
    elif request.start_port is not None:
        port, whence = request.start_port, "--start-port"
    else:
        port, whence = ports.free_port() if composition.ranks_meet(start, cpu=request.cpu) else 0, ""
    notes += [f"{warning} ({whence})" for warning in ports.port_warnings(port)] if whence else []
    return environment.JobFacts(
        start=start,
        world_size=len(job.placements),
        master=job.master,
        port=port,
        table=os.path.join(run_dir, TABLE_COPY) if job.table else None,
        devices=(),
        visible=around.visible,
        cpu=request.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        keep_mpi=request.keep_mpi,
        pass_table=request.pass_table,
        is_open_mpi=engine.is_open_mpi,
        endpoints=()
        if start == "mpi"
        else ports.endpoints(job.placements, master=job.master, port=port, servers=job.server_count),
        run_dir=run_dir,
        buffered=request.buffered or "PYTHONUNBUFFERED" in around.environ,
        under_mpirun=engine.starts_mpi_ranks,
        ignore_visible=request.ignore_visible,
    )


def _processes(
    request: LaunchRequest,
    job: Job,
    facts: environment.JobFacts,
    python: interpreter.Interpreter,
    parts: composition.JobEnvironment,
) -> tuple[RankProcess, ...]:
    """Return the ranks, and before them the scheduler if one is needed."""
    argv = interpreter.command(request.kind, request.program, python.path)
    ranks = tuple(_process(request, one, parts.ranks[one.rank], argv) for one in job.placements)
    if not composition.wants_scheduler(facts, python.frameworks):
        return ranks
    from hccl_tools.launch.planning import mindspore_scheduler  # noqa: PLC0415  (most starts need none)

    return (mindspore_scheduler.process(job.placements[0], facts, python.path), *ranks)


def _process(
    request: LaunchRequest, placement: RankPlacement, variables: dict[str, str], argv: Sequence[str]
) -> RankProcess:
    return RankProcess(
        rank=placement.rank,
        host=placement.host,
        server_index=placement.server_index,
        device=placement.device,
        device_id=int(variables["DEVICE_ID"]),
        environment={**variables, **request.environment},
        argv=tuple(argv),
        log=log_paths.place(request, placement),
    )
