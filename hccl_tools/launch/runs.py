"""Runs as others see them: from their directories alone, while they last and afterwards.

A launcher leaves ``launcher.json`` (who it is) at its start and ``report.json`` (how it went) at its end. A run
with the first, without the second and without that very process has lost its launcher.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hccl_tools.errors import InputError
from hccl_tools.launch import proc
from hccl_tools.launch.run_directory import LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCHER_FILE, PLAN_FILE, REPORT_FILE = "launcher.json", "plan.json", "report.json"
SCHEMA_VERSION = 1

#: ``launch``: the launcher is a process of its own; ``spawn``: it is the program that called ``spawn``.
Kind = Literal["launch", "spawn"]
State = Literal[
    "running", "elsewhere", "lost", "ended", "failed", "timeout", "stopped", "log-error", "keeper", "refused"
]


class Launcher(NamedTuple):
    """Who started a run: a process that no other can be mistaken for, and how long it takes to end.

    ``start`` is in clock ticks since the boot ``boot``, ``began`` in seconds since 1970, ``grace`` in seconds;
    ``space`` is the PID namespace, outside of which ``pid`` means nothing.
    """

    pid: int
    start: int
    boot: str
    space: str
    host: str
    began: float
    grace: float
    ranks: int
    kind: Kind


class Run(NamedTuple):
    """One run directory and what it says: ``launcher`` or ``report`` are ``None`` where the file is missing."""

    directory: str
    launcher: Launcher | None
    report: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """The directory's own name, ``20261121-101530-a1b2``."""
        return os.path.basename(self.directory)

    @property
    def state(self) -> State:
        """What has become of it; ``elsewhere``: it runs, or did, where this process cannot look."""
        if self.report is not None:
            reason = self.report.get("reason", "ended")
            state: State = "stopped" if reason == "signal" else reason
            return state
        if self.launcher is None:
            return "lost"
        if not is_of_this_machine(self.launcher):
            return "elsewhere"
        return "running" if is_alive(self.launcher) else "lost"

    @property
    def exit_code(self) -> int | None:
        """The job's exit code, ``None`` where it has none yet or nobody wrote it down."""
        return None if self.report is None else self.report.get("exit_code")

    @property
    def ranks(self) -> int | None:
        """How many ranks it has."""
        return None if self.launcher is None else self.launcher.ranks

    @property
    def age(self) -> float:
        """Seconds since it began."""
        began = self.launcher.began if self.launcher else os.stat(self.directory).st_mtime
        return max(0.0, time.time() - began)


def register(run_dir: str, *, ranks: int, grace: float, kind: Kind = "launch") -> None:
    """Write down that this process is the launcher of a run; without room for that the run goes on.

    Args:
        run_dir: The run directory; it exists.
        ranks: How many ranks the job has, on all hosts.
        grace: Seconds from SIGTERM to SIGKILL.
        kind: Whether this process is the launcher's own or somebody's program.
    """
    own = proc.status(os.getpid())
    launcher = Launcher(
        pid=os.getpid(),
        start=own.start if own else 0,
        boot=_boot(),
        space=_space(),
        host=os.uname().nodename,
        began=time.time(),
        grace=grace,
        ranks=ranks,
        kind=kind,
    )
    value = {"schema_version": SCHEMA_VERSION, **launcher._asdict()}
    try:
        with open(os.path.join(run_dir, LAUNCHER_FILE), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
    except OSError as error:
        sys.stderr.write(f"hccl-tools: {run_dir}/{LAUNCHER_FILE} cannot be written: {error.strerror}\n")


def is_of_this_machine(launcher: Launcher) -> bool:
    """Whether the launcher's process number means here what it meant there; a reboot does not count."""
    if launcher.host != os.uname().nodename:
        return False
    return launcher.boot != _boot() or launcher.space == _space()


def is_alive(launcher: Launcher) -> bool:
    """Whether the launcher still runs: that very process, not a later one of its number."""
    if launcher.boot != _boot():
        return False
    found = proc.status(launcher.pid)
    return found is not None and found.start == launcher.start and found.state not in proc.ENDED_STATES


def all_runs(log_dir: str) -> list[Run]:
    """Return the runs of a log directory, the oldest first; other directories in it are left out."""
    try:
        names = os.listdir(log_dir)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{log_dir} cannot be read: {error.strerror}") from error
    directories = [os.path.join(log_dir, name) for name in names if name != LATEST]
    runs = [read(directory) for directory in directories if _is_run(directory)]
    return sorted(runs, key=lambda run: -run.age)


def find(name: str | None, log_dir: str) -> Run:
    """Return the run that was meant.

    Args:
        name: A run directory, the name of one in ``log_dir`` or an unmistakable part of it; ``None``: the latest.
        log_dir: Where runs are looked for.

    Raises:
        InputError: There is none, or there are several.
    """
    if name is None or name == LATEST:
        return _latest(log_dir)
    for directory in (name, os.path.join(log_dir, name)):
        if _is_run(directory):
            return read(os.path.realpath(directory))
    names = [run.name for run in all_runs(log_dir)]
    fitting = [each for each in names if name in each]
    if len(fitting) == 1:
        return read(os.path.realpath(os.path.join(log_dir, fitting[0])))
    if fitting:
        raise InputError(f'"{name}" fits {len(fitting)} runs: {", ".join(fitting[-4:])}', hint="say more of it")
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"`hccl-tools jobs --log-dir {log_dir}` lists them"
    raise InputError(f'there is no run "{name}" in {log_dir}', hint=hint)


def read(directory: str) -> Run:
    """Read what a run directory says."""
    fields = _json(os.path.join(directory, LAUNCHER_FILE))
    try:
        launcher = Launcher(*(fields[field] for field in Launcher._fields)) if fields else None
    except KeyError:
        launcher = None  # Written by another version, or cut off by a full disk.
    return Run(directory, launcher, _json(os.path.join(directory, REPORT_FILE)))


def plan(run: Run) -> Mapping[str, Any]:
    """Return the plan of a run, empty where it has none."""
    return _json(os.path.join(run.directory, PLAN_FILE)) or {}


def _latest(log_dir: str) -> Run:
    link = os.path.join(log_dir, LATEST)
    if _is_run(link):
        return read(os.path.realpath(link))
    runs = all_runs(log_dir)
    if not runs:
        raise InputError(
            f"there is no run in {log_dir}", hint="name its directory, or where it lies with --log-dir"
        )
    return runs[-1]


def _is_run(directory: str) -> bool:
    return any(os.path.isfile(os.path.join(directory, name)) for name in (LAUNCHER_FILE, PLAN_FILE, REPORT_FILE))


def _json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _boot() -> str:
    return proc.read("/proc/sys/kernel/random/boot_id").strip()


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
