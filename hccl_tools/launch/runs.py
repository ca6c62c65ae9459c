"""Runs on disk: which there are, which still run, how they ended; and the end of one that runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.errors import UsageError
from hccl_tools.launch import proc
from hccl_tools.launch.run_directory import HOLDER, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN_VARIABLE = "HCCL_TOOLS_RUN_DIR"
_PAUSE = 0.05


class Run(NamedTuple):
    """One launch.

    Attributes:
        path: Its run directory, absolute.
        state: ``running``, ``ended`` (there is a report) or ``killed`` (its launcher has left none).
        pid: The launcher's, 0 where nobody noted it.
        host: Where the launcher ran.
        started: Seconds since the epoch, 0.0 where nobody noted it.
        ranks: How many the plan has.
        exit_code: Of an ended run.
        command: What its ranks run.
    """

    path: str
    state: str
    pid: int = 0
    host: str = ""
    started: float = 0.0
    ranks: int = 0
    exit_code: int | None = None
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its path."""
        return os.path.basename(self.path)


def find(log_dir: str) -> list[Run]:
    """Return the runs below a log directory, oldest first, and those that run elsewhere on this host."""
    here = os.path.abspath(log_dir)
    names = sorted(os.listdir(here)) if os.path.isdir(here) else []
    paths = [os.path.join(here, name) for name in names if name != LATEST]
    paths = [path for path in paths if os.path.exists(os.path.join(path, "plan.json"))]
    return [read(path) for path in (*paths, *sorted(_running_here() - set(paths)))]


def resolve(name: str, log_dir: str) -> Run:
    """Return the run that a user means: a path, a name in the log directory, its beginning, or ``latest``.

    Raises:
        UsageError: There is no such run, or more than one.
    """
    if os.path.isdir(name) and os.path.exists(os.path.join(name, "plan.json")):
        return read(os.path.realpath(name))
    if name == LATEST and os.path.isdir(link := os.path.join(log_dir, LATEST)):
        return read(os.path.realpath(link))
    found = [run for run in find(log_dir) if run.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(run.name for run in found[:4])
        raise UsageError(f'"{name}" could be any of {shown}', hint="type more of it")
    raise UsageError(
        f'there is no run "{name}" in {log_dir}', hint="`hccl-tools jobs` lists them; see --log-dir"
    )


def read(path: str) -> Run:
    """Return what a run directory says."""
    plan, report = _json(os.path.join(path, "plan.json")), _json(os.path.join(path, "report.json"))
    pid, host, started = _holder(path)
    ranks = [process for process in plan.get("processes", []) if process["rank"] >= 0]
    state = "running" if _is_held(path) else "ended" if report else "killed"
    return Run(
        path,
        state,
        pid,
        host,
        started,
        len(ranks),
        report.get("exit_code"),
        tuple(ranks[0]["argv"]) if ranks else (),
    )


def processes(run: Run) -> list[int]:
    """Return the processes of this host that belong to a run, whoever their parent is now."""
    return [pid for pid, path in _members() if path == run.path]


def stop(run: Run, *, wait: float) -> bool:
    """End a run: ask its launcher, and kill what is left of a run that has lost its launcher.

    Args:
        run: It must be one of this host.
        wait: Seconds for the launcher, its grace time among them.

    Returns:
        Whether nothing of it is left.
    """
    deadline = time.monotonic() + wait
    if run.state == "running" and run.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(run.pid, signal.SIGTERM)
        while _is_held(run.path) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        if _is_held(run.path):
            return False
    while (left := processes(run)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
    return not left


def _is_held(path: str) -> bool:
    """Tell whether a launcher holds the lock of a run."""
    try:
        with open(os.path.join(path, HOLDER), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _holder(path: str) -> tuple[int, str, float]:
    pid, host, started = (*proc.read(os.path.join(path, HOLDER)).splitlines(), "0", "", "0")[:3]
    return int(pid), host, float(started or 0)


def _json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {}
    return value


def _members() -> Iterator[tuple[int, str]]:
    """Yield every process of this host that was started for some run, and that run's directory."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (path := proc.variable(int(name), _RUN_VARIABLE)):
            status = proc.status(int(name))
            if status is not None and status.state not in proc.ENDED_STATES:
                yield int(name), path


def _running_here() -> set[str]:
    return {path for _pid, path in _members() if os.path.exists(os.path.join(path, "plan.json"))}
