"""Make the plan of a launch from what was asked for, the table, and what this host is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.inheritance import composed
from hccl_tools.launch.model.plan import FACTS_FILE, TABLE_COPY, Plan, RankProcess
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.planning import (
    composition,
    cpu_affinity,
    environment,
    interpreter,
    log_paths,
    ports,
    program_check,
    table_source,
)
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
    """A plan, and what else is needed to carry it out."""

    plan: Plan
    #: What the ranks inherit of the caller's environment.
    environment: dict[str, str]
    #: The ids of this host's device nodes, ascending.
    nodes: tuple[int, ...] = ()
    #: The bytes of the table for the ranks, and the table; ``None`` for a job without one.
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
        UsageError: Options exclude or contradict each other.
        LaunchError: The table, the devices or the program do not allow the launch.
    """
    around = surroundings(
        environ, nodes, cpu=request.start.cpu, ignore_visible=request.devices.ignore_visible
    )
    run_dir = request.part.run_dir if request.part else directory.path_for(request.logs.dir, environ)
    notes = list(request.remarks)
    engine = engines.get(request.start.engine)
    job, python, start, start_reason = _job(request, engine, around, os.path.join(run_dir, TABLE_COPY), notes)
    log_paths.check(request.logs, len(job.placements))
    program_check.check(request.program, {**environ, **request.variables.assigned}, python=python.path)
    engine, located = _locate(engine, request, environ, job)
    facts = _facts(request, job, start, engine, around=around, run_dir=run_dir, notes=notes)
    parts = composition.compose(job.placements, facts)
    kept = composed(environ, parts.passed_on, {}, {})
    supervisor, travelling = _for_other_hosts(request, engine, job, facts, python=python.path, kept=kept)
    plan = Plan(
        processes=_processes(request, job, facts, python, parts),
        start=start,
        engine=request.start.engine,
        run_dir=run_dir,
        working_dir=working_dir,
        world_size=len(job.placements),
        table=job.table.path if job.table else None,
        common=parts.common,
        inheritance=parts.inheritance,
        removed=tuple(sorted(filter(parts.passed_on.removes, environ))),
        notes=(*notes, *composition.check_assigned(request.variables.assigned, parts.ranks, facts)),
        local_server=job.local_server,
        supervisor=supervisor,
        exported=tuple(sorted(travelling)),
        only_exported=not request.variables.export_defaults,
        engine_program=located.program,
        engine_flavour=located.flavour,
        nodes=located.nodes,
        shim_command=_shim(request, environ) if engine.starts_mpi_ranks and not supervisor else (),
        cpu=request.start.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        rendezvous=(job.master, facts.port) if _meets(request, job) else None,
        cores=cpu_affinity.cores_of("none" if supervisor else request.start.bind, job.local, environ),
        chosen=_chosen(job, start, start_reason, python),
    )
    table = (job.table.data, job.table.table) if job.table else ()
    return PreparedLaunch(plan, {**kept, **travelling}, around.nodes, *table)


def _job(
    request: LaunchRequest, engine: Engine, around: Surroundings, copy: str, notes: list[str]
) -> tuple[Job, interpreter.Interpreter, Start, str]:
    """Return the job, the ranks' Python, how the framework finds its peers, and why so.

    ``copy`` is where the table of the job will be written; sentences for the user are added to ``notes``.
    """
    job = jobs.of_request(request, around, table_source.find(request, around, copy), notes)
    python, start, reason = interpreter.choose(
        request.program,
        request.start,
        around.environ,
        engine_starts_mpi=engine.starts_mpi_ranks,
        has_table=job.table is not None,
    )
    if request.start.cpu and reason == interpreter.NO_FRAMEWORK:
        notes.append(f"{reason} ({python.path}); --python names another")
    if job.table is None and (made := table_source.make(job, request, around, copy, start)):
        notes += made.notes
        job = job._replace(table=made)
    return job, python, start, reason


def _meets(request: LaunchRequest, job: Job) -> bool:
    """Tell whether the command is typed on each of several hosts, which then compare what they have."""
    by_hand = job.local_server is not None and job.server_count > 1 and request.part is None
    return by_hand and request.start.preflight


def _chosen(job: Job, start: Start, reason: str, python: interpreter.Interpreter) -> dict[str, str]:
    """Return what was taken and why, by subject."""
    table = (
        {"rank table": job.table.path, "product": job.table.product} if job.table else {"rank table": "none"}
    )
    return {**table, "start": f"{start} ({reason})", "python": f"{python.path} ({python.reason})"}


def _locate(
    engine: Engine, request: LaunchRequest, environ: Mapping[str, str], job: Job
) -> tuple[Engine, Located]:
    """Return the engine in the flavour that was found, and its program."""
    if job.table is None and engine.starts_all_hosts and not engine.starts_mpi_ranks:
        raise UsageError(f"--engine {engine.name} needs a rank table", hint="add --rank-table FILE")
    located = engine.locate(
        environ, request.start.mpirun, list(dict.fromkeys(placement.host for placement in job.placements))
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
        **remote_launch.exported(
            kept, also=request.variables.export, usual=request.variables.export_defaults
        ),
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
    port, warnings = ports.choose(
        request.hosts.start_port,
        around.environ,
        several_hosts=job.server_count > 1,
        ranks_meet=composition.ranks_meet(start, cpu=request.start.cpu),
    )
    notes += warnings
    return environment.JobFacts(
        start=start,
        world_size=len(job.placements),
        master=job.master,
        port=port,
        table=os.path.join(run_dir, TABLE_COPY) if job.table else None,
        devices=(),
        visible=around.visible,
        cpu=request.start.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        keep_mpi=request.variables.keep_mpi,
        pass_table=request.variables.pass_table,
        is_open_mpi=engine.is_open_mpi,
        endpoints=()
        if start == "mpi"
        else ports.endpoints(job.placements, master=job.master, port=port, servers=job.server_count),
        run_dir=run_dir,
        buffered=request.variables.buffered or "PYTHONUNBUFFERED" in around.environ,
        under_mpirun=engine.starts_mpi_ranks,
        ignore_visible=request.devices.ignore_visible,
    )


def _processes(
    request: LaunchRequest,
    job: Job,
    facts: environment.JobFacts,
    python: interpreter.Interpreter,
    parts: composition.JobEnvironment,
) -> tuple[RankProcess, ...]:
    """Return the ranks, and before them the scheduler if one is needed."""
    argv = interpreter.command(request.program, python.path)
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
        environment={**variables, **request.variables.assigned},
        argv=tuple(argv),
        log=log_paths.log_path(request.logs, placement, all_here=request.hosts.all_here),
    )
