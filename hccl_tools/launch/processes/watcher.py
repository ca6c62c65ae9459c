"""The watcher: the keeper's parent, which ends the job when nobody else is left to do it.

A keeper that is killed takes the ranks with it, but not what the ranks have started, and a stopped one does
not notice the end of its launcher. The watcher is a subreaper above the keeper: it inherits the processes of
a dead keeper and kills them, and it resumes a stopped keeper once the launcher is gone.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import NoReturn

from hccl_tools.launch.processes import linux, procfs
from hccl_tools.launch.processes.file_limit import leave_callers_files

_ALL_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
#: What the kernel sends the watcher when the launcher ends.
_LAUNCHER_ENDED = signal.SIGHUP
#: Seconds between two looks at a keeper without a launcher, and until it is killed.
_LOOK, _PATIENCE = 0.1, 5.0
#: Pauses between two rounds of killing, in seconds: growing from the first to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.001, 1.0


def fork_keeper(launcher: int) -> None:
    """Fork: the child returns and becomes the keeper, this process becomes the watcher and never returns.

    Where no further process may be started, this process returns and becomes the keeper itself.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
    linux.become_subreaper()
    try:
        keeper = os.fork()
    except OSError:
        return
    if keeper:
        _watch(launcher, keeper)


def end_descendants() -> None:
    """Kill every descendant of this process, a subreaper with SIGCHLD blocked, until there is none."""
    pause = _FIRST_PAUSE
    while not _is_childless():
        procfs.signal_all(os.getpid(), signal.SIGKILL)
        if signal.sigtimedwait({signal.SIGCHLD}, pause) is None:
            pause = min(2 * pause, _LAST_PAUSE)


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
    """Return when the keeper has ended; without its launcher it has a limited time for that."""
    while os.getppid() == launcher:
        if _has_ended(keeper):
            return
        signal.sigwait({signal.SIGCHLD, _LAUNCHER_ENDED})
    deadline = time.monotonic() + _PATIENCE
    while not _has_ended(keeper):
        os.kill(keeper, signal.SIGCONT if time.monotonic() < deadline else signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK)


def _has_ended(keeper: int) -> bool:
    return os.waitpid(keeper, os.WNOHANG)[0] == keeper


def _is_childless() -> bool:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    return True
