"""Decide in one place whether a job on several hosts hangs.

A host whose ranks do nothing may wait for a rank of another host that computes, for example an evaluation.
Each host therefore reports when its ranks have done nothing for ``--hang-timeout``, and when they go on. Once
all hosts are quiet they describe their ranks, which are compared here. A host whose ranks have all ended is
not awaited. Its end may be what the others have waited for: they have ``--hang-timeout`` to go on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.launch.model import outcome
from hccl_tools.launch.model.outcome import MOST_HUNG_RANKS, Cause
from hccl_tools.processes.stack_dump import SPY_SECONDS
from hccl_tools.runs.ends import REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.runs.job_report import HungRank

#: Seconds for the hosts to describe their ranks: the timeout of py-spy, and the messages.
_ANSWER_SECONDS = SPY_SECONDS + 5.0


class HangDecision:
    """The hosts of one start of a job, by the indexes of their servers.

    Attributes:
        deadline: The end of the wait for answers, in seconds of the clock; infinite without a wait.
    """

    def __init__(
        self,
        running: Callable[[], Iterable[int]],
        ask: Callable[[], None],
        end: Callable[[list[HungRank], Cause], None],
        *,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``running`` returns the servers that have ranks, ``ask`` requests their answers.

        ``end`` is called with all ranks that were described, and with the cause of the end. ``limit`` is
        ``--hang-timeout`` in seconds.
        """
        self._running, self._ask, self._end, self._clock = running, ask, end, clock
        self._limit, self._host_ended_at = limit, float("-inf")
        self._quiet: dict[int, float] = {}
        self._answers: dict[int, tuple[HungRank, ...]] = {}
        self.deadline = float("inf")

    @property
    def seconds_left(self) -> float:
        """Seconds until the end of the wait for answers."""
        return max(0.0, self.deadline - self._clock())

    def report(self, server: int, idle: float) -> None:
        """Handle a host's report that its ranks have done nothing for ``idle`` seconds; 0: they go on."""
        if idle <= 0:
            self._quiet.pop(server, None)
            self._withdraw()
            return
        self._quiet[server] = idle
        if self.deadline < float("inf") or self._clock() < self._host_ended_at + self._limit:
            return
        if self._quiet.keys() >= set(self._running()):
            self.deadline = self._clock() + _ANSWER_SECONDS
            self._ask()

    def host_ended(self) -> None:
        """Handle the end of all ranks of a host."""
        self._host_ended_at = self._clock()
        self._withdraw()

    def _withdraw(self) -> None:
        self._answers.clear()
        self.deadline = float("inf")

    def answer(self, server: int, ranks: tuple[HungRank, ...]) -> None:
        """Handle a host's description of its ranks."""
        if self.deadline < float("inf"):
            self._answers[server] = ranks
            self.check()

    def check(self) -> None:
        """End the job if all hosts have answered, or have had their time."""
        if self.deadline == float("inf"):
            return
        if self._clock() < self.deadline and not self._answers.keys() >= set(self._running()):
            return
        self.deadline = float("inf")
        hung = outcome.hung_on_all_hosts((), [one for ranks in self._answers.values() for one in ranks])
        if hung:
            detail, code = outcome.hung_headline(hung), REASONS["hang"].exit_code
            self._end(hung, Cause(hung[0].host, "hang", code, detail, hung=tuple(hung[:MOST_HUNG_RANKS])))
