"""End a run through its launcher, or kill the processes that a killed launcher left."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.document import links
from hccl_tools.errors import UsageError
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import as_root
from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, files, hosts, index, lock_holder, names, run_processes

if TYPE_CHECKING:
    from hccl_tools.runs.index import Run

#: Seconds between two checks.
_POLL_SECONDS = 0.05
#: Seconds from SIGTERM to the SIGINT at which a launcher kills its ranks.
_SIGINT_DELAY_SECONDS = 0.3
#: Seconds for SIGKILL to take effect.
_KILL_SECONDS = 5.0


class Stopped(NamedTuple):
    """The result of a request to stop: whether no process of the run is left, and a message for the user."""

    over: bool
    message: str


def stop(run: Run, *, wait: float, now: bool = False) -> Stopped:
    """End a run within ``wait`` seconds, including the ranks' grace time; ``now`` skips the grace time.

    Raises:
        UsageError: The run is on another host, or belongs to another user.
    """
    if run.state in {"running", "elsewhere"} and run.host not in {"", os.uname().nodename}:
        # On a shared disk, the lock may be visible here, but the launcher's pid is another process here.
        raise UsageError(
            f"the launcher of {run.called} is on {run.host}, but this host is {os.uname().nodename}",
            hint=_what_to_type(run, now=now)
            if directory.is_own(run.path)
            else f"ask {links.user_of(run.path)}",
        )
    if os.geteuid() != 0 and not directory.is_own(run.path):
        raise UsageError(
            f"{run.name} belongs to {links.user_of(run.path)}", hint=as_root(f"stop {shlex.quote(run.path)}")
        )
    left = _processes(run)
    if run.state != "running":
        return _without_launcher(run, left)
    if run.kind == "spawn":
        return _spawned(run, left, wait=0.0 if now else wait)
    _signal(run, signal.SIGTERM)
    _signal(run, signal.SIGCONT)  # Resume a stopped launcher.
    if now:
        _wait(run, _SIGINT_DELAY_SECONDS)
        _signal(run, signal.SIGINT)
    began = time.monotonic()
    if not _wait(run, wait):
        hint = "" if now else "; its ranks may use their whole grace time (`--now` kills them at once)"
        return Stopped(False, f"{run.called} has not ended within {wait:g} s (launcher: pid {run.pid}){hint}")
    code = index.read(run.path).exit_code
    what = "its launcher was killed" if code is None else f"exit code {code}"
    message = f"stopped {run.called} within {time.monotonic() - began:.1f} s: {what}{_others(run)}"
    return Stopped(_kill(run), message)


def _what_to_type(run: Run, *, now: bool) -> str:
    if host_list.why_not_a_host(run.host):
        return f'"{run.host}" is not a host name: see {os.path.join(run.path, names.PLAN)}'
    command = own_python.typed("stop", run.path, *(["--now"] if now else []))
    job, node = files.plan(run.path).slurm_job or "", run.host.partition(".")[0]
    if not job.isdecimal():
        return f"`ssh -- {run.host} {shlex.quote(command)}`"
    if node not in hosts.node_names(run.path).values():
        return f"`scancel {job}`, or `ssh -- {run.host} {shlex.quote(command)}`"
    return f"`scancel {job}`, or `srun --jobid {job} --overlap -N1 -n1 -w {node} {command}`"


def _processes(run: Run) -> list[int]:
    """Return the processes of a run on this host; processes of other users do not belong to it."""
    user = directory.owner_of_processes(run.path)
    return [pid for pid in index.processes(run) if pid > 1 and procfs.user(pid) == user]


def _without_launcher(run: Run, left: list[int]) -> Stopped:
    if run.state == "ended" and not left:
        return Stopped(True, f"{run.called} has already ended: exit code {run.exit_code}")
    what = f"the launcher of {run.called} was killed" if run.state == "killed" else f"{run.called} has ended"
    if not left:
        return Stopped(
            True, f"{what} (pid {run.pid}, without a report); no process of the run is left on this host"
        )
    over = _kill(run)
    remaining = f"{len(left)} remaining process{'' if len(left) == 1 else 'es'}"
    end = f"killed {remaining}" if over else f"{remaining}, at least one stuck in the kernel"
    return Stopped(over, f"{what}; {end}")


def _spawned(run: Run, left: list[int], *, wait: float) -> Stopped:
    """End the ranks only: the launcher is the user's own program, which detects that they have exited."""
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            procfs.send(pid, signal.SIGTERM, partial(_is_member, run))
    deadline = time.monotonic() + wait
    while _processes(run) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    over = _kill(run)
    return Stopped(
        over, f"the ranks of {run.called} have exited; pid {run.pid} called spawn and detects this"
    )


def _signal(run: Run, number: int) -> None:
    try:
        procfs.send(run.pid, number, partial(lock_holder.is_launcher, run.path))
    except ProcessLookupError:
        # A launcher in another container holds the lock; here, its pid belongs to another process.
        if index.is_held(run.path):
            raise UsageError(
                f"process {run.pid} is not the launcher of {run.called}, but the lock of the run is held",
                hint="if the launcher runs in another container of this host, stop the run there",
            ) from None


def _is_member(run: Run, pid: int) -> bool:
    return run_processes.run_of(pid) == run.path and procfs.user(pid) == directory.owner_of_processes(
        run.path
    )


def _wait(run: Run, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while held := index.is_held(run.path):
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return not held


def _kill(run: Run) -> bool:
    def kill() -> list[int]:
        left = _processes(run)
        _resume_keepers(left, directory.owner_of_processes(run.path))
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                procfs.send(pid, signal.SIGKILL, partial(_is_member, run))
        return left

    return procfs.kill_until_gone(kill, timeout=_KILL_SECONDS)


def _resume_keepers(left: list[int], owner: int) -> None:
    """Resume stopped keepers and watchers of a user, so that they detect the exit of their launcher."""
    for pid in left:
        while (process := procfs.status(pid)) and process.parent > 1:
            pid = process.parent  # noqa: PLW2901  (upwards)
            if procfs.read(f"/proc/{pid}/comm").startswith("hccl-"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    procfs.send(pid, signal.SIGCONT, lambda keeper: procfs.user(keeper) == owner)


def _others(run: Run) -> str:
    """Return a remark about the ranks on other hosts, which have their own launchers."""
    plan = files.plan(run.path)
    others = {process.host for process in plan.processes if not process.here}
    if not others:
        return ""
    where = ", ".join(sorted(others))
    if plan.meeting:
        return f"; its ranks on {where} end as well"
    return f"; the ranks on {where} have their own launcher: run the same command there"
