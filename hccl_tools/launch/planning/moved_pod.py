"""Wait until the table lists this pod: one that was moved sees the earlier table until kubelet updates it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.launch.planning.local_server import NotAMemberError
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: Seconds between two looks; kubelet updates a ConfigMap once a minute.
_POLL_SECONDS = 5.0


def prepared(
    request: LaunchRequest, seconds: float, prepare: Callable[[LaunchRequest], PreparedLaunch]
) -> PreparedLaunch:
    """Return the plan of a launch once one of the table's servers is this host.

    Raises:
        NotAMemberError: None was after ``seconds``, in which the table is also awaited.
    """
    end, is_first = time.monotonic() + seconds, True
    while True:
        try:
            return prepare(request)
        except NotAMemberError as error:
            left = end - time.monotonic()
            if left <= 0:
                raise
            if is_first:
                tell(f"hccl-tools: waiting for a table with this host, at most {left:.0f} s: {error.head}")
        is_first = False
        time.sleep(min(_POLL_SECONDS, left))
        left = max(0.0, end - time.monotonic())
        request = request._replace(table=request.table._replace(wait=left))
