"""``--max-restarts``: prepare the next start of all ranks on all hosts.

The table is read and checked again, and each start has its own logs. An engine is started again; launchers
that were started by hand wait for each other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError
from hccl_tools.launch import engines
from hccl_tools.launch.cluster import consistency
from hccl_tools.launch.cluster.controller import Controller
from hccl_tools.launch.mpi import planned_ranks
from hccl_tools.launch.planning import table_source
from hccl_tools.launch.spares import lost_hosts
from hccl_tools.launch.spares.replacement import HostReplacement
from hccl_tools.launch.supervise.options import NextStart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan, RankProcess
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.supervise.options import BeforeRestart, Supervision
    from hccl_tools.processes.signals import Signals


class Restarts:
    """The restarts of a job.

    Raises:
        LaunchError: The hosts cannot restart together; see ``check``.
    """

    def __init__(self, prepared: PreparedLaunch, request: LaunchRequest) -> None:
        check(prepared.plan, request)
        self._prepared, self._request = prepared, request

    def added_to(
        self,
        supervision: Supervision,
        others: Controller | PeerLink | None,
        *,
        prepare: Callable[[LaunchRequest], PreparedLaunch],
    ) -> Supervision:
        """Return a supervision that restarts the job; with spares, also on other hosts.

        Args:
            others: The connection to the job's other hosts.
            prepare: Makes the plan of a request.
        """
        if self._request.spares and isinstance(others, Controller):
            again = WithSpares(self._prepared, self._request, others, prepare=prepare)
            return supervision._replace(before_restart=again.prepare, explain=again.explain)
        link = None if isinstance(others, Controller) else others
        return supervision._replace(before_restart=on_the_same_hosts(self._prepared, self._request, link))


def on_the_same_hosts(
    prepared: PreparedLaunch, request: LaunchRequest, link: PeerLink | None
) -> BeforeRestart:
    """Return the function that a supervisor calls before each restart on the hosts of the first start.

    The function raises LaunchError if the table has changed on this host or on another host of ``link``.
    """

    def before(_outcome: Outcome, number: int, signals: Signals) -> NextStart:
        try:
            _check_table(prepared, request)
        except LaunchError as error:
            if link is not None:
                link.abort(error.message, number)
            raise
        if link is not None:
            values = consistency.manifest_values(prepared, request)
            link.barrier(number, values, signals=signals, notify=consistency.notify)
        return NextStart(_processes(prepared, number))

    return before


class WithSpares:
    """Prepares the restarts of a job with spare hosts, which take the places of lost hosts."""

    def __init__(
        self,
        prepared: PreparedLaunch,
        request: LaunchRequest,
        controller: Controller,
        *,
        prepare: Callable[[LaunchRequest], PreparedLaunch],
    ) -> None:
        """``prepare`` makes the plan of a request."""
        self._controller, self._request = controller, request
        self._hosts = HostReplacement(prepared, request, prepare)

    def explain(self, outcome: Outcome) -> None:
        """Determine how a start of the job ended, and which hosts were lost."""
        self._controller.explain(outcome)
        lost_hosts.mark(self._hosts.prepared.plan, outcome, self._controller.unreported)

    def prepare(self, outcome: Outcome, number: int, _signals: Signals) -> NextStart:
        """Return the next start of the job.

        Raises:
            LaunchError: The table has changed, or a host was lost and no spare is left.
        """
        if not outcome.lost_servers:
            if not self._hosts.has_replaced:  # Else the table in the run directory is the only one.
                _check_table(self._hosts.prepared, self._request)
            return NextStart(_processes(self._hosts.prepared, number))
        replaced = self._hosts.replace(outcome, number)
        self._controller.follow(replaced.prepared.plan, replaced.prepared.table_data)
        return NextStart(_processes(replaced.prepared, number), replaced.facts, replaced.news)


def check(plan: Plan, request: LaunchRequest) -> None:
    """Check that the hosts of a job can restart together.

    Raises:
        LaunchError: The job was started separately on several hosts, without a rendezvous.
    """
    restarts = request.watch.max_restarts
    if restarts and plan.local_server is not None and plan.rendezvous is None and request.part is None:
        raise LaunchError(
            f"--max-restarts {restarts}: hosts without a rendezvous cannot restart together",
            hint="leave --preflight none out, or start the job once for all hosts: --engine mpirun or slurm",
        )


def _check_table(prepared: PreparedLaunch, request: LaunchRequest) -> None:
    plan = prepared.plan
    table = plan.table
    if table is None or request.table.made is not None or not os.path.exists(table):
        return  # Only the copy in the run directory exists, and this copy does not change.
    try:
        choice = request.table._replace(product=plan.product)
        loaded = table_source.load_file(table, choice, table_source.checked_in(request, os.environ))
    except HcclToolsError as error:
        raise LaunchError(
            f"the table has changed: {error.head}", hint=error.hint, lines=error.lines
        ) from error
    if loaded.data != prepared.table_data:
        raise LaunchError(f"{table} has changed since the job started", hint="start the job again")


def _processes(prepared: PreparedLaunch, number: int) -> Sequence[RankProcess]:
    plan = prepared.plan
    if plan.supervisor:
        at = plan.supervisor.index("--")
        command = (*plan.supervisor[:at], f"--restart={number}", *plan.supervisor[at:])
        plan = plan._replace(supervisor=command)
    elif plan.shim_command:
        plan = plan._replace(shim_command=(*plan.shim_command, f"--restart={number}"))
        planned_ranks.write(plan, prepared.table_data, number)
    return engines.of(plan).processes(plan)
