"""The stages of a job whose hosts an engine starts; loaded by one import in ``launcher``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import engine_output
from hccl_tools.launch.cluster.controller import Controller
from hccl_tools.launch.mpi import planned_ranks, repeated_start
from hccl_tools.launch.planning import host_names

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.supervise.options import Supervision


class ByEngine:
    """What ``launcher`` calls, in this order."""

    refuse_repeated_start = staticmethod(repeated_start.refuse)
    check_host_names = staticmethod(host_names.check)
    write_ranks = staticmethod(planned_ranks.write)

    @staticmethod
    def open_controller(prepared: PreparedLaunch, request: LaunchRequest) -> Controller:
        """Listen for the agents that the engine will start.

        Raises:
            LaunchError: There is no port to listen on.
        """
        try:
            return Controller(
                prepared.plan,
                prepared.table_data,
                spares=[spare.name for spare in request.spares],
                hang_timeout=request.watch.hang_timeout,
                evidence_timeout=request.watch.evidence_timeout,
            )
        except OSError as error:
            raise LaunchError(
                f"cannot listen for the job's processes on a TCP port: {error.strerror}"
            ) from error

    @staticmethod
    def supervised(supervision: Supervision, prepared: PreparedLaunch, controller: Controller) -> Supervision:
        """Return a supervision that shows and explains what the agents report."""
        shown = engine_output.shown_by(supervision, prepared.plan, controller.watch)
        return shown._replace(explain=controller.explain, count_ranks=controller.count_ranks)
