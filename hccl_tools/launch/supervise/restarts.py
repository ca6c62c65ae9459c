"""Decide after each start of a job whether all ranks are started again, and wait before that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.launch.model.outcome import RESTART_CAUSES
from hccl_tools.notation.phrases import time_span
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.processes.signals import ENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.model.outcome import Outcome, RestartCause
    from hccl_tools.launch.model.request import Watch
    from hccl_tools.processes.signals import Signals
    from hccl_tools.runs.ends import Reason

_HOUR_SECONDS = 3600.0


def cause_of(outcome: Outcome) -> RestartCause | None:
    """Return the cause of an early end as ``--restart-on`` names it; ``None`` if no restart can follow."""
    if outcome.stuck:
        return None
    return "host-lost" if outcome.is_host_lost else RESTART_CAUSES.get(outcome.reason)


def reasons(watch: Watch) -> frozenset[Reason]:
    """Return the reasons for an end on any host after which all hosts restart their ranks."""
    return frozenset(reason for reason, cause in RESTART_CAUSES.items() if cause in watch.restart_on)


class Restarts:
    """The restarts of one job.

    Attributes:
        made: The number of restarts so far; it numbers the logs.
        counted: The restarts that count for ``--max-restarts``. A start that began no rank on a spare host,
            which the next spare then replaces, does not count.
    """

    def __init__(self, watch: Watch, clock: Callable[[], float] = time.monotonic) -> None:
        self._watch, self._clock = watch, clock
        self._times: list[float] = []
        self.made, self.counted = 0, 0

    @property
    def may_follow(self) -> bool:
        """Whether ``--max-restarts`` allows another restart."""
        return self.counted < self._watch.max_restarts

    def follows(self, outcome: Outcome) -> bool:
        """Return whether a restart follows, unless its preparation fails."""
        if cause_of(outcome) not in self._watch.restart_on:
            return False
        return self.may_follow or self._is_free(outcome)

    def refusal(self) -> str:
        """Return why no restart may begin at this time, "" if one may."""
        most, now = self._watch.restarts_per_hour, self._clock()
        recent = [one for one in self._times if now - one < _HOUR_SECONDS]
        if most is None or len(recent) < most:
            return ""
        since = time_span(now - recent[0], 2)
        return f"--max-restarts-per-hour {most}: {len(recent)} in the last {since}"

    def count(self, outcome: Outcome) -> None:
        """Count the restart that follows an outcome."""
        if not self._is_free(outcome):
            self.counted += 1
        self.made += 1
        self._times.append(self._clock())

    def wait(self, signals: Signals) -> int:
        """Wait for ``--restart-delay``; return the signal that ended the wait, 0 without one."""
        deadline = time.monotonic() + self._watch.restart_delay
        while (left := deadline - time.monotonic()) > 0:
            wait_readable(left, signals)
            if number := next((one for one in signals.read() if one in ENDING), 0):
                return number
        return 0

    def _is_free(self, outcome: Outcome) -> bool:
        return self.made > 0 and outcome.lost_before_start
