"""Watch the ssh and proxy processes through which MPICH's mpiexec reaches its hosts.

mpiexec has one child per host, ssh or its own proxy, and reaps its children only at the end. It waits forever
for a host whose ssh has failed, and exits with 255 if an ssh was killed. Each host whose supervisor has
disconnected accounts for one exited child; a further exited child is an ssh that failed or was killed.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.logs import excerpt
from hccl_tools.processes import parent, procfs
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.procfs import Status

#: Seconds between two checks.
_CHECK_SECONDS = 0.5


def watch(
    attempt: Attempt, hosts: Callable[[], tuple[list[str], int]], run_dir: str, lost: Callable[[str], None]
) -> None:
    """End the job when a process that mpiexec needs to reach a host has exited.

    ``hosts`` reads what the supervisors have sent, and returns the hosts whose supervisor has not connected,
    and the number of disconnected hosts.
    ``lost`` is called with a description of a process lost after all hosts had connected.
    """

    def check() -> None:
        ended_children = len(_ended(attempt))  # First: a host disconnects before its ssh exits.
        missing, gone = hosts()
        if not missing:
            for child in _children(attempt):
                parent.on_end_of(child.pid, attempt.reactor, partial(ended, child))
        elif ended_children <= gone:
            attempt.call_later("unreached", _CHECK_SECONDS, check)
        else:
            errors = excerpt.last_lines(excerpt.log_end(os.path.join(run_dir, names.ENGINE_ERRORS)), 1)
            why = f"{', '.join(missing)} cannot be reached" + "".join(f": {line}" for line in errors)
            attempt.end("refused", why)

    def ended(child: Status) -> None:
        name = procfs.read(f"/proc/{child.pid}/comm").strip()
        what = f"{name} (pid {child.pid}) was killed, or exited before its ranks"
        attempt.call_later(f"ended {child.pid}", _CHECK_SECONDS, partial(check_loss, what))

    def check_loss(what: str) -> None:
        if len(_ended(attempt)) > hosts()[1]:
            lost(what)

    check()


def _children(attempt: Attempt) -> list[Status]:
    engine = next(end for end in attempt.state.ends if end.process.rank >= 0)
    return [process for process in procfs.processes().values() if engine.pid and process.parent == engine.pid]


def _ended(attempt: Attempt) -> list[Status]:
    return [process for process in _children(attempt) if process.state in procfs.ENDED_STATES]
