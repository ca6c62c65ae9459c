"""Start this host's part of a plan and answer for it: the first failure decides, nothing is left behind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hccl_tools.launch import keeper as keepers
from hccl_tools.launch.attempt import Attempt
from hccl_tools.launch.channel import Task
from hccl_tools.launch.console import Console
from hccl_tools.launch.logs import Followers, Style
from hccl_tools.launch.outcome import Outcome, RankEnd
from hccl_tools.launch.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hccl_tools.launch.keeper import Keeper
    from hccl_tools.launch.plan import RankProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervision:
    """How a job is watched and ended; times in seconds, ``None`` means never.

    Attributes:
        grace: From the first signal to SIGKILL, for all ranks together, on every path.
        tail: The ranks shown on the terminal.
        log_style: ``[rank N] `` before each line, or not; ``auto``: when several ranks are shown.
        early_exit_warn: Say so when a rank has ended with 0 and others still run after this time.
        hang_warn: Say so when no rank has written or used the CPU for this time.
        timeout: End the job after this time.
        stdin_rank: The rank that reads the launcher's stdin.
        on_log_error: What a full disk means for the job.
        notify: A shell command that gets the report of a job that did not end well on its stdin.
        color: Colours on the terminal; ``None``: where that makes sense.
        progress: A progress line on the terminal; ``None``: where that makes sense.
        max_restarts: How often all ranks are started again after a failure.
        scheduler_wait: How long the scheduler may take to end after the ranks have.
        cpus: The cores each rank is bound to; a rank that is not named may use all.
        before_restart: Called with the number of the restart (1, 2, ...); returns the processes to start
            then, for instance with their table made anew.
    """

    grace: float = 15.0
    tail: tuple[int, ...] | Literal["all"] = (0,)
    log_style: Style = "auto"
    early_exit_warn: float | None = 60.0
    hang_warn: float | None = 600.0
    timeout: float | None = None
    stdin_rank: int | None = None
    on_log_error: Literal["warn", "stop"] = "warn"
    notify: str | None = None
    color: bool | None = None
    progress: bool | None = None
    max_restarts: int = 0
    scheduler_wait: float = 15.0
    cpus: Mapping[int, Sequence[int]] | None = None
    before_restart: Callable[[int], Sequence[RankProcess]] | None = None


def supervise(
    processes: Sequence[RankProcess],
    *,
    run_dir: Path,
    environment: Mapping[str, str],
    working_dir: str | Path,
    options: Supervision = Supervision(),
    keeper: Keeper | None = None,
) -> Outcome:
    """Run the processes of this host to the end of the job.

    Args:
        processes: What to start, in this order.
        run_dir: Where the logs go and ``report.json`` is written; it exists.
        environment: The environment of all; what a process has of its own comes on top.
        working_dir: The ranks' working directory.
        options: How to watch and end the job.
        keeper: The keeper that was started early; without one it is started now.

    Returns:
        How the job ended. The report has been printed, written and passed on by then.
    """
    keeper = keeper or keepers.current() or keepers.start()
    console = Console(color=options.color, progress=options.progress)
    restarts = 0
    with Signals() as signals:
        while True:
            ends = [RankEnd(process, str(run_dir / log_name(process, restarts))) for process in processes]
            outcome = _attempt(ends, keeper, signals, console, options, environment, str(working_dir))
            if outcome.reason != "failed" or outcome.stuck or restarts >= options.max_restarts:
                break
            restarts += 1
            console.say(f"restart {restarts} of {options.max_restarts}: starting all ranks again")
            if options.before_restart:
                processes = options.before_restart(restarts)
        outcome.restarts = restarts
        keeper.close()
    console.close()
    return outcome


def log_name(process: RankProcess, restart: int) -> str:
    """The log of a process: as planned, and after restart 2 ``rank_0.restart_2.log``."""
    if restart == 0:
        return process.log
    stem, suffix = os.path.splitext(process.log)
    return f"{stem}.restart_{restart}{suffix}"


def _attempt(
    ends: list[RankEnd],
    keeper: Keeper,
    signals: Signals,
    console: Console,
    options: Supervision,
    environment: Mapping[str, str],
    working_dir: str,
) -> Outcome:
    tail = options.tail
    shown = [end for end in ends if end.process.rank >= 0 and (tail == "all" or end.process.rank in tail)]
    followers = Followers(console.out, style=options.log_style, several=len(shown) > 1, color=console.color)
    attempt = Attempt(
        ends,
        keeper=keeper,
        signals=signals,
        console=console,
        followers=followers,
        followed=lambda end: end in shown,
        grace=options.grace,
        scheduler_wait=options.scheduler_wait,
    )
    stdin = [index for index, end in enumerate(ends) if end.process.rank == options.stdin_rank]
    keeper.start_tasks(_tasks(ends, environment, options), environment, working_dir, *stdin)
    outcome = attempt.run()
    followers.close()
    return outcome


def _tasks(ends: list[RankEnd], environment: Mapping[str, str], options: Supervision) -> list[Task]:
    found: dict[tuple[str, str], str] = {}
    tasks = []
    for end in ends:
        process = end.process
        path = process.environment.get("PATH") or environment.get("PATH") or os.defpath
        key = (process.argv[0], path)
        if key not in found:
            found[key] = find_program(*key)
        cpus = tuple((options.cpus or {}).get(process.rank, ()))
        tasks.append(Task(found[key], process.argv, process.environment, end.log, cpus))
    return tasks


def find_program(name: str, path: str) -> str:
    """Where a program is, as a shell finds it; "" if nowhere.

    A file that is there without permission to run it is returned when nothing better is: running it then
    says so (exit code 126).
    """
    if "/" in name:
        return name
    forbidden = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            forbidden = forbidden or candidate
    return forbidden
