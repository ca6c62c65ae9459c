"""End a job whose keeper was killed or does not respond; report processes that jobs have left behind."""

from __future__ import annotations

import os
import shlex
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.processes import procfs
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from resource import struct_rusage

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.processes.keeper import Keeper
    from hccl_tools.processes.procfs import Status

#: Seconds for the keeper to exit, and then for its processes.
_WAIT = 5.0


def end_job(
    keeper: Keeper, running: Sequence[RankEnd], say: Callable[[str], None], wait: float = _WAIT
) -> list[Status]:
    """Kill the processes that a keeper has left: children of the watcher or, without a watcher, of this one.

    A running keeper is killed, and its ranks with it, unless the other processes are stuck in the kernel. The
    ends of ``running`` processes, which the keeper has not reported, are filled in. The keeper has ``wait``
    seconds to exit, and so have the other processes. Processes that remain are stuck in the kernel.
    """
    if not keeper.has_ended:
        left = keeper.descendants()
        if all(process.state == "D" for process in left):
            return left
        say(f"the keeper (pid {keeper.pid}) does not respond: killing the ranks directly")
        _kill(keeper, wait)
    ends = _kill_orphans(keeper, wait)
    left = procfs.descendants(os.getpid(), since=keeper.begun, but=keeper.watcher)
    stuck = {process.pid for process in left}
    for end in running:
        if end.pid not in stuck:
            end.ended, end.was_terminated, end.status = time.monotonic(), True, int(signal.SIGKILL)
            if end.pid in ends:
                end.status, usage = ends[end.pid]
                end.cpu, end.peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    return left


def _kill(keeper: Keeper, wait: float) -> None:
    procfs.signal_all(keeper.pid, signal.SIGKILL)  # Before the keeper: the caller may not be a subreaper.
    with suppress(ProcessLookupError):
        os.kill(keeper.pid, signal.SIGKILL)
    keeper.wait_gone(wait)


def _kill_orphans(keeper: Keeper, wait: float) -> dict[int, tuple[int, struct_rusage]]:
    ends: dict[int, tuple[int, struct_rusage]] = {}

    def kill() -> int:
        left = procfs.signal_all(os.getpid(), signal.SIGKILL, since=keeper.begun, but=keeper.watcher)
        ends.update(_collect_ended(keeper.begun))
        return left

    procfs.kill_until_gone(kill, timeout=wait)
    return ends


def _collect_ended(since: int) -> dict[int, tuple[int, struct_rusage]]:
    me, ends = os.getpid(), {}
    for process in procfs.processes().values():
        if process.parent == me and process.state in procfs.ENDED_STATES and process.start >= since:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                ends[pid] = status, usage
    return ends


#: The maximum number of processes listed in a message.
_MAX_SHOWN = 8


def describe_leftovers(left: Sequence[Status]) -> str:
    """Return a message that lists the processes that a job has left behind, with their ranks."""
    shown = [_describe(process.pid) for process in left[:_MAX_SHOWN]]
    if len(left) == 1:
        return f"ending what the job left behind: {shown[0]}"
    if len(left) > len(shown):
        shown.append(f"and {len(left) - len(shown)} more")
    return "\n  ".join([f"ending {len(left)} processes that the job left behind:", *shown])


def leftovers_of_last_run(log_dir: str) -> list[str]:
    """Return a warning if the launcher of this user's last run was killed and left processes on this host.

    Another user may have made the link to the last run, or the run.
    """
    path = links.real_path(os.path.join(log_dir, names.LATEST))
    has_report = os.path.exists(os.path.join(path, names.REPORT))
    if has_report or not os.path.exists(os.path.join(path, names.LAUNCHER)):
        return []
    from hccl_tools.runs import directory, files, index  # noqa: PLC0415  (2 ms; most runs have left their report)

    if not directory.is_own(path):
        return []
    try:
        run = index.read(path)
    except files.MalformedRunError:
        return []
    left = index.processes(run) if run.state == "killed" else []
    if not left:
        return []
    many = "1 process of the run is" if len(left) == 1 else f"{len(left)} processes of the run are"
    stop = shlex.join(["hccl-tools", "stop", path])
    return [f"the launcher of {path} was killed, and {many} left: `{stop}` ends them"]


def _describe(pid: int) -> str:
    rank = procfs.environment(pid).get("RANK_ID")
    return f"process {pid} ({procfs.command(pid) or 'ended'})" + (f" of rank {rank}" if rank else "")
