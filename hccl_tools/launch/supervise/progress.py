"""A progress line at the bottom of the terminal: running ranks, elapsed time, time without output."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.supervise.attempt import Attempt

#: Seconds between two updates of the line.
_INTERVAL = 1.0
#: Seconds without output after which the line shows the time without output.
_QUIET = 10.0


class RankCount(NamedTuple):
    """The ranks of a job that run, and all ranks."""

    running: int
    number: int


class Progress:
    """Redraws the progress line once a second, below all other output."""

    def __init__(self, attempt: Attempt, count_ranks: Callable[[], RankCount] | None = None) -> None:
        """``count_ranks`` counts the ranks of a job whose process here is an engine."""
        self._attempt, self._count_ranks = attempt, count_ranks or self._count_here
        attempt.call_later("progress", _INTERVAL, self._draw)

    def _draw(self) -> None:
        ranks = [end for end in self._attempt.state.ends if end.process.rank >= 0]
        running, number = self._count_ranks()
        minutes, seconds = divmod(int(self._attempt.age), 60)
        text = f"{running} of {number} ranks running, {minutes // 60}:{minutes % 60:02}:{seconds:02}"
        quiet = time.time() - max((_written(end.log) for end in ranks), default=0.0)
        if _QUIET < quiet < self._attempt.age:
            text += f", no output for {quiet:.0f} s"
        width = _terminal_width(self._attempt.console.err.fileno())
        self._attempt.console.err.show_status(text[: width - 1])
        self._attempt.call_later("progress", _INTERVAL, self._draw)

    def _count_here(self) -> RankCount:
        ranks = [end for end in self._attempt.state.ends if end.process.rank >= 0]
        return RankCount(sum(end.status is None for end in ranks), len(ranks))


def _written(path: str) -> float:
    about = run_files.status(path)
    return about.st_mtime if about else 0.0


def _terminal_width(descriptor: int) -> int:
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return 80
