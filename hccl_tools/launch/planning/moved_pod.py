"""Wait for the table of this pod: one that was moved or started again sees the earlier table for a while.

kubelet updates the ConfigMap of the table once a minute, on each node at another time. So a pod can see a
table without it or with devices that it does not have, or wait for the hosts of an earlier table.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.launch.planning.local_server import EarlierTableError
from hccl_tools.notation.printable import tell
from hccl_tools.programs.environment import in_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: Seconds between two looks.
POLL_SECONDS = 5.0


class TableChangedError(Exception):
    """The table has changed while this host waited for the others, which it does until ``until``."""

    def __init__(self, until: float) -> None:
        super().__init__(until)
        self.until = until


def may_change(request: LaunchRequest) -> bool:
    """Return whether the table may be an earlier one: in a pod, if the user asked to wait for it."""
    return request.table.wait is not None and in_pod()


def prepared(
    request: LaunchRequest, seconds: float, prepare: Callable[[LaunchRequest], PreparedLaunch]
) -> PreparedLaunch:
    """Return the plan of a launch once the table is for this host and its devices.

    Raises:
        EarlierTableError: It was not after ``seconds``, in which the table is also awaited.
    """
    end, told = time.monotonic() + seconds, set[str]()
    while True:
        try:
            return prepare(request)
        except EarlierTableError as error:
            left = end - time.monotonic()
            if left <= 0:
                raise
            if error.lacks not in told:
                told.add(error.lacks)
                most = f"at most {left:.0f} s"
                tell(f"hccl-tools: waiting for a table with {error.lacks}, {most}: {error.head}")
        time.sleep(min(POLL_SECONDS, left))
        request = until(request, end)


def until(request: LaunchRequest, end: float) -> LaunchRequest:
    """Return the request that awaits the table until a time."""
    left = max(0.0, end - time.monotonic())
    return request._replace(table=request.table._replace(wait=left))


def with_its_table(request: LaunchRequest, launch: Callable[[LaunchRequest, float | None], int]) -> int:
    """Return what a launch returns, which begins again if the table changes while other hosts are awaited.

    ``launch`` takes the request and, unless it is the first attempt, the time until which hosts are awaited.
    """
    end = None
    while True:
        try:
            return launch(request, end)
        except TableChangedError as changed:  # noqa: PERF203  (few attempts)
            tell("hccl-tools: the table has changed: this host begins again with the new one")
            end = changed.until
            request = until(request, end)
