"""The end of a run, asked for from outside: its launcher ends it; what has lost its launcher is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import UsageError
from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs import files, index, members, names
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import as_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.runs.index import Run

#: Seconds between two looks; from SIGTERM to the SIGINT at which a launcher kills; for SIGKILL to work.
_PAUSE, _BEFORE_NOW, _KILL_WAIT = 0.05, 0.3, 5.0
#: Seconds by which the time of day and the clock that counts from boot may have drifted apart.
_CLOCKS_DIFFER = 60.0


class Stopped(NamedTuple):
    """What became of a request to stop: ``over`` when nothing is left of the run; what to tell the user."""

    over: bool
    said: str


def stop(run: Run, *, wait: float, now: bool = False) -> Stopped:
    """End a run.

    Args:
        run: Which.
        wait: Seconds for its launcher, whose own grace time is among them.
        now: Kill the ranks without their grace time.

    Raises:
        UsageError: It runs on another host, or belongs to another user.
    """
    if run.state in {"running", "elsewhere"} and run.host not in {"", os.uname().nodename}:
        # On a shared disk its lock may well be seen here; its process id means another process.
        raise UsageError(
            f"the launcher of {run.name} is on {run.host}, this is {os.uname().nodename}",
            hint=_what_to_type(run, now=now) if index.is_own(run) else f"ask {index.user_of(run.path)}",
        )
    _check_owner(run)
    left = _processes(run)
    if run.state != "running":
        return _without_launcher(run, left)
    if run.kind == "spawn":
        return _spawned(run, left, wait=0.0 if now else wait)
    _signal(run, signal.SIGTERM)
    _signal(run, signal.SIGCONT)  # A stopped launcher would sleep over it.
    if now:
        _wait(run, _BEFORE_NOW)
        _signal(run, signal.SIGINT)
    began = time.monotonic()
    if not _wait(run, wait):
        hint = (
            "" if now else "; its ranks may take the grace time of their launch (`--now` kills them at once)"
        )
        return Stopped(False, f"{run.name} has not ended within {wait:g} s (launcher: pid {run.pid}){hint}")
    code = index.read(run.path).exit_code
    what = "its launcher was killed" if code is None else f"exit code {code}"
    said = f"{run.name} has ended after {time.monotonic() - began:.1f} s: {what}{_others(run)}"
    return Stopped(_kill(run), said)


def _what_to_type(run: Run, *, now: bool) -> str:
    """Return the command that stops a run whose launcher is on another host."""
    from hccl_tools.launch.runs import node_names  # noqa: PLC0415  (few look from another host)

    if host_list.why_not_a_host(run.host):
        return f"see {os.path.join(run.path, names.PLAN)}: that is not a host name"
    stop = [sys.executable, "-m", "hccl_tools", "stop", run.path]
    command = shlex.join([*stop, "--now"] if now else stop)
    job, node = index.plan_of(run).get("slurm_job") or "", run.host.partition(".")[0]
    if not job.isdecimal():
        return f"ssh -- {run.host} {shlex.quote(command)}"
    if node not in node_names.node_names(run.path).values():
        return f"`scancel {job}`, or ssh -- {run.host} {shlex.quote(command)}"
    return f"`scancel {job}`, or srun --jobid {job} --overlap -N1 -n1 -w {node} {command}"


def _check_owner(run: Run) -> None:
    """Refuse to end a run of another user; root may, as that user's processes alone are ended."""
    if os.geteuid() != 0 and not index.is_own(run):
        raise UsageError(
            f"{run.name} belongs to {index.user_of(run.path)}",
            hint=as_root(f"stop {shlex.quote(run.path)}"),
        )


def _user(run: Run) -> int:
    """Return whose processes a run may consist of: its directory's owner's."""
    return os.geteuid() if index.is_own(run) else os.stat(run.path).st_uid


def _processes(run: Run) -> list[int]:
    """Return what is left of a run on this host; what another user has started is not part of it."""
    user = _user(run)
    return [pid for pid in index.processes(run) if pid > 1 and procfs.user(pid) == user]


def _send(pid: int, number: int, is_meant: Callable[[int], bool]) -> None:
    """Signal a process if it is the one that is meant; another may have its number by now.

    Raises:
        ProcessLookupError: There is none, or it is another.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EPERM}:
            raise ProcessLookupError from error
        if is_meant(pid):  # Before Linux 5.3 there is a moment between the two.
            os.kill(pid, number)
        return
    try:
        if not is_meant(pid):
            raise ProcessLookupError
        signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _is_launcher(run: Run, pid: int) -> bool:
    """Tell whether a process is the launcher of a run: by its user and by the time at which it started."""
    noted, process = files.holder(run.path), procfs.status(pid)
    if process is None or pid <= 1 or procfs.user(pid) != _user(run):
        return False
    if noted.start:
        return process.start == noted.start
    # Of a run of an older version: it cannot have started after it noted itself.
    return procfs.started(process) < noted.started + _CLOCKS_DIFFER


def _without_launcher(run: Run, left: list[int]) -> Stopped:
    if run.state == "ended" and not left:
        return Stopped(True, f"{run.name} has already ended: exit code {run.exit_code}")
    what = f"{run.name} has lost its launcher" if run.state == "killed" else f"{run.name} has ended"
    if not left:
        return Stopped(True, f"{what} (pid {run.pid}, without a report); no process of it is left here")
    over = _kill(run)
    many = "" if len(left) == 1 else "es"
    end = "killed" if over else "some of them are stuck in the kernel"
    return Stopped(over, f"{what}; {len(left)} process{many} it had left: {end}")


def _spawned(run: Run, left: list[int], *, wait: float) -> Stopped:
    """End the ranks only: the launcher is the user's own program, and is told by their end."""
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            _send(pid, signal.SIGTERM, partial(_is_member, run))
    deadline = time.monotonic() + wait
    while _processes(run) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    over = _kill(run)
    return Stopped(over, f"the ranks of {run.name} have ended; pid {run.pid}, which called spawn, is told so")


def _signal(run: Run, number: int) -> None:
    try:
        _send(run.pid, number, partial(_is_launcher, run))
    except ProcessLookupError:
        # The lock is held: by a process of another container, where the number means another process.
        if index.is_held(run.path):
            raise UsageError(
                f"process {run.pid} is not the launcher of {run.name}, whose lock is held all the same",
                hint="if it runs in another container of this host, stop it there",
            ) from None


def _is_member(run: Run, pid: int) -> bool:
    return members.run_of(pid) == run.path and procfs.user(pid) == _user(run)


def _wait(run: Run, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while held := index.is_held(run.path):
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE)
    return not held


def _kill(run: Run) -> bool:
    """Kill what is left of a run on this host; return False if some of it is stuck in the kernel."""

    def kill() -> list[int]:
        left = _processes(run)
        _resume_keepers(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                _send(pid, signal.SIGKILL, partial(_is_member, run))
        return left

    return procfs.kill_until_gone(kill, timeout=_KILL_WAIT)


def _resume_keepers(left: list[int]) -> None:
    """Let stopped keepers and watchers above these processes notice that their launcher is gone."""
    for pid in left:
        while (process := procfs.status(pid)) and process.parent > 1:
            pid = process.parent  # noqa: PLW2901  (upwards)
            if procfs.read(f"/proc/{pid}/comm").startswith("hccl-"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGCONT)


def _others(run: Run) -> str:
    """Return what becomes of the ranks on other hosts that have their own launchers."""
    plan = index.plan_of(run)
    hosts = {process["host"] for process in plan.get("processes", []) if not process.get("here", True)}
    if not hosts:
        return ""
    where = ", ".join(sorted(hosts))
    if plan.get("meeting"):
        return f"; so do its ranks on {where}: the launcher there has been told"
    return f"; the ranks on {where} have a launcher there: type the same on each"
