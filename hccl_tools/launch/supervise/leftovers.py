"""Ending a job without its keeper: that was killed, or something holds it so that it cannot do its work."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.processes import procfs

if TYPE_CHECKING:
    from resource import struct_rusage

    from hccl_tools.launch.processes.keeper import Keeper
    from hccl_tools.launch.processes.procfs import Status
    from hccl_tools.launch.supervise.attempt import Attempt

#: Pauses between two rounds of killing, in seconds: growing from the first to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.001, 0.1


def end_job(attempt: Attempt, wait: float) -> list[Status]:
    """Kill what a keeper has left, again and again: the watcher's children, or our own if that has gone.

    A keeper that is still there has nothing to do with it if the kernel does not let the others go; else it
    is killed, and the kernel kills its ranks with it.

    Args:
        attempt: The job. Its ranks get the ends that the keeper has not told.
        wait: Seconds, for the keeper's own end and for the others'.

    Returns:
        Those that are still there after that (stuck in the kernel).
    """
    keeper = attempt.keeper
    if not keeper.gone:
        left = keeper.descendants()
        if all(process.state == "D" for process in left):
            return left
        attempt.say(f"the keeper (process {keeper.pid}) does nothing: ending the job without it")
        _kill(keeper, wait)
    ends = _kill_orphans(keeper, wait)
    left = procfs.descendants(os.getpid(), since=keeper.begun, but=keeper.watcher)
    stuck = {process.pid for process in left}
    for end in attempt.running:
        if end.pid not in stuck:
            end.ended, end.asked, end.status = time.monotonic(), True, int(signal.SIGKILL)
            if end.pid in ends:
                end.status, usage = ends[end.pid]
                end.cpu, end.peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    return left


def _kill(keeper: Keeper, wait: float) -> None:
    procfs.signal_all(keeper.pid, signal.SIGKILL)  # First: the caller may be no subreaper.
    with suppress(ProcessLookupError):
        os.kill(keeper.pid, signal.SIGKILL)
    keeper.wait_gone(wait)


def _kill_orphans(keeper: Keeper, wait: float) -> dict[int, tuple[int, struct_rusage]]:
    """Kill what is left, side by side with the watcher: should that be killed as well, this goes on."""
    since = keeper.begun
    deadline = time.monotonic() + wait
    pause = _FIRST_PAUSE
    ends: dict[int, tuple[int, struct_rusage]] = {}
    while procfs.signal_all(os.getpid(), signal.SIGKILL, since=since, but=keeper.watcher):
        ends |= _collect_ended(since)
        if time.monotonic() > deadline:
            break
        time.sleep(pause)
        pause = min(2 * pause, _LAST_PAUSE)
    ends |= _collect_ended(since)
    return ends


def _collect_ended(since: int) -> dict[int, tuple[int, struct_rusage]]:
    me, ends = os.getpid(), {}
    for process in procfs.processes().values():
        if process.parent == me and process.state in procfs.ENDED_STATES and process.start >= since:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                ends[pid] = status, usage
    return ends
