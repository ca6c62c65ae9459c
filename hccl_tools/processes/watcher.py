"""The watcher: the keeper's parent, which ends the job if neither launcher nor keeper can end it.

If a keeper is killed, its ranks are killed, but not their descendants. A stopped keeper does not detect the
end of its launcher. The watcher is a subreaper above the keeper: it inherits and kills processes of a dead
keeper, and resumes a stopped keeper once the launcher has exited.
"""

from __future__ import annotations

import os
import time

from hccl_tools.processes import linux, procfs
from hccl_tools.processes.limits import leave_callers_files

TYPE_CHECKING = False  # The keeper does not import typing, 5 of the 26 ms of its start.
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

_ALL_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
#: The signal that the kernel sends to the watcher when the launcher exits.
_LAUNCHER_ENDED = signal.SIGHUP
#: Seconds from one check of a keeper without a launcher to the next.
_CHECK_INTERVAL = 0.1
#: Seconds until a keeper without a launcher is killed.
_KEEPER_TIMEOUT = 5.0
#: Maximum seconds between two rounds of SIGKILL: processes may be stuck in the kernel for a long time.
_LONGEST_PAUSE = 1.0


def fork_keeper(launcher: int) -> None:
    """Fork the keeper, which returns, and become the watcher. Without a fork, return as the keeper."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
    linux.become_subreaper()
    try:
        keeper = os.fork()
    except OSError:
        return
    if keeper:
        _watch(launcher, keeper)


def end_descendants() -> None:
    """Kill the descendants of this process, a subreaper with SIGCHLD blocked, until none is left."""
    procfs.kill_until_gone(
        _kill_children,
        longest_pause=_LONGEST_PAUSE,
        wait=lambda seconds: signal.sigtimedwait({signal.SIGCHLD}, seconds),
    )


def _kill_children() -> bool:
    if _is_childless():
        return False
    procfs.signal_all(os.getpid(), signal.SIGKILL)
    return True


def _watch(launcher: int, keeper: int) -> NoReturn:
    try:
        os.setsid()
        linux.name_process("hccl-watcher")
        linux.die_with_parent(_LAUNCHER_ENDED)
        if (stdin := leave_callers_files(set())) >= 0:
            os.close(stdin)
        _wait_for(keeper, launcher)
        end_descendants()
    finally:
        os._exit(0)


def _wait_for(keeper: int, launcher: int) -> None:
    while os.getppid() == launcher:
        if _has_ended(keeper):
            return
        signal.sigwait({signal.SIGCHLD, _LAUNCHER_ENDED})
    deadline = time.monotonic() + _KEEPER_TIMEOUT
    while not _has_ended(keeper):
        os.kill(keeper, signal.SIGCONT if time.monotonic() < deadline else signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _CHECK_INTERVAL)


def _has_ended(keeper: int) -> bool:
    return os.waitpid(keeper, os.WNOHANG)[0] == keeper


def _is_childless() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
