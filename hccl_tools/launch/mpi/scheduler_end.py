"""End MindSpore's scheduler, which the shim of rank 0 has started."""

from __future__ import annotations

import os
import signal
import time

#: Seconds for the scheduler to notice that the ranks have exited.
_TIMEOUT = 10.0
_INTERVAL = 0.2


def end(pid: int, port: int, *, wait: bool) -> None:
    """Wait (if ``wait``) for the scheduler to exit while other ranks are connected to it, then kill it."""
    deadline = time.monotonic() + _TIMEOUT
    while wait and (time.monotonic() < deadline or _is_connected(port)):
        if _has_ended(pid):
            return
        if not _is_connected(port):
            break
        time.sleep(_INTERVAL)
    if not _has_ended(pid):
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _has_ended(pid: int) -> bool:
    """Return whether a child has exited; it may already have been reaped with the orphans."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _is_connected(port: int) -> bool:
    wanted = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        if any(row[1].endswith(wanted) and row[3] == "01" for row in rows[1:]):
            return True
    return False
