"""What is known of the hosts of a job that an engine starts: their names, and how the loss of one is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.verdict import KILLED, lost_process, ranks_text
from hccl_tools.launch.model.outcome import Cause

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


def name(plan: Plan, index: int) -> str:
    """Return what the plan calls a server."""
    return next(process.host for process in plan.ranks if process.server_index == index)


def loss(plan: Plan, number: int, pid: int) -> Cause:
    """Return the cause of a job that has lost the supervisor of a server, or the shim of a rank on this host.

    ``number`` is that of the server or of the rank, ``pid`` the process.
    """
    if plan.supervisor:
        return Cause(name(plan, number), "host", KILLED, lost(plan, "supervisor", number))
    what = f"the shim of rank {number} (hccl_tools.launch.rank, pid {pid}) was killed"
    return lost_process(os.uname().nodename, what)


def lost(plan: Plan, who: str, index: int) -> str:
    """Return in a sentence that a server's launcher or supervisor (``who``) ended without a word."""
    own = [process.rank for process in plan.ranks if process.server_index == index]
    return (
        f"the {who} on {name(plan, index)} ({ranks_text(own)}) ended without a word: it was killed, "
        "or its host is down or cut off"
    )
