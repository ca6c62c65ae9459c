"""Explain why a process cannot be started."""

from __future__ import annotations

import errno
import os


def why_not_started(number: int) -> str:
    """Return the meaning of the errno of a failed fork, including the process limit if it was reached."""
    reason = os.strerror(number)
    if number != errno.EAGAIN:
        return reason
    import resource  # noqa: PLC0415  (rare)

    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    shown = "unlimited" if limit == resource.RLIM_INFINITY else limit
    return f"no more processes can be started (`ulimit -u` is {shown}; a container's pids limit also applies)"
