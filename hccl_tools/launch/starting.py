"""Carry a plan out on this host: run directory, lock, table copy, supervision. Or only print it."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.launch import describe, keeper, planning, run_directory
from hccl_tools.launch.plan import FACTS_FILE, TABLE_COPY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.line import Line
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan, RankProcess
    from hccl_tools.launch.planning import Prepared
    from hccl_tools.launch.request import Request, Tail

PLAN_FILE = "plan.json"
_SCHEDULER_WAIT, _SCHEDULER_WAIT_FOR_OTHERS = 0.2, 60.0


def dry_run(request: Request, *, form: str) -> str:
    """Return the plan of a launch as ``text`` or ``json``; nothing is written or started.

    Raises:
        LaunchError: The launch would be refused.
    """
    prepared = _prepare(request._replace(only_shown=True))
    plan = prepared.plan
    if form == "json":
        return describe.as_json(plan, prepared.environment, _command(plan))
    from hccl_tools.launch import plan_text  # noqa: PLC0415  (a real launch prints less)

    return plan_text.as_text(plan, prepared.environment, _command(plan))


def emit(request: Request, target: str) -> str:
    """Return a stand-alone script, or another tool's command, that starts the same job.

    Raises:
        LaunchError: The launch would be refused, or the target cannot say what the plan says.
    """
    from hccl_tools.launch import emit as emitting  # noqa: PLC0415

    return emitting.text(_prepare(request._replace(only_shown=True)).plan, target)


def launch(request: Request, options: Mapping[str, Any]) -> int:
    """Start the job, see it to its end and return the exit code.

    Args:
        request: What to start.
        options: How to watch and end it, as the command line hands it over (``grace``, ``tail``, ...).

    Raises:
        LaunchError: The launch is refused; nothing has been started.
    """
    if request.run_dir is not None:
        os.dup2(1, 2)  # Shown where the job was started; the engine's own stderr is not.
    guard = keeper.current() or keeper.start()
    line: Line | None = None
    try:
        prepared = _prepare(request)
        plan = prepared.plan
        # Where each host has a supervisor, that looks at its host and locks the table there.
        looked_at = request.preflight and not plan.supervisor
        warnings = _preflight(prepared, request.environment) if looked_at else ()
        lock = -1 if plan.supervisor else _lock(prepared)
        if plan.meeting is not None:
            from hccl_tools.launch import same_everywhere  # noqa: PLC0415  (several hosts, started by hand)

            line = same_everywhere.meet(prepared, request, options["max_restarts"])
        between = _between_restarts(prepared, request, options["max_restarts"], line)
        # Both are released by the kernel when this process ends, however it does.
        locks = [lock, _hold(prepared, shared=request.run_dir is not None, again=options["restart"] > 0)]
    except BaseException as error:
        guard.close()
        if isinstance(error, HcclToolsError):
            _tell_refusal(error, request, line)
        raise
    # Of one host's part of a job the launcher that has started it has said the rest.
    for said in (*(_announcement(plan) if request.run_dir is None else ()), *warnings):
        sys.stderr.write(f"hccl-tools: {said}\n")
    if request.run_dir is not None:
        from hccl_tools.launch import host_ends  # noqa: PLC0415  (on other hosts only)

        host_ends.tell_began(plan)
    from hccl_tools.launch import supervisor  # noqa: PLC0415  (a refused launch does not need it)

    outcome = supervisor.supervise(
        _processes(plan),
        run_dir=plan.run_dir,
        environment={**prepared.environment, **plan.common},
        working_dir=plan.working_dir,
        options=_supervision(
            options, plan, request.tail, part_of_job=request.run_dir is not None, between=between, line=line
        ),
        keeper=guard,
    )
    if request.run_dir is not None:
        _tell_starter(outcome, plan)
    if line is not None:
        line.close()
    for held in locks:
        if held >= 0:
            os.close(held)
    return outcome.exit_code


def _prepare(request: Request) -> Prepared:
    try:
        return planning.prepare(request, environ=dict(os.environ), working_dir=os.getcwd())
    except (UsageError, LaunchError):
        raise
    except HcclToolsError as error:
        # Whatever stands against a start is a refusal: 125, so that nobody takes it for a rank's own code.
        raise LaunchError(error.message, hint=error.hint) from error


def _between_restarts(prepared: Prepared, request: Request, restarts: int, line: Line | None) -> Any:
    """Return what is done before each restart; nothing is where none is allowed."""
    if not restarts:
        return None
    from hccl_tools.launch import restarting  # noqa: PLC0415  (few ask for it)

    restarting.check(prepared.plan, request, restarts)
    return restarting.between(prepared, request, line)


def _preflight(prepared: Prepared, typed: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse what would fail later; return what the user should know."""
    from hccl_tools.launch import preflight  # noqa: PLC0415  (a dry run does not need it)

    environment = {**prepared.environment, **prepared.plan.common, **typed}
    found = preflight.check(prepared.plan, environment, prepared.nodes)
    preflight.refuse(found)
    return found.warnings


def _lock(prepared: Prepared) -> int:
    if prepared.table_data is None:
        return -1
    # Another server of the same table is another part of the job, even where hosts share a disk.
    key = prepared.table_data + str(prepared.plan.here).encode()
    return run_directory.lock_table(key, prepared.plan.run_dir, os.environ)


def _tell_refusal(error: HcclToolsError, request: Request, line: Line | None) -> None:
    """Say to the other hosts, or to the launcher that has started this part, why it does not come about."""
    if line is not None:
        line.refuse(error.message)
    if request.run_dir is not None:
        from hccl_tools.launch import host_ends  # noqa: PLC0415  (on other hosts only)

        host_ends.tell_refusal(error, request.run_dir)


def _tell_starter(outcome: Outcome, plan: Plan) -> None:
    """Say how this host's part ended, as one JSON line, to the launcher that has started the supervisors."""
    from hccl_tools.launch import host_ends, rank_ends  # noqa: PLC0415  (on other hosts only)

    if outcome.reason == "ended":
        host_ends.tell_end(plan)
    if outcome.reason == "failed" and outcome.first is not None:
        sys.stdout.write(rank_ends.line(outcome.first))
        sys.stdout.flush()


def _hold(prepared: Prepared, *, shared: bool, again: bool) -> int:
    """Make the run directory, whole or not at all, and mark it as running; a shared one is there already."""
    run_dir = prepared.plan.run_dir
    run_directory.create(run_dir, shared=shared)
    try:
        _write(prepared, shared=shared, again=again)
        return run_directory.hold(run_dir)
    except LaunchError:
        if not shared:
            run_directory.discard(run_dir)
        raise


def _write(prepared: Prepared, *, shared: bool, again: bool) -> None:
    """Write plan and table copy into the run directory."""
    plan = prepared.plan
    if not shared or not os.path.exists(os.path.join(plan.run_dir, PLAN_FILE)):
        data = describe.as_bytes(plan, prepared.environment, _command(plan))
        run_directory.write(plan.run_dir, PLAN_FILE, data)
    if prepared.table_data is not None:
        run_directory.write(plan.run_dir, TABLE_COPY, prepared.table_data)
    if plan.engine == "mpirun" and not plan.supervisor:
        from hccl_tools.launch import rank_facts  # noqa: PLC0415  (for MPI ranks only)

        run_directory.write(plan.run_dir, FACTS_FILE, rank_facts.pack(plan, prepared.table_data))
    for process in () if plan.supervisor or again else plan.local:
        if os.path.isabs(process.log):
            run_directory.fresh_log(plan.run_dir, process.log, process.rank)


def _command(plan: Plan) -> list[str]:
    from hccl_tools.launch import engines  # noqa: PLC0415

    return [] if plan.engine == "loop" else engines.command(plan)


def _processes(plan: Plan) -> Sequence[RankProcess]:
    """Return what the supervisor of this host starts: its ranks, or the engine that starts them."""
    if plan.engine == "loop":
        return plan.local
    from hccl_tools.launch.engines import starter  # noqa: PLC0415

    return starter.processes(plan)


def _announcement(plan: Plan) -> Iterator[str]:
    ranks = [process for process in plan.local if process.rank >= 0]
    which = ", ".join(str(process.device) for process in ranks[:16]) + (", ..." if len(ranks) > 16 else "")
    many = "s" if len(ranks) > 1 else ""
    of = f" of {plan.world_size}" if len(ranks) < plan.world_size else ""
    what = "a rehearsal on the CPU" if plan.cpu else f"device{many} {which}"
    yield f"{len(ranks)}{of} rank{many}, {what}, start {plan.start}; logs: {_short(plan)}"
    yield from plan.notes
    if plan.removed:
        yield f"replaced or removed in the ranks' environment: {', '.join(_shown(plan.removed))}"


def _shown(names: Sequence[str]) -> list[str]:
    return [*names[:8], f"and {len(names) - 8} more"] if len(names) > 9 else list(names)


def _short(plan: Plan) -> str:
    relative = os.path.relpath(plan.run_dir, plan.working_dir)
    return plan.run_dir if relative.startswith("..") else relative


def _supervision(
    options: Mapping[str, Any],
    plan: Plan,
    tail: Tail,
    *,
    part_of_job: bool,
    between: Any,
    line: Line | None,
) -> Any:
    from hccl_tools.launch.supervisor import Supervision  # noqa: PLC0415

    return Supervision(
        grace=options["grace"],
        early_exit_warn=options["early_exit_warn"] or None,
        hang_warn=options["hang_warn"] or None,
        timeout=options["timeout"],
        stdin_rank=options["stdin"],
        on_log_error=options["on_log_error"],
        notify=options["notify"],
        max_restarts=options["max_restarts"],
        restart=options["restart"],
        before_restart=between,
        reports=not part_of_job,
        on_ending=partial(_tell_ending, plan) if part_of_job else None,
        explain=_explain(plan),
        line=line,
        cpus=plan.cores if plan.engine == "loop" else None,
        **_shown_ranks(plan, tail),
        # Where all ranks are here nobody needs the scheduler after them; elsewhere some may still run.
        scheduler_wait=_SCHEDULER_WAIT if plan.here is None else _SCHEDULER_WAIT_FOR_OTHERS,
    )


def _tell_ending(plan: Plan) -> None:
    from hccl_tools.launch import host_ends  # noqa: PLC0415  (on other hosts only)

    host_ends.tell_ending(plan)


def _shown_ranks(plan: Plan, tail: Tail) -> dict[str, Any]:
    if plan.engine == "loop":
        return {"tail": tail}
    from hccl_tools.launch.engines import shown  # noqa: PLC0415  (an engine's jobs only)

    return shown.options(plan, tail)


def _explain(plan: Plan) -> Any:
    if plan.engine == "loop":
        return None
    from hccl_tools.launch import rank_ends  # noqa: PLC0415

    return partial(rank_ends.explain, plan)
