"""The end of a run, asked for from outside: its launcher ends it; what has lost its launcher is killed."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import UsageError
from hccl_tools.launch import proc, runs

if TYPE_CHECKING:
    from hccl_tools.launch.runs import Run

#: Seconds between two looks; from SIGTERM to the SIGINT at which a launcher kills; for SIGKILL to work.
_PAUSE, _BEFORE_NOW, _KILL_WAIT = 0.05, 0.3, 5.0


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
            hint=_what_to_type(run, now=now),
        )
    left = runs.processes(run)
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
    code = runs.read(run.path).exit_code
    what = "its launcher was killed" if code is None else f"exit code {code}"
    said = f"{run.name} has ended after {time.monotonic() - began:.1f} s: {what}{_others(run)}"
    return Stopped(_kill(run), said)


def _what_to_type(run: Run, *, now: bool) -> str:
    """Return the command that stops a run whose launcher is on another host."""
    from hccl_tools.launch import end_messages  # noqa: PLC0415  (few look from another host)

    plan = runs.plan_of(run)
    stop = [plan.get("launcher_python") or sys.executable, "-m", "hccl_tools", "stop", run.path]
    command = shlex.join([*stop, "--now"] if now else stop)
    job, node = plan.get("slurm_job"), run.host.partition(".")[0]
    if not job:
        return f"ssh {run.host} {command}"
    if node not in end_messages.nodes(run.path).values():
        return f"`scancel {job}`, or ssh {run.host} {command}"
    return f"`scancel {job}`, or srun --jobid {job} --overlap -N1 -n1 -w {node} {command}"


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
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + wait
    while runs.processes(run) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    over = _kill(run)
    return Stopped(over, f"the ranks of {run.name} have ended; pid {run.pid}, which called spawn, is told so")


def _signal(run: Run, number: int) -> None:
    try:
        os.kill(run.pid, number)
    except ProcessLookupError:
        # The lock is held, so that it lives: in another container, where the number means another process.
        if runs.is_held(run.path):
            raise UsageError(
                f"the launcher of {run.name} runs in another container of this host", hint="stop it there"
            ) from None
    except PermissionError as error:
        raise UsageError(
            f"the launcher of {run.name} (pid {run.pid}) belongs to another user",
            hint=f"sudo hccl-tools stop {run.path}",
        ) from error


def _wait(run: Run, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while held := runs.is_held(run.path):
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE)
    return not held


def _kill(run: Run) -> bool:
    """Kill what is left of a run on this host; false for what is stuck in the kernel."""
    deadline = time.monotonic() + _KILL_WAIT
    while left := runs.processes(run):
        if time.monotonic() > deadline:
            return False
        _resume_keepers(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
    return True


def _resume_keepers(left: list[int]) -> None:
    """Let stopped keepers and watchers above these processes notice that their launcher is gone."""
    for pid in left:
        while (process := proc.status(pid)) and process.parent > 1:
            pid = process.parent  # noqa: PLW2901  (upwards)
            if proc.read(f"/proc/{pid}/comm").startswith("hccl-"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGCONT)


def _others(run: Run) -> str:
    """Tell of ranks on other hosts that have launchers of their own."""
    plan = runs.plan_of(run)
    hosts = {process["host"] for process in plan.get("processes", []) if not process.get("here", True)}
    if not hosts or plan.get("engine") != "loop":
        return ""
    where = ", ".join(sorted(hosts))
    if plan.get("meeting"):
        return f"; so do its ranks on {where}: the launcher there has been told"
    return f"; the ranks on {where} have a launcher there: type the same on each"
