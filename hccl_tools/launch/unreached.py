"""Hosts that MPICH's mpiexec cannot reach: it waits for ever for one whose ssh has failed.

It has one child per host, ssh or its own proxy, and collects none before the end. Each host that has come and
gone accounts for one that has ended; one more is the ssh to a host that nobody has come from.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch import end_messages, excerpt, proc
from hccl_tools.launch.engines.starter import ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.attempt import Attempt

#: Seconds between two looks.
_LOOK = 0.5


def watch(attempt: Attempt, hosts: Callable[[], tuple[list[str], int]], run_dir: str, token: str) -> None:
    """End the job when mpiexec's way to a host has ended that nobody has come from.

    Args:
        attempt: This start of the job.
        hosts: Returns the hosts that nobody has come from, and how many have come and gone.
        run_dir: The run directory, for what ssh has said, and hosts that only the engine's output comes from.
        token: What marks that output.
    """

    def look() -> None:
        ended = _ended_children(attempt)
        missing, gone = hosts()  # Later: a host says so before its way ends.
        if not missing:
            return
        if ended <= gone:
            attempt.at("unreached", _LOOK, look)
        elif left := [host for host in missing if host not in end_messages.nodes(run_dir, token)]:
            said = excerpt.last_lines(excerpt.log_end(os.path.join(run_dir, ERRORS)), 1)
            why = f"{', '.join(left)} cannot be reached" + "".join(f": {line}" for line in said)
            attempt.end("refused", why)

    look()


def _ended_children(attempt: Attempt) -> int:
    engine = next(end for end in attempt.ends if end.process.rank >= 0)
    children = [process for process in proc.processes().values() if process.parent == engine.pid]
    return sum(process.state in proc.ENDED_STATES for process in children) if engine.pid else 0
