"""Telling of silence: a rank that has ended while others wait for it, and a job in which nothing happens."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Literal

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.processes.signals import spawn
from hccl_tools.launch.runs.disk_space import FULL_BYTES, LOW_BYTES, free_bytes, is_full
from hccl_tools.notation.phrases import time_span
from hccl_tools.programs.lookup import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.processes.signals import Helper
    from hccl_tools.launch.supervise.attempt import Attempt

#: Less than this part of one core, for all ranks together, counts as no CPU time: heartbeats do not compute.
_IDLE = 0.01
_FEWEST_SAMPLES = 8
_LONGEST_PAUSE = 30.0
_MOST_SHOWN = 16
#: Seconds that py-spy gets.
_STACKS_WAIT = 10.0
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting in the kernel, not to be interrupted",
    "T": "stopped",
    "t": "held by a debugger",
}


def rank_list(ranks: Iterable[int]) -> str:
    """``rank 3`` or ``ranks 0-2, 5``.

    >>> rank_list([5, 0, 1, 2])
    'ranks 0-2, 5'
    """
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return f"rank {words}" if words.isdigit() else f"ranks {words}"


class EarlyExit:
    """Say so, once, when ranks have ended with 0 and others go on for long."""

    def __init__(self, attempt: Attempt, after: float) -> None:
        self._attempt, self._after = attempt, after
        attempt.on_end.append(self._ended)

    def _ended(self, end: RankEnd) -> None:
        if end.status == 0 and end.process.rank >= 0 and len(self._good()) == 1:
            self._attempt.call_later("early exit", self._after, self._tell)

    def _good(self) -> list[RankEnd]:
        return [end for end in self._attempt.state.ends if end.status == 0 and end.process.rank >= 0]

    def _tell(self) -> None:
        running = [end.process.rank for end in self._attempt.state.running if end.process.rank >= 0]
        if not running:
            return
        good = self._good()
        first = min(end.ended for end in good)
        still, they = ("is still", "it") if len(running) == 1 else ("are still", "they")
        self._attempt.say(
            f"{rank_list(end.process.rank for end in good)} ended with exit code 0, but"
            f" {rank_list(running)} {still} running {_about(time.monotonic() - first)} later;"
            f" in a collective {they} would wait forever"
        )


def _about(duration: float) -> str:
    return f"{duration:.2g} s" if duration < 60 else time_span(duration, 2)


class Hang:
    """Say so when no rank has written anything or used the CPU for long, and what each one waits for."""

    def __init__(self, attempt: Attempt, after: float, run_dir: str) -> None:
        self._attempt, self._after, self._run_dir = attempt, after, run_dir
        self._pause = min(after / _FEWEST_SAMPLES, _LONGEST_PAUSE)
        self._last = (0.0, 0)
        self._news = time.monotonic()
        self._told = 0
        self._quiet = False
        attempt.call_later("hang", self._pause, self._look)

    def _sample(self) -> tuple[float, int]:
        """CPU seconds of all processes so far, bytes in all logs."""
        ticks = sum(process.cpu for process in self._attempt.keeper.descendants())
        return ticks / procfs.CLOCK_TICKS, sum(_size(end.log) for end in self._attempt.state.ends)

    def _look(self) -> None:
        now = self._sample()
        used = abs(now[0] - self._last[0])
        if now[1] != self._last[1] or used > max(_IDLE * self._pause, 1 / procfs.CLOCK_TICKS):
            self._news = time.monotonic()
            self._quiet = False
        self._last = now
        if not self._quiet and time.monotonic() - self._news >= self._after:
            self._quiet = True
            self._tell()
        self._attempt.call_later("hang", self._pause, self._look)

    def _tell(self) -> None:
        lines = [_what_it_does(end) for end in self._attempt.state.running]
        self._told += 1
        path = f"{self._run_dir}/hang_{self._told}.txt"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            path = ""
        shown = [f"  {line}" for line in lines[:_MOST_SHOWN]]
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
            for pid in pids[:_MOST_SHOWN]
        ]
        os.close(output)
        self._attempt.helpers += spies
        self._attempt.call_later("stacks", _STACKS_WAIT, lambda: _end_all(spies))
        return f"  Python stacks: {path}"


def _end_all(helpers: list[Helper]) -> None:
    for helper in helpers:
        helper.end()


def _what_it_does(end: RankEnd) -> str:
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


#: Seconds between two looks, with plenty of room and with little.
_SELDOM, _OFTEN = 5.0, 0.5


class LogSpace:
    """Watches the file system of the run directory while the job runs."""

    def __init__(self, attempt: Attempt, run_dir: str, on_error: Literal["warn", "stop"]) -> None:
        self._attempt, self._run_dir, self._on_error = attempt, run_dir, on_error
        self._full = f"the disk of {run_dir} is full: what the ranks write to their logs is lost"
        self._said_low = self._said_full = False
        attempt.on_ending.append(self._ending)
        self._look()

    def _ending(self) -> None:
        """A rank that fails on a full disk may do so before the next look; then the disk is the cause."""
        attempt = self._attempt
        if attempt.state.reason != "failed" or not is_full(self._run_dir):
            return
        self._judge(0)
        if self._on_error == "stop":
            attempt.state.blame_logs(self._full)

    def _look(self) -> None:
        free = free_bytes(self._run_dir)
        if free is not None:
            self._judge(free)
        self._attempt.call_later("space", _OFTEN if self._said_low else _SELDOM, self._look)

    def _judge(self, free: int) -> None:
        if free >= LOW_BYTES:
            self._said_low = self._said_full = False
        elif free < FULL_BYTES and not self._said_full:
            self._said_low = self._said_full = True
            self._attempt.say(self._full)
            if self._on_error == "stop":
                self._attempt.end("log-error", self._full)
        elif not self._said_low:
            self._said_low = True
            self._attempt.say(f"only {free / (1 << 20):.1f} MiB are left for the logs in {self._run_dir}")
