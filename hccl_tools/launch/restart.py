"""``--max-restarts``: what is done between two starts of all ranks on all hosts.

The table is read and judged again, and each start has logs of its own. Where an engine brings the job to its
hosts it is the engine that starts anew; hosts that were started by hand wait for each other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError
from hccl_tools.launch import engines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.plan import Plan, RankProcess
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.processes.signals import Signals


def check(plan: Plan, request: LaunchRequest) -> None:
    """Refuse restarts where this host cannot see to it that all hosts begin again together.

    Raises:
        LaunchError: The job has several hosts, each was started by hand, and they do not meet.
    """
    restarts = request.watch.max_restarts
    if restarts and plan.local_server is not None and plan.rendezvous is None and request.part is None:
        raise LaunchError(
            f"--max-restarts {restarts}: hosts that do not meet cannot start again together",
            hint="leave --no-preflight out, or start the job once for all hosts: --engine mpirun or slurm",
        )


def between(
    prepared: PreparedLaunch, request: LaunchRequest, link: PeerLink | None
) -> Callable[[int, Signals], Sequence[RankProcess]]:
    """Return what a supervisor calls before each restart; it returns the processes to start.

    That raises LaunchError where the table cannot be used any more, here or on another host of ``link``.
    """

    def before(number: int, signals: Signals) -> Sequence[RankProcess]:
        try:
            _check_table(prepared, request)
        except LaunchError as error:
            if link is not None:
                link.abort(error.message, number)
            raise
        if link is not None:
            from hccl_tools.launch.cluster import consistency  # noqa: PLC0415  (several hosts, started by hand)

            values = consistency.manifest_values(prepared, request)
            link.barrier(number, values, signals=signals, notify=consistency.notify)
        return _processes(prepared, number)

    return before


def _check_table(prepared: PreparedLaunch, request: LaunchRequest) -> None:
    table = prepared.plan.table
    if table is None or request.table.made is not None or not os.path.exists(table):
        return  # The copy in the run directory is all there is, and nobody changes that.
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415  (a restart is rare)

    try:
        loaded = table_source.load_file(table, request.table, table_source.checked_in(request, os.environ))
    except HcclToolsError as error:
        raise LaunchError(f"the table has changed: {error.message}", hint=error.hint) from error
    if loaded.data != prepared.table_data:
        raise LaunchError(
            f"{table} is another table by now", hint="start the job anew: its ranks have other places"
        )


def _processes(prepared: PreparedLaunch, number: int) -> Sequence[RankProcess]:
    plan = prepared.plan
    if plan.supervisor:
        at = plan.supervisor.index("--")
        told = (*plan.supervisor[:at], f"--restart={number}", *plan.supervisor[at:])
        plan = plan._replace(supervisor=told)
    elif plan.shim_command:
        from hccl_tools.launch.mpi import planned_ranks  # noqa: PLC0415  (for MPI ranks only)

        plan = plan._replace(shim_command=(*plan.shim_command, f"--restart={number}"))
        planned_ranks.write(plan, prepared.table_data, number)
    return engines.of(plan).processes(plan)
