"""The stages of a job whose command the user types on each host; loaded by one import in ``launcher``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.cluster import consistency
from hccl_tools.launch.cluster.membership import RefusalError
from hccl_tools.launch.cluster.peer_coordination import PeerCoordination

if TYPE_CHECKING:
    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch


class ByHand:
    """What ``launcher`` calls, in this order."""

    connect_peers = staticmethod(consistency.connect_peers)
    Coordination = PeerCoordination

    @staticmethod
    def report_refusal(
        error: HcclToolsError, prepared: PreparedLaunch | None, request: LaunchRequest
    ) -> None:
        """Tell the hosts that wait why this one does not start, unless one of them has refused it."""
        if not isinstance(error, RefusalError):
            consistency.refuse(prepared, request, error.message)
