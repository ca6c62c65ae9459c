"""Find the process of this host's first MPI rank, which prepares what all ranks of the host use."""

from __future__ import annotations

import os
import time

from hccl_tools.errors import UsageError
from hccl_tools.launch.mpi import world
from hccl_tools.processes import procfs

_INTERVAL = 0.01
#: Seconds for the first rank to print why the job is refused.
_TIMEOUT = 5.0


def find() -> int:
    """Return the process id of the first rank, a sibling of this process; 0 if it has exited."""
    parent = os.getppid()
    children = (process for process in procfs.processes().values() if process.parent == parent)
    return next((child.pid for child in children if runs(child.pid) and _is_first(child.pid)), 0)


def runs(pid: int) -> bool:
    """Return whether a process is still running."""
    status = procfs.status(pid)
    return status is not None and status.state not in procfs.ENDED_STATES


def wait_for_end() -> None:
    """Wait until the first rank has exited, at most ``_TIMEOUT`` seconds."""
    first, deadline = find(), time.monotonic() + _TIMEOUT
    while first and runs(first) and time.monotonic() < deadline:
        time.sleep(_INTERVAL)


def _is_first(pid: int) -> bool:
    try:
        return world.from_environment(procfs.environment(pid)).local_rank == 0
    except UsageError:
        return False
