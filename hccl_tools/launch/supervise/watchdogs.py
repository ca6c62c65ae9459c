"""Watchdogs: ranks that exited early, and disks that are full."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import time_span
from hccl_tools.runs.disk_space import FULL_BYTES, LOW_BYTES, free_bytes, is_full

if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.supervise.attempt import Attempt


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
