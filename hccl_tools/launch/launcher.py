"""Carry out a plan on this host: run directory, lock, table copy, supervision."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools import load_part
from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.launch import engines, preflight
from hccl_tools.launch.model.variables import TABLE_FROM_LAUNCHER
from hccl_tools.launch.planning import moved_pod, planner
from hccl_tools.launch.render import plan_output
from hccl_tools.launch.supervise.options import Supervision
from hccl_tools.notation.printable import tell
from hccl_tools.processes import keeper, run_files, signals
from hccl_tools.runs import directory, log_files, names, own_runs, parents, private_files, table_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.cluster.agent import AgentLink
    from hccl_tools.launch.cluster.by_engine import ByEngine
    from hccl_tools.launch.cluster.by_hand import ByHand
    from hccl_tools.launch.cluster.controller import Controller
    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.request import LaunchRequest, Part
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.restart import Restarts

#: Seconds for MindSpore's scheduler to exit after the ranks of this host.
_SCHEDULER_WAIT = 0.2
#: Seconds for the scheduler to exit if ranks of other hosts may still need it.
_SCHEDULER_WAIT_FOR_OTHERS = 60.0

#: The variables that mpirun, mpiexec and srun set for the processes that they start.
_STARTED_BY = frozenset({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_ID"})


def launch(request: LaunchRequest) -> int:
    """Start the job, wait until it ends and return its exit code.

    Raises:
        LaunchError: The launch is refused; nothing has been started.
    """
    _refuse_repeated_start(request)
    signals.allow_background_output()
    return moved_pod.with_its_table(request, _launch)


def _launch(request: LaunchRequest, until: float | None) -> int:
    """Start the job with the table of now; if it is not the first, hosts are awaited ``until`` that time."""
    with LocalJob(request) as job:
        job.start_keeper()
        job.join_launcher()
        job.make_plan()
        job.lock_table()
        job.meet_hosts(until)
        job.hold_run()
        job.open_controller()
    return job.run()


class LocalJob:
    """This host's part of a job, from the request to the start, and what it has opened on the way.

    The stages come in the order of ``_launch``. If one of them fails, what was taken is released, and the
    launchers of the other hosts learn that this host does not start.

    Attributes:
        request: What the user asks for; the launcher of an engine's job changes the path of its table.
        prepared: The plan and its data, once it is made.
        agent: The connection to the launcher that started this one on its host, if there is one.
        link: The connection to the launchers that the user started on the other hosts, if there are some.
        controller: Listens for the agents that the engine of this job starts, if it starts some.
    """

    prepared: PreparedLaunch

    def __init__(self, request: LaunchRequest) -> None:
        self.request = request
        self.agent: AgentLink | None = None
        self.link: PeerLink | None = None
        self.controller: Controller | None = None
        self._table_lock = -1
        #: Of the run and its logs. The kernel releases all locks when this process exits for any reason.
        self._locks: list[int] = []
        self._warnings: tuple[str, ...] = ()
        self._restarts: Restarts | None = None

    def __enter__(self) -> LocalJob:  # noqa: PYI034  (Python 3.10 has no Self)
        """Return the job."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Give up after an error."""
        if error is None:
            return
        _give_up(error, self._table_lock)
        if isinstance(error, HcclToolsError):
            self._report_refusal(error)

    def start_keeper(self) -> None:
        """Start the keeper first: it then starts while this process reads the table."""
        self.keeper = keeper.current() or keeper.start()

    def join_launcher(self) -> None:
        """Connect to the launcher if it started this host's part; take the table that it sends."""
        if self.request.part is not None:
            self.agent, self.request = _connect_to_launcher(self.request, self.request.part)

    def make_plan(self) -> None:
        """Find table, hosts, ranks and environment, and check this host meanwhile."""
        checked = preflight.Preflight(self.request)
        self.prepared = prepared_launch(self.request, meanwhile=checked.check)
        self._warnings = checked.warnings()

    def lock_table(self) -> None:
        """Refuse a second job with this table on the devices of this host."""
        self._table_lock = _lock(self.prepared)

    def meet_hosts(self, until: float | None) -> None:
        """Wait for the launchers of the other hosts, if the command was typed on each of them."""
        if self.prepared.plan.rendezvous is not None:
            self.link = _by_hand().connect_peers(self.prepared, self.request, until=until)

    def hold_run(self) -> None:
        """Create and lock the run directory."""
        if self.request.watch.max_restarts:
            self._restarts = load_part("launch.restart").Restarts(self.prepared, self.request)
        again = bool(self.request.part and self.request.part.restart)
        self._locks = _hold(self.prepared, self.request, again=again)

    def open_controller(self) -> None:
        """Listen for the agents that the engine will start, if there are any."""
        plan = self.prepared.plan
        if plan.supervisor or plan.shim_command:
            self.controller = _by_engine().open_controller(self.prepared, self.request)

    def run(self) -> int:
        """Start the processes, wait until the job ends, and return its exit code."""
        plan, controller = self.prepared.plan, self.controller
        _announce(plan, self._warnings, self.agent)
        outcome: Outcome = load_part("launch.supervise.supervisor").supervise(
            engines.of(plan).processes(plan),
            run_dir=plan.run_dir,
            environment={
                **self.prepared.shared_environment,
                **(controller.environment if controller else {}),
            },
            working_dir=plan.working_dir,
            options=self._supervision(),
            keeper=self.keeper,
            locks=[self._table_lock, *self._locks],
        )
        if plan.private_dir:
            private_files.remove(plan.private_dir)
        code = outcome.exit_code if self.agent is None else self.agent.end(outcome)
        for connected in (self.link, controller):
            if connected is not None:
                connected.close()
        return code

    def _supervision(self) -> Supervision:
        request, plan, agent, controller = self.request, self.prepared.plan, self.agent, self.controller
        join_peers = None
        if self.link is not None:
            join_peers = partial(_by_hand().Coordination, self.link)
        supervision = Supervision(
            watch=request.watch,
            tail=request.logs.tail,
            stdin_rank=request.logs.stdin_rank,
            restart=request.part.restart if request.part else 0,
            reports=agent is None,
            writes_report=agent is None or self._locks[0] >= 0,
            replaced=request.replaced,
            join_peers=join_peers,
            cpus=None if plan.shim_command else plan.cores,
            # Without ranks on other hosts, no rank needs the scheduler any longer.
            scheduler_wait=_SCHEDULER_WAIT if plan.local_server is None else _SCHEDULER_WAIT_FOR_OTHERS,
        )
        if controller is not None:
            supervision = _by_engine().supervised(supervision, self.prepared, controller)
        elif agent is not None:
            supervision = supervision._replace(
                on_attempt=agent.watch, explain=agent.report_end, stream=agent.stream
            )
        if self._restarts is None:
            return supervision
        return self._restarts.added_to(supervision, controller or self.link, prepare=prepared_launch)

    def _report_refusal(self, error: HcclToolsError) -> None:
        """Tell the launchers of the job's other hosts that this host does not start its part."""
        request, prepared = self.request, getattr(self, "prepared", None)
        if self.link is not None:
            self.link.abort(error.message)
        elif self.agent is not None:
            self.agent.refuse(error, prepared and prepared.plan)
        elif request.part is None and request.start.preflight:
            _by_hand().report_refusal(error, prepared, request)


def _by_hand() -> type[ByHand]:
    """Load the stages of a job whose command is typed on several hosts, which need to know of a refusal."""
    stages: type[ByHand] = load_part("launch.cluster.by_hand").ByHand
    return stages


def _by_engine() -> type[ByEngine]:
    """Load the stages of a job whose hosts an engine starts."""
    stages: type[ByEngine] = load_part("launch.cluster.by_engine").ByEngine
    return stages


def _give_up(error: BaseException, lock: int) -> None:
    """Release what was taken; the keeper stays for another attempt with a new table."""
    if isinstance(error, moved_pod.TableChangedError):
        if lock >= 0:
            os.close(lock)
    elif started := keeper.current():
        started.close()
    if isinstance(error, KeyboardInterrupt):
        error.args = ("no rank was started on this host",)


def _refuse_repeated_start(request: LaunchRequest) -> None:
    if request.part is None and not _STARTED_BY.isdisjoint(os.environ):
        _by_engine().refuse_repeated_start(os.environ, "launch", request.program.argv, request.typed_options)


def _announce(plan: Plan, warnings: Sequence[str], agent: AgentLink | None) -> None:
    # The launcher that started this host's part of a job has printed the rest.
    own = (
        (*plan_output.lines(plan), *parents.warnings(os.path.dirname(plan.run_dir))) if agent is None else ()
    )
    tell(*(f"hccl-tools: {line}" for line in (*own, *warnings)))
    if agent is not None:
        agent.begin(plan)


def prepared_launch(
    request: LaunchRequest, *, meanwhile: Callable[[PreparedLaunch], object] | None = None
) -> PreparedLaunch:
    """Return the plan of a launch and the data needed to carry it out; see ``planner.prepare``.

    Raises:
        LaunchError: The launch is refused.
    """
    seconds = request.table.wait
    if seconds is None or not moved_pod.may_change(request):
        return _prepared(request, meanwhile)
    return moved_pod.prepared(request, seconds, partial(_prepared, meanwhile=meanwhile))


def _prepared(request: LaunchRequest, meanwhile: Callable[[PreparedLaunch], object] | None) -> PreparedLaunch:
    try:
        prepared = planner.prepare(
            request, environ=dict(os.environ), working_dir=os.getcwd(), meanwhile=meanwhile
        )
    except (UsageError, LaunchError):
        raise
    except HcclToolsError as error:
        # Report every error before the start with exit code 125, which differs from a rank's exit code.
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    engine = engines.of(prepared.plan)
    if prepared.plan.supervisor and engine.names_hosts:
        _by_engine().check_host_names(prepared, use=f"--engine {engine.name}", colons=engine.takes_colons)
    return prepared


def _lock(prepared: PreparedLaunch) -> int:
    if (data := prepared.table_to_lock) is None:
        return -1
    # A lock per server (hosts may share a disk), or one lock for all, so that two jobs cannot deadlock.
    part = "all" if prepared.plan.supervisor else str(prepared.plan.local_server)
    return table_lock.take(data + part.encode(), prepared.plan.run_dir, os.environ)


def _connect_to_launcher(request: LaunchRequest, part: Part) -> tuple[AgentLink, LaunchRequest]:
    """Connect to the launcher; return the request with the path of the table that the launcher sends."""
    os.dup2(1, 2)  # Merge stderr into stdout: the launcher shows stdout to the user, but not stderr.
    agent: AgentLink = load_part("launch.cluster.agent").AgentLink(
        os.environ, request.watch.host_timeout, request.watch.join_timeout
    )
    if request.table.file != TABLE_FROM_LAUNCHER:
        return agent, request
    try:
        directory.create(part.run_dir, shared=True, mode=request.logs.mode, again=part.restart > 0)
        path = directory.write(part.run_dir, names.GIVEN_TABLE, agent.table())
    except LaunchError as error:
        agent.refuse(error, None)
        raise
    return agent, request._replace(table=request.table._replace(file=path))


def _hold(prepared: PreparedLaunch, request: LaunchRequest, *, again: bool) -> list[int]:
    """Create and fill the run directory, or remove it on an error; return the lock of the run and of logs."""
    run_dir, shared = prepared.plan.run_dir, request.part is not None
    directory.create(run_dir, shared=shared, mode=request.logs.mode, again=again)
    try:
        logs = _write(prepared, shared=shared, again=again, log_mode=request.logs.mode)
        own_runs.note(run_dir, os.environ, is_part=shared)
        return [directory.hold(run_dir), *logs]
    except LaunchError:
        if not shared:
            private_files.remove(run_dir)
        raise


def _write(prepared: PreparedLaunch, *, shared: bool, again: bool, log_mode: int) -> list[int]:
    plan = prepared.plan
    if not shared or not run_files.status(os.path.join(plan.run_dir, names.PLAN)):
        plan_output.write(plan, prepared.environment)
    if prepared.table_data is not None:
        directory.write(plan.run_dir, names.TABLE, prepared.table_data)
    if prepared.backup_variables is not None:
        directory.write(plan.run_dir, names.BACKUP_VARIABLES, prepared.backup_variables)
    locks: list[int] = []
    if plan.private_dir:
        locks.append(private_files.make(plan.private_dir))
        _by_engine().write_ranks(plan, prepared.table_data)
    outside = () if plan.supervisor else [each for each in plan.local if os.path.isabs(each.log)]
    for process in outside:
        if again:  # The log of a restart is another file of the same directory.
            log_files.hold_folder(process.log, log_mode)
        else:
            locks.append(log_files.fresh_log(plan.run_dir, process.log, process.rank, log_mode))
    return locks
