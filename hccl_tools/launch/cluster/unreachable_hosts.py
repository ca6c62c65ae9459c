"""What has become of the ssh and of the proxies by which MPICH's mpiexec reaches its hosts.

It has one child per host, ssh or its own proxy, and collects none before the end. It waits for ever for a
host whose ssh has failed, and exits with 255 in the end where an ssh was killed. Each host that has come and
gone accounts for one that has ended; one more is the ssh to a host that nobody has come from, or was lost.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.process import ERRORS
from hccl_tools.launch.logs import excerpt
from hccl_tools.launch.processes import parent, procfs

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.processes.procfs import Status
    from hccl_tools.launch.supervise.attempt import Attempt

#: Seconds between two looks.
_LOOK = 0.5


def watch(
    attempt: Attempt,
    hosts: Callable[[], tuple[list[str], int]],
    run_dir: str,
    lost: Callable[[str], None],
) -> None:
    """End the job when mpiexec's way to a host has ended that is needed.

    Args:
        attempt: This start of the job.
        hosts: Returns the hosts that nobody has come from, and how many have come and gone.
        run_dir: The run directory, for what ssh has said.
        lost: Called with what was lost after all hosts had come.
    """

    def look() -> None:
        missing, gone = hosts()  # Later: a host says so before its way ends.
        if not missing:
            for child in _children(attempt):
                parent.on_end_of(child.pid, attempt.reactor, partial(ended, child))
        elif len(_ended(attempt)) <= gone:
            attempt.call_later("unreached", _LOOK, look)
        else:
            said = excerpt.last_lines(excerpt.log_end(os.path.join(run_dir, ERRORS)), 1)
            why = f"{', '.join(missing)} cannot be reached" + "".join(f": {line}" for line in said)
            attempt.end("refused", why)

    def ended(child: Status) -> None:
        name = procfs.read(f"/proc/{child.pid}/comm").strip()
        what = f"{name} (pid {child.pid}) was killed, or has ended before the ranks that it has started"
        attempt.call_later(f"ended {child.pid}", _LOOK, partial(judge, what))

    def judge(what: str) -> None:
        if len(_ended(attempt)) > hosts()[1]:
            lost(what)

    look()


def _children(attempt: Attempt) -> list[Status]:
    engine = next(end for end in attempt.state.ends if end.process.rank >= 0)
    return [process for process in procfs.processes().values() if engine.pid and process.parent == engine.pid]


def _ended(attempt: Attempt) -> list[Status]:
    return [process for process in _children(attempt) if process.state in procfs.ENDED_STATES]
