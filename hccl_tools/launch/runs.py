"""Runs on disk: which there are, which still run, how they ended."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.errors import UsageError
from hccl_tools.launch import proc
from hccl_tools.launch.run_directory import ELSEWHERE, ENDED, HOLDER, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RUN_VARIABLE = "HCCL_TOOLS_RUN_DIR"
_PAUSE = 0.05


class Run(NamedTuple):
    """One launch.

    Attributes:
        path: Its run directory, absolute.
        state: ``running``, ``ended`` (there is a report), ``killed`` (its launcher has left none) or
            ``elsewhere`` (its launcher is on another host, and nothing here says whether it runs).
        pid: The launcher's, 0 where nobody noted it.
        host: Where the launcher ran.
        started: Seconds since the epoch, 0.0 where nobody noted it.
        ranks: How many the plan has, on all its hosts.
        exit_code: Of an ended run.
        command: What its ranks run.
        reason: Why an ended run ended, as in its report.
        kind: ``launch``, or ``spawn``: then the launcher is somebody's program.
        hosts: How many hosts the plan has.
        left: Processes of it on this host, where its launcher was killed (as far as ``find`` has looked).
    """

    path: str
    state: str
    pid: int = 0
    host: str = ""
    started: float = 0.0
    ranks: int = 0
    exit_code: int | None = None
    command: tuple[str, ...] = ()
    reason: str = ""
    kind: str = "launch"
    hosts: int = 1
    left: int = 0

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return max(0.0, time.time() - self.started) if self.started else 0.0

    @property
    def name(self) -> str:
        """The last part of its path."""
        return os.path.basename(self.path)


def find(log_dir: str) -> list[Run]:
    """Return the runs below a log directory, oldest first, and those that run elsewhere on this host."""
    here = os.path.abspath(log_dir)
    names = sorted(os.listdir(here)) if os.path.isdir(here) else []
    paths = [os.path.join(here, name) for name in names if name != LATEST]
    paths = list(filter(_is_run, paths))
    members = Counter(path for _pid, path in _members())
    elsewhere = sorted(path for path in members.keys() - set(paths) if _is_run(path))
    # By time: names begin with it, but tell whole seconds only.
    found = [*sorted(map(read, paths), key=lambda run: (run.started, run.path)), *map(read, elsewhere)]
    return [run._replace(left=members[run.path]) if run.state == "killed" else run for run in found]


def resolve(name: str, log_dir: str) -> Run:
    """Return the run that a user means: a path, a name in the log directory, its beginning, or ``latest``.

    Raises:
        UsageError: There is no such run, or more than one.
    """
    if os.path.isdir(name) and os.path.exists(os.path.join(name, "plan.json")):
        return read(os.path.realpath(name))
    if name == LATEST and os.path.isdir(link := os.path.join(log_dir, LATEST)):
        return read(os.path.realpath(link))
    all_runs = [run for run in find(log_dir) if run.name.startswith(name)]
    here = os.path.abspath(log_dir)
    found = [run for run in all_runs if os.path.dirname(run.path) == here] or all_runs
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
    pid, host, started, kind = _holder(path)
    ranks = [process for process in plan.get("processes", []) if process["rank"] >= 0]
    if not report:
        report = _noted_end(path)
    state = "running" if is_held(path) else "ended" if report else "killed"
    if state == "killed" and host not in {"", os.uname().nodename}:
        state = "elsewhere"
    return Run(
        path,
        state,
        pid,
        host,
        started,
        len(ranks),
        report.get("exit_code"),
        tuple(ranks[0]["argv"]) if ranks else (),
        report.get("reason", ""),
        kind,
        max(1, len(plan.get("hosts", ()))),
    )


def plan_of(run: Run) -> dict[str, Any]:
    """Return a run's plan as ``plan.json`` has it, empty where it cannot be read."""
    return _json(os.path.join(run.path, "plan.json"))


def report_of(run: Run) -> dict[str, Any]:
    """Return a run's report as ``report.json`` has it, empty while there is none."""
    return _json(os.path.join(run.path, "report.json"))


def processes(run: Run) -> list[int]:
    """Return the processes of this host that belong to a run, whoever their parent is now."""
    return [pid for pid, path in _members() if path == run.path]


def is_over(run: Run) -> bool:
    """Tell whether a run that was there a moment ago has ended; one elsewhere has when it left its report."""
    if is_held(run.path):
        return False
    return run.state != "elsewhere" or bool(report_of(run))


def is_on_this_host(run: Run, process: Mapping[str, Any]) -> bool:
    """Tell whether a process of a run's plan was planned for this host."""
    plan = plan_of(run)
    if plan.get("engine") == "loop" and run.host in {"", os.uname().nodename}:
        return bool(process.get("here", True))
    host: str = process["host"]
    own = {os.uname().nodename, os.environ.get("SLURMD_NODENAME", ""), "localhost"}
    if len(plan.get("hosts", ())) == 1 and run.host in own:
        return True
    return host in own or _is_own_address(host)


def _is_own_address(host: str) -> bool:
    import socket  # noqa: PLC0415  (only where a run has other hosts)

    from hccl_tools.launch import placement  # noqa: PLC0415

    try:
        return placement.is_local_address(socket.gethostbyname(host))
    except (OSError, UnicodeError):
        return False


def path_on(run: Run, host: str) -> str:
    """Return where a host of a run has its part of it: the same path, unless each was started by hand."""
    path: str = _json(os.path.join(run.path, ELSEWHERE)).get(host) or run.path
    return path


def is_held(path: str) -> bool:
    """Tell whether a launcher holds the lock of a run."""
    try:
        with open(os.path.join(path, HOLDER), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _holder(path: str) -> tuple[int, str, float, str]:
    lines = proc.read(os.path.join(path, HOLDER)).splitlines()
    pid, host, started, kind = (lines + ["0", "", "0", "launch"][len(lines) :])[:4]
    return int(pid), host, float(started), kind


def _noted_end(path: str) -> dict[str, Any]:
    """Return what a launcher has noted that could not write its report, empty if it has not."""
    for line in proc.read(os.path.join(path, HOLDER)).splitlines():
        code, _, reason = line.removeprefix(ENDED).partition(" ")
        if line.startswith(ENDED) and code.isdecimal():
            return {"exit_code": int(code), "reason": reason}
    return {}


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
        if name.isdigit() and (path := _run_of(name)):
            status = proc.status(int(name))
            if status is not None and status.state not in proc.ENDED_STATES:
                yield int(name), path


def _run_of(pid: str) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = b"\0" + file.read()
    except OSError:
        return None
    _, found, rest = data.partition(f"\0{_RUN_VARIABLE}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


def _is_run(path: str) -> bool:
    return os.path.exists(os.path.join(path, "plan.json"))
