"""Make the plan of a launch from the request, the table and the facts about this host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import Plan
from hccl_tools.launch.model.variables import composed
from hccl_tools.launch.planning import (
    composition,
    environment,
    interpreter,
    local_npus,
    log_paths,
    placement,
    ports,
    program_check,
    remote_launch,
    table_source,
    without_table,
)
from hccl_tools.launch.planning import job as jobs
from hccl_tools.launch.planning.visible_devices import surroundings
from hccl_tools.notation.phrases import time_span
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import stack_dump
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hccl_tools.launch.engines.engine import Engine, Located
    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import JobTable, LaunchRequest
    from hccl_tools.launch.planning.job import Job
    from hccl_tools.launch.planning.visible_devices import Surroundings
    from hccl_tools.table.model import RankTable

_POLLING_RANKS = (
    "ranks that wait for an NPU may use their CPUs, and --hang-timeout then does not end the job: with "
    "--progress REGEX only a matching line of output counts"
)

#: Seconds: HCCL's limit for an operation, torch_npu's for a watchdog without a heartbeat, torch's for gloo.
_EXEC_TIMEOUT, _HEARTBEAT, _GLOO = 1836, 600, 1800


class PreparedLaunch(NamedTuple):
    """A plan and the data needed to carry it out."""

    plan: Plan
    environment: dict[str, str]
    #: The ids of this host's device nodes, ascending.
    nodes: tuple[int, ...] = ()
    #: The bytes of the table for the ranks, and the table; ``None`` for a job without one.
    table_data: bytes | None = None
    table: RankTable | None = None
    #: The content of the run directory's file for PADDLE_BACKUP_ENV_PATH; ``None`` if it is not needed.
    backup_variables: bytes | None = None

    @property
    def shared_environment(self) -> dict[str, str]:
        """The environment of every process, to which each rank's own variables are added."""
        return {**self.environment, **self.plan.common}

    @property
    def table_to_lock(self) -> bytes | None:
        """The bytes of the table that no other job may use; ``None`` in a rehearsal, which uses no device."""
        return None if self.plan.cpu else self.table_data


def prepare(
    request: LaunchRequest,
    *,
    environ: Mapping[str, str],
    working_dir: str,
    nodes: tuple[int, ...] | None = None,
    meanwhile: Callable[[PreparedLaunch], object] | None = None,
) -> PreparedLaunch:
    """Return the plan of a launch without writing or starting anything.

    Relative paths are relative to ``working_dir``, which is absolute. ``nodes`` are the ids of the device
    nodes; ``None`` looks them up. ``meanwhile`` is called with the plan before the addresses of this host's
    devices are compared with the table's: their tool may still run.

    Raises:
        UsageError: Options exclude or contradict each other.
        LaunchError: The table, the devices or the program do not allow the launch.
    """
    limits = request.devices.ignore_visible
    around = surroundings(environ, nodes, cpu=request.start.cpu, ignore_visible=limits)
    engine = engines.get(request.start.engine)
    is_here = not (engine.starts_all_hosts or request.hosts.all_here)
    wanted = around.uses_npus and request.table.local_check and is_here
    with local_npus.compared(around.nodes, around.environ, wanted=wanted) as addresses:
        prepared = _plan(request, engine, around._replace(addresses=addresses), environ, working_dir)
        if meanwhile is not None:
            meanwhile(prepared)
    return prepared


def _plan(
    request: LaunchRequest, engine: Engine, around: Surroundings, environ: Mapping[str, str], working_dir: str
) -> PreparedLaunch:
    run_dir = request.run_dir or directory.path_for(request.logs.dir, environ)
    notes = list(request.remarks)
    job, python, start, chosen = _job(request, engine, around, f"{run_dir}/{names.TABLE}", notes)
    engine, located = _locate(engine, request, environ, job)
    meet = composition.ranks_meet(start, python.frameworks, cpu=request.start.cpu)
    facts = _facts(request, job, start, engine, meet=meet, around=around, run_dir=run_dir, notes=notes)
    parts = composition.compose(job.placements, facts)
    kept = composed(environ, parts.passed_on, {}, {})
    if engine.starts_all_hosts:
        composition.check_address(request.variables.assigned, job.server_count, "hosts")
    commands = remote_launch.commands(request, engine, job, facts, python=python.path, kept=kept)
    plan = Plan(
        processes=composition.processes(request, job, facts, python, parts.ranks),
        start=start,
        engine=engine.name,
        run_dir=run_dir,
        working_dir=working_dir,
        world_size=len(job.placements),
        table=job.table.path if job.table else None,
        common=parts.common,
        inheritance=parts.inheritance,
        removed=tuple(sorted(_removed(parts.passed_on.removes, environ, job))),
        notes=(*notes, *composition.check_assigned(request.variables.assigned, parts.ranks, facts)),
        local_server=job.local_server,
        supervisor=commands.supervisor,
        exported=tuple(sorted(commands.exported)),
        only_exported=not request.variables.export_defaults,
        engine_program=located.program,
        engine_flavour=located.flavour,
        nodes=located.nodes,
        shim_command=commands.shim,
        private_dir=commands.private_dir,
        cpu=request.start.cpu,
        devices_are_placeholders=job.devices_are_placeholders,
        rendezvous=_rendezvous(request, job, facts),
        cores=placement.cores_of(request.start.bind, [] if commands.supervisor else job.local, environ),
        chosen=chosen,
        product=job.table and job.table.product,
        host_timeout=request.watch.host_timeout,
        join_timeout=request.watch.join_timeout,
        shown=request.logs.tail,
    )
    return _prepared(plan, {**kept, **commands.exported}, around, job, facts)


def _prepared(
    plan: Plan, variables: dict[str, str], around: Surroundings, job: Job, facts: environment.JobFacts
) -> PreparedLaunch:
    data, table = (job.table.data, job.table.table) if job.table else (None, None)
    backup = environment.backup_variables(facts)
    plan = plan._replace(reached=_reached(job))
    return PreparedLaunch(plan, variables, around.nodes, data, table, backup)


def _rendezvous(request: LaunchRequest, job: Job, facts: environment.JobFacts) -> tuple[str, int] | None:
    """Return where the launchers compare their manifests, if the command is typed on each host."""
    by_hand = job.local_server is not None and job.server_count > 1 and request.part is None
    return (job.master, facts.port) if by_hand and request.start.preflight else None


def _removed(removes: Callable[[str], bool], environ: Mapping[str, str], job: Job) -> Iterator[str]:
    """Yield the variables that the ranks do not inherit, without that of the table: they get a copy of it."""
    table = job.table.path if job.table else None
    return (name for name, value in environ.items() if removes(name) and value != table)


def _job(
    request: LaunchRequest, engine: Engine, around: Surroundings, copy: str, notes: list[str]
) -> tuple[Job, interpreter.Interpreter, Start, dict[str, str]]:
    """Return the job, the ranks' Python, how the framework finds its peers, and the choices with reasons.

    ``copy`` is the path of the job's table, which is written later; user notes are appended to ``notes``.
    """
    table, job = _ranks(request, around, copy, notes)
    python, start, reason = interpreter.choose(
        request.program,
        request.start,
        around.environ,
        engine_starts_mpi=engine.starts_mpi_ranks,
        has_table=table is not None,
        is_part=request.part is not None,
    )
    if request.start.cpu and reason == interpreter.NO_FRAMEWORK and request.program.kind != "program":
        notes.append(f"{reason} ({python.path}); --python selects another")
    notes += interpreter.warnings(python, start, around.environ, cpu=request.start.cpu)
    if table is None and (table := table_source.make(job, request, around, copy, start)) is not None:
        notes += table.notes
        job = job._replace(table=table)
    is_blind = request.watch.hang_timeout is not None and request.watch.progress is None
    if is_blind and around.nodes and not (request.part or request.start.cpu):
        notes.append(_POLLING_RANKS)
    if request.watch.flight_recorder and not request.part:
        assigned = {**around.environ, **request.variables.assigned}
        notes += warnings(request.watch.hang_timeout, assigned, cpu=request.start.cpu)
    log_paths.check(request.logs, len(job.placements))
    if not request.program.may_be_missing:
        assigned = {**around.environ, **request.variables.assigned}
        program_check.check(request.program, assigned, python=python.path)
    chosen = {"rank table": table.path if table else "none"}
    if table is not None:
        chosen["product"] = f"{table.product}: {table.product_source}"
    if table is None and start == "table":
        reason = f"{reason}; RANK_ID and the like are set, without the file"
    chosen |= {"start": f"{start} ({reason})", "python": f"{python.path} ({python.reason})"}
    if request.spares:
        chosen["spares"] = ", ".join(spare.label for spare in request.spares)
    if request.start.engine_reason:
        chosen["engine"] = f"{engine.name} ({request.start.engine_reason})"
    return job, python, start, chosen


def _ranks(
    request: LaunchRequest, around: Surroundings, copy: str, notes: list[str]
) -> tuple[JobTable | None, Job]:
    """Return the table of the job, if it has one, and the ranks."""
    table = table_source.find(request, around, copy)
    if table is not None:
        return table, jobs.of_table(table, request, around, notes)
    return None, without_table.job_of(request, around, notes)


def _reached(job: Job) -> Mapping[str, str]:
    return job.table.reached if job.table else {}


def _locate(
    engine: Engine, request: LaunchRequest, environ: Mapping[str, str], job: Job
) -> tuple[Engine, Located]:
    if job.table is None and engine.starts_all_hosts and not engine.starts_mpi_ranks:
        raise UsageError(f"--engine {engine.name} needs a rank table", hint="add --rank-table FILE")
    reached = _reached(job)
    hosts = dict.fromkeys(reached.get(one.host, one.host) for one in job.placements)
    located = engine.locate(environ, request.start.mpirun, list(hosts))
    return engine.of_flavour(located.flavour), located


def _python_path(request: LaunchRequest, environ: Mapping[str, str]) -> str | None:
    if not request.watch.faulthandler:
        return None
    return stack_dump.python_path(environ.get("PYTHONPATH", ""))


def _facts(
    request: LaunchRequest,
    job: Job,
    start: Start,
    engine: Engine,
    *,
    meet: bool,
    around: Surroundings,
    run_dir: str,
    notes: list[str],
) -> environment.JobFacts:
    port, warnings = ports.choose(
        request.hosts.start_port,
        around.environ,
        several_hosts=job.server_count > 1,
        ranks_meet=meet,
    )
    notes += warnings
    assigned = request.variables.assigned
    return environment.JobFacts(
        start=start,
        world_size=len(job.placements),
        master=job.master,
        port=port,
        table=os.path.join(run_dir, names.TABLE) if job.table else None,
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
        endpoints_limit=ports.endpoints_limit(around.environ),
        servers=len({placement.server_index for placement in job.placements}),
        super_pods=jobs.super_pods(job),
        interface=jobs.own_interface(job) if start == "torch" else None,
        run_dir=run_dir,
        log_dir=log_paths.log_folder(request.logs),
        buffered=request.variables.buffered,
        set_by_user=environment.set_by_user({*around.environ, *assigned}),
        under_mpirun=engine.starts_mpi_ranks,
        ignore_visible=request.devices.ignore_visible,
        heartbeats=request.watch.hang_timeout is not None,
        python_path=_python_path(request, {**around.environ, **assigned}),
        flight_recorder=request.watch.flight_recorder,
        restart=request.part.restart if request.part else 0,
    )


def warnings(hang_timeout: float | None, environ: Mapping[str, str], *, cpu: bool) -> list[str]:
    """Return a sentence if the framework ends a hung job before ``--hang-timeout``; [] otherwise."""
    if hang_timeout is None:
        return []
    found = [(seconds, name) for name, seconds in _limits(environ, cpu=cpu) if 0 < seconds < hang_timeout]
    if not found:
        return []
    seconds, name = min(found)
    own, its = time_span(hang_timeout, 2), time_span(seconds, 2)
    end = "the framework may end a hung job first, without this evidence"
    return [f"--hang-timeout is {own}, longer than {name} ({its}): {end}"]


def _limits(environ: Mapping[str, str], *, cpu: bool) -> list[tuple[str, int]]:
    if cpu:
        return [("the default time limit of torch's gloo", _GLOO)]
    return [
        ("HCCL_EXEC_TIMEOUT", _seconds(environ, "HCCL_EXEC_TIMEOUT", _EXEC_TIMEOUT)),
        (
            "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC",
            _seconds(environ, "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC", _HEARTBEAT),
        ),
    ]


def _seconds(environ: Mapping[str, str], name: str, default: int) -> int:
    number = whole_number(environ.get(name, ""))
    return default if number is None else number
