"""Watchdogs: ranks that exited early, jobs that make no progress, disks that are full."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Literal

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.processes.signals import spawn
from hccl_tools.launch.runs.disk_space import FULL_BYTES, LOW_BYTES, free_bytes, is_full
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import time_span
from hccl_tools.programs.lookup import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.processes.signals import Helper
    from hccl_tools.launch.supervise.attempt import Attempt

#: A smaller part of one core, for all ranks together, counts as no CPU time: heartbeats use a little.
_IDLE = 0.01
#: The minimum number of samples before a job counts as hanging.
_MIN_SAMPLES = 8
#: The maximum number of seconds between two samples.
_MAX_INTERVAL = 30.0
#: The maximum number of ranks listed in a warning.
_MAX_SHOWN = 16
#: Timeout of py-spy in seconds.
_STACKS_TIMEOUT = 10.0
#: The states of a process in /proc.
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting uninterruptibly in the kernel",
    "T": "stopped",
    "t": "held by a debugger",
}


def rank_list(ranks: Iterable[int]) -> str:
    """Return ranks as text: ``rank 3`` or ``ranks 0-2, 5``.

    >>> rank_list([5, 0, 1, 2])
    'ranks 0-2, 5'
    """
    words = number_list.fold(sorted(ranks), ", ")
    return f"rank {words}" if words.isdigit() else f"ranks {words}"


class EarlyExit:
    """Warns once if ranks have exited with 0 and others still run after ``after`` seconds."""

    def __init__(self, attempt: Attempt, after: float) -> None:
        self._attempt, self._after = attempt, after
        attempt.on_end.append(self._on_end)

    def _on_end(self, end: RankEnd) -> None:
        if end.status == 0 and end.process.rank >= 0 and len(self._good()) == 1:
            self._attempt.call_later("early exit", self._after, self._warn)

    def _good(self) -> list[RankEnd]:
        return [end for end in self._attempt.state.ends if end.status == 0 and end.process.rank >= 0]

    def _warn(self) -> None:
        running = [end.process.rank for end in self._attempt.state.running if end.process.rank >= 0]
        if not running:
            return
        good = self._good()
        first = min(end.ended for end in good)
        still, they = ("is still", "it") if len(running) == 1 else ("are still", "they")
        self._attempt.say(
            f"{rank_list(end.process.rank for end in good)} exited with code 0, but"
            f" {rank_list(running)} {still} running {_about(time.monotonic() - first)} later;"
            f" in a collective {they} would wait forever"
        )


def _about(duration: float) -> str:
    return f"{duration:.2g} s" if duration < 60 else time_span(duration, 2)


class Hang:
    """Warns if no rank has written or computed anything for ``after`` seconds; shows what each rank does."""

    def __init__(self, attempt: Attempt, after: float, run_dir: str) -> None:
        self._attempt, self._after, self._run_dir = attempt, after, run_dir
        self._interval = min(after / _MIN_SAMPLES, _MAX_INTERVAL)
        self._last = (0.0, 0)
        self._active_at = time.monotonic()
        self._warnings = 0
        self._warned = False
        attempt.call_later("hang", self._interval, self._check)

    def _sample(self) -> tuple[float, int]:
        """Return the CPU seconds of all processes so far, and the bytes in all logs."""
        ticks = sum(process.cpu for process in self._attempt.keeper.descendants())
        return ticks / procfs.CLOCK_TICKS, sum(_size(end.log) for end in self._attempt.state.ends)

    def _check(self) -> None:
        now = self._sample()
        used = abs(now[0] - self._last[0])
        if now[1] != self._last[1] or used > max(_IDLE * self._interval, 1 / procfs.CLOCK_TICKS):
            self._active_at = time.monotonic()
            self._warned = False
        self._last = now
        if not self._warned and time.monotonic() - self._active_at >= self._after:
            self._warned = True
            self._warn()
        self._attempt.call_later("hang", self._interval, self._check)

    def _warn(self) -> None:
        lines = [_describe(end) for end in self._attempt.state.running]
        self._warnings += 1
        path = f"{self._run_dir}/hang_{self._warnings}.txt"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            path = ""
        shown = [f"  {line}" for line in lines[:_MAX_SHOWN]]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more in {path}")
        pids = [end.pid for end in self._attempt.state.running if end.process.rank >= 0]
        shown.append(self._stacks(pids, path))
        self._attempt.say(
            f"no rank has written or computed anything for {time_span(self._after, 2)}:\n" + "\n".join(shown)
        )

    def _stacks(self, pids: list[int], path: str) -> str:
        program = find_program("py-spy", os.environ.get("PATH", os.defpath))
        if not program or not path:
            return "  (with py-spy on the PATH the Python stacks would be shown, too)"
        output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        spies = [
            spawn([program, "dump", "--nonblocking", "--pid", str(pid)], stdout=output, stderr=output)
            for pid in pids[:_MAX_SHOWN]
        ]
        os.close(output)
        self._attempt.helpers += spies
        self._attempt.call_later("stacks", _STACKS_TIMEOUT, lambda: _end_all(spies))
        return f"  Python stacks: {path}"


def _end_all(helpers: list[Helper]) -> None:
    for helper in helpers:
        helper.end()


def _describe(end: RankEnd) -> str:
    status = procfs.status(end.pid)
    if status is None:
        return f"{end.process.name} (pid {end.pid}): ended"
    channel = procfs.waits_in(end.pid)
    state = _STATES.get(status.state, f"state {status.state}")
    return f"{end.process.name} (pid {end.pid}): {state}{f' in {channel}' if channel else ''}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


#: Seconds from one check of the disk to the next, with enough free space.
_SPACE_INTERVAL = 5.0
#: Seconds from one check of the disk to the next, with little free space.
_LOW_SPACE_INTERVAL = 0.5


class LogSpace:
    """Warns if the disk of the run directory is nearly full; may end the job if it is full."""

    def __init__(self, attempt: Attempt, run_dir: str, on_error: Literal["warn", "stop"]) -> None:
        self._attempt, self._run_dir, self._on_error = attempt, run_dir, on_error
        self._full = f"the disk of {run_dir} is full: what the ranks write to their logs is lost"
        self._warned_low = self._warned_full = False
        attempt.on_ending.append(self._check_failure)
        self._check()

    def _check_failure(self) -> None:
        """Attribute the failure of a rank to a full disk that the next check would have detected."""
        attempt = self._attempt
        if attempt.state.reason != "failed" or not is_full(self._run_dir):
            return
        self._judge(0)
        if self._on_error == "stop":
            attempt.state.blame_logs(self._full)

    def _check(self) -> None:
        free = free_bytes(self._run_dir)
        if free is not None:
            self._judge(free)
        interval = _LOW_SPACE_INTERVAL if self._warned_low else _SPACE_INTERVAL
        self._attempt.call_later("space", interval, self._check)

    def _judge(self, free: int) -> None:
        if free >= LOW_BYTES:
            self._warned_low = self._warned_full = False
        elif free < FULL_BYTES and not self._warned_full:
            self._warned_low = self._warned_full = True
            self._attempt.say(self._full)
            if self._on_error == "stop":
                self._attempt.end("log-error", self._full)
        elif not self._warned_low:
            self._warned_low = True
            self._attempt.say(f"only {free / (1 << 20):.1f} MiB are left for the logs in {self._run_dir}")
