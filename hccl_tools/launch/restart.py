"""``--max-restarts``: prepare the next start of all ranks on all hosts.

The table is read and checked again, and each start has its own logs. An engine is started again; launchers
that were started by hand wait for each other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError
from hccl_tools.launch import engines
from hccl_tools.launch.supervise.options import NextStart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.processes.signals import Signals
    from hccl_tools.launch.supervise.options import BeforeRestart


def before_restart(prepared: PreparedLaunch, request: LaunchRequest, link: PeerLink | None) -> BeforeRestart:
    """Return the function that a supervisor calls before each restart.

    The function raises LaunchError if the table has changed on this host or on another host of ``link``.

    Raises:
        LaunchError: The job was started separately on several hosts, without a rendezvous.
    """
    plan, restarts = prepared.plan, request.watch.max_restarts
    if plan.local_server is not None and plan.rendezvous is None and request.part is None:
        raise LaunchError(
            f"--max-restarts {restarts}: hosts without a rendezvous cannot restart together",
            hint="leave --preflight none out, or start the job once for all hosts: --engine mpirun or slurm",
        )

    def before(_outcome: Outcome, number: int, signals: Signals) -> NextStart:
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
        return NextStart(_processes(prepared, number))

    return before


def _check_table(prepared: PreparedLaunch, request: LaunchRequest) -> None:
    table = prepared.plan.table
    if table is None or request.table.made is not None or not os.path.exists(table):
        return  # Only the copy in the run directory exists, and this copy does not change.
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415  (a restart is rare)

    try:
        loaded = table_source.load_file(table, request.table, table_source.checked_in(request, os.environ))
    except HcclToolsError as error:
        raise LaunchError(f"the table has changed: {error.message}", hint=error.hint) from error
    if loaded.data != prepared.table_data:
        raise LaunchError(f"{table} has changed since the job started", hint="start the job again")


def _processes(prepared: PreparedLaunch, number: int) -> Sequence[RankProcess]:
    plan = prepared.plan
    if plan.supervisor:
        at = plan.supervisor.index("--")
        command = (*plan.supervisor[:at], f"--restart={number}", *plan.supervisor[at:])
        plan = plan._replace(supervisor=command)
    elif plan.shim_command:
        from hccl_tools.launch.mpi import planned_ranks  # noqa: PLC0415  (for MPI ranks only)

        plan = plan._replace(shim_command=(*plan.shim_command, f"--restart={number}"))
        planned_ranks.write(plan, prepared.table_data, number)
    return engines.of(plan).processes(plan)
