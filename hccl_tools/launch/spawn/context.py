"""The running job of a ``spawn`` call: wait for the job, read its results, end it within a bounded time."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.report import hints, report
from hccl_tools.launch.spawn.errors import RankFacts, RankFailedError, failure
from hccl_tools.launch.spawn.ranks import Shown, SpawnedRank
from hccl_tools.launch.supervise.job_state import HandleEnd, JobState, Say, SetTimer, Signal, Step
from hccl_tools.notation.printable import tell
from hccl_tools.processes import keeper_protocol, run_files
from hccl_tools.processes.reactor import Reactor
from hccl_tools.runs import directory, private_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.plan import RankProcess, Tail
    from hccl_tools.launch.supervise.job_state import Decision
    from hccl_tools.processes.keeper import Keeper
    from hccl_tools.processes.keeper_protocol import Event
    from hccl_tools.runs.job_report import JobReport

_NEVER = float("inf")
#: Seconds from one read of the shown logs to the next.
_LOG_INTERVAL = 0.05
#: Seconds for all processes to be started.
_START_TIMEOUT = 30.0
#: The wait status of a rank that could not be started.
_CANNOT_RUN = 126 << 8


class SpawnContext:
    """The result of ``spawn``: the running job.

    Attributes:
        processes: The ranks, by rank: ``pid``, ``exitcode``, ``is_alive()``, ``join(timeout)``,
            ``terminate()``, ``log``, ``device``.
        run_dir: The run directory with one log per rank.
        return_queues: The results as paddle's queues; prefer ``results``.
        error_queues: The tracebacks, as paddle's queues of text.
    """

    def __init__(
        self,
        keeper: Keeper,
        processes: Sequence[RankProcess],
        run_dir: str,
        private_dir: tuple[str, int],
        *,
        grace: float,
        tail: Tail = (),
        locks: Sequence[int] = (),
    ) -> None:
        self._keeper, self._locks = keeper, locks
        private, wait = private_dir[0], self._wait_for_rank
        self._all = [SpawnedRank(process, run_dir, private, wait) for process in processes]
        # The private directory contains the results, so it exists as long as this context.
        weakref.finalize(self, _forget, *private_dir, os.getpid())
        ends = [process.end for process in self._all]
        self._state = JobState(ends, grace=grace, scheduler_wait=0.0, now=time.monotonic())
        self._reactor = Reactor()
        self._reactor.poller.register(keeper.fileno(), select.POLLIN)
        self._closed = False
        self._report: JobReport | None = None
        self._oom_kills = hints.kills()
        self._owner = os.getpid()
        self.run_dir = run_dir
        self.processes = [process for process in self._all if process.rank >= 0]
        self.return_queues = [process.queues()[0] for process in self.processes]
        self.error_queues = [process.queues()[1] for process in self.processes]
        shown = len(self.processes) if tail == "all" else len(tail)
        self._shown = Shown(tail, several=shown > 1)

    def pids(self) -> list[int]:
        """Return the process ids by rank."""
        return [process.pid for process in self.processes]

    @property
    def results(self) -> list[Any]:
        """The return values by rank; ``None`` for a rank that is running or called ``sys.exit(0)``."""
        return [process.result() for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all ranks.

        Returns:
            True if all ranks have exited with 0, False if a rank is still running after ``timeout`` seconds.

        Raises:
            RankFailedError: A rank failed. All other ranks have been terminated.
        """
        self._wait_for(timeout, None)
        if first := next((rank for rank in self._all if rank.end is self._state.first_failure), None):
            raise self._failure(first)
        return self._closed

    def _wait_for_rank(self, rank: SpawnedRank, timeout: float | None) -> None:
        """Wait for one rank; if another rank fails, end this rank, too; ``join`` reports the failure."""
        self._wait_for(timeout, rank)

    def _wait_for(self, timeout: float | None, rank: SpawnedRank | None) -> None:
        deadline = _NEVER if timeout is None else time.monotonic() + timeout
        try:
            while not self._is_ending_early and (rank is None or rank.exitcode is None):
                if self._closed or not self._poll(deadline):
                    return
            if self._is_ending_early:
                self._finish()
        except BaseException:
            # Ctrl-C in the caller also ends the ranks.
            self.terminate()
            raise

    @property
    def _is_ending_early(self) -> bool:
        return self._state.reason != "ended"

    def terminate(self) -> None:
        """End all ranks and their descendants; this takes at most the grace time plus 5 s."""
        if not self._state.is_ending:
            self._state.signal = signal.SIGTERM
            self._act(self._state.end("signal", now=time.monotonic()))
        self._finish()

    def wait_for_start(self) -> None:
        """Wait until every process has been started or has failed to start."""
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._state.is_ending and not all(rank.pid or rank.end.error for rank in self._all):
            if not self._poll(deadline):
                return

    def at_exit(self, *, daemon: bool) -> None:
        """When the caller exits, wait for the ranks; end them if ``daemon`` is set or the caller failed."""
        atexit.register(self._leave, daemon)

    def _leave(self, daemon: bool) -> None:
        if os.getpid() != self._owner:
            return  # This process is a fork of the caller; the ranks belong to the caller.
        if daemon or _caller_has_failed():
            self.terminate()
        else:
            self.join()

    def _finish(self) -> None:
        try:
            while not self._closed:
                self._poll(_NEVER)
        finally:
            # Also after a second Ctrl-C: when its pipe is closed, the keeper kills the remaining processes.
            self._close()

    def _poll(self, deadline: float) -> bool:
        """Wait for the next events and act on them; return False after the deadline."""
        now = time.monotonic()
        if now > deadline:
            return False
        self._reactor.poll(min(deadline, now + _LOG_INTERVAL) if self._shown.active else deadline)
        for event in self._keeper.events():
            self._receive(event)
        self._shown.show()
        if self._keeper.has_ended:
            self._act(self._state.lose_keeper(self._keeper.failure, time.monotonic()))
        self._reactor.run_due()
        if self._state.is_over:
            self._close()
        return True

    def _receive(self, event: Event) -> None:
        rank = self._all[event.task]
        self._act(self._state.apply(event, time.monotonic()))
        if event.kind == keeper_protocol.STARTED:
            self._shown.add(rank)
        elif event.kind == keeper_protocol.CANNOT_RUN and event.extra != keeper_protocol.PROGRAM:
            rank.end.status = _CANNOT_RUN
            self._state.blame_rank(rank.end)

    def _act(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Signal):
                self._keeper.signal(decision.number)
            elif isinstance(decision, SetTimer):
                self._reactor.at(decision.name, decision.seconds, partial(self._act_on_timer, decision.name))
            elif isinstance(decision, HandleEnd):
                self._act(self._state.process_ended(decision.end, time.monotonic()))
            elif isinstance(decision, Say):
                tell(f"hccl-tools: {decision.text}")
            elif decision is Step.GIVE_UP and self._keeper.has_ended:
                self._record_kills()

    def _act_on_timer(self, name: str) -> None:
        self._act(self._state.timer(name, time.monotonic()))

    def _record_kills(self) -> None:
        """Record the end of the ranks, which the kernel has killed with the keeper."""
        for rank in self.processes:
            if rank.exitcode is None:
                rank.end.status = int(signal.SIGKILL)
                self._state.blame_rank(rank.end)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._leave)
        with contextlib.suppress(OSError):
            self._keeper.close()
        self._shown.show(last=True)
        self._shown.close()
        run_files.release(self.run_dir)
        outcome = self._state.outcome(time.monotonic())
        self._report = made = report.make(
            outcome, run_dir=self.run_dir, killed_by_oom=hints.kills().since(self._oom_kills)
        )
        if report.write(made, self.run_dir):
            directory.note_end(self.run_dir, outcome.exit_code, outcome.reason)
        for descriptor in self._locks:
            if descriptor >= 0:
                os.close(descriptor)

    def _failure(self, rank: SpawnedRank) -> RankFailedError:
        first = self._report.first_failure if self._report else None
        facts = RankFacts(
            rank.rank,
            rank.device,
            rank.pid,
            rank.end.code or 1,
            first.signal if first else None,
            rank.log,
        )
        original, text = rank.failure()
        details = [text] if text else [f"| {line}" for line in (first.last_lines if first else ())]
        details += [f"hint: {hint}" for hint in (first.hints if first else ())]
        return failure(facts, text, original, details="\n".join(details))


def _forget(private_dir: str, descriptor: int, owner: int) -> None:
    if os.getpid() == owner:  # A fork of the caller may exit earlier.
        private_files.remove(private_dir)
        os.close(descriptor)


def _caller_has_failed() -> bool:
    """Return whether an exception ends this program; at a prompt, an exception does not end it."""
    return hasattr(sys, "last_value") and not hasattr(sys, "ps1")
