"""The end of MindSpore's scheduler, which the shim of rank 0 has started beside its rank."""

from __future__ import annotations

import os
import signal
import time

#: Seconds that it gets to see that the ranks have gone, and between two looks at it.
_WAIT, _LOOK = 10.0, 0.2


def end(pid: int, port: int, *, patiently: bool) -> None:
    """Let the scheduler end by itself while other ranks are connected to it, then end it."""
    deadline = time.monotonic() + _WAIT
    while patiently and (time.monotonic() < deadline or _is_connected(port)):
        if _is_gone(pid):
            return
        if not _is_connected(port):
            break
        time.sleep(_LOOK)
    if not _is_gone(pid):
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _is_gone(pid: int) -> bool:
    """Tell whether a child has ended; it may have been collected already, with the orphans."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _is_connected(port: int) -> bool:
    """Tell whether anybody holds a connection to a port of this host (state 01 in /proc/net/tcp)."""
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
