"""The hosts of a job that an engine starts: their names, and the cause that follows from losing one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.verdict import ranks_text
from hccl_tools.launch.model.outcome import Cause

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


def name(plan: Plan, index: int) -> str:
    """Return the plan's name of a server."""
    return next(process.host for process in plan.ranks if process.server_index == index)


def loss(plan: Plan, number: int, pid: int) -> Cause:
    """Return the cause of a job that has lost an agent.

    Args:
        number: The server of a lost supervisor, or the rank of a lost shim on this host.
    """
    if plan.supervisor:
        return Cause.lost(name(plan, number), "host", describe_loss(plan, "supervisor", number))
    what = f"the shim of rank {number} (hccl_tools.launch.rank, pid {pid}) was killed"
    return Cause.lost(os.uname().nodename, "daemon", what)


def describe_loss(plan: Plan, process: str, index: int) -> str:
    """Return the sentence for a server's ``process`` (launcher, supervisor) whose connection has closed."""
    own = [each.rank for each in plan.ranks if each.server_index == index]
    return (
        f"lost contact with the {process} on {name(plan, index)} ({ranks_text(own)}): it was killed, "
        "or the host is down or unreachable"
    )
