"""The running job of a ``spawn`` call: waiting for it, its results, and its bounded end."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.model.outcome import Outcome
from hccl_tools.launch.processes import keeper_protocol
from hccl_tools.launch.report import oom, report
from hccl_tools.launch.runs import directory, private_files
from hccl_tools.launch.spawn.errors import RankFacts, RankFailedError, failure
from hccl_tools.launch.spawn.ranks import Raised, Returned, Shown, SpawnedRank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.outcome import Reason
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.model.request import Tail
    from hccl_tools.launch.processes.keeper import Keeper
    from hccl_tools.launch.processes.keeper_protocol import Event

#: Seconds for what is left after SIGKILL before it is given up as stuck in the kernel.
_GIVE_UP = 5.0
#: Seconds between two looks at what the shown ranks write, and for the processes to come into being.
_LOOK, _START = 0.05, 30.0
_CANNOT_RUN = 126 << 8


class SpawnContext:
    """What ``spawn`` returns.

    Attributes:
        processes: The ranks, by rank: ``pid``, ``exitcode``, ``is_alive()``, ``join(timeout)``,
            ``terminate()``, ``log``, ``device``.
        run_dir: The run directory with one log per rank.
        return_queues: Results in paddle's way; ``results`` is the short one.
        error_queues: Likewise the tracebacks, as text.
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
        self._keeper, self._grace, self._locks = keeper, grace, locks
        private, wait = private_dir[0], self._wait_for_rank
        self._all = [SpawnedRank(process, run_dir, private, wait) for process in processes]
        # Results are read as long as there is a context to ask for them.
        weakref.finalize(self, _forget, *private_dir, os.getpid())
        self._over = self._closed = False
        self._asked: Reason = "ended"
        self._first: SpawnedRank | None = None
        self._report: dict[str, Any] = {}
        self._began, self._oom_kills = time.monotonic(), oom.kills()
        self._owner = os.getpid()
        self.run_dir = run_dir
        self.processes = [process for process in self._all if process.rank >= 0]
        self.return_queues = [Returned(process) for process in self.processes]
        self.error_queues = [Raised(process) for process in self.processes]
        shown = len(self.processes) if tail == "all" else len(tail)
        self._shown = Shown(tail, several=shown > 1)

    def pids(self) -> list[int]:
        """Return the process ids by rank."""
        return [process.pid for process in self.processes]

    @property
    def results(self) -> list[Any]:
        """What the function returned, by rank; ``None`` for a rank that runs or called ``sys.exit(0)``."""
        return [process.result() for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all ranks.

        Args:
            timeout: Seconds; ``None`` waits for ever.

        Returns:
            True when all have ended well, False if some still run after ``timeout``.

        Raises:
            RankFailedError: A rank failed. The others have been ended: SIGTERM, the grace time, SIGKILL.
        """
        self._wait_for(timeout, None)
        if self._first is not None:
            raise self._failure(self._first)
        return self._over

    def _wait_for_rank(self, rank: SpawnedRank, timeout: float | None) -> None:
        """Wait for one rank. Another that fails ends it with all others; ``join`` reports that."""
        self._wait_for(timeout, rank)

    def _wait_for(self, timeout: float | None, rank: SpawnedRank | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._over and self._first is None and (rank is None or rank.exitcode is None):
                if not self._wait(deadline):
                    return
        except BaseException:
            # Ctrl-C in the caller: its ranks go with it.
            self.terminate()
            raise
        if self._first is not None:
            self._end("failed")

    def terminate(self) -> None:
        """End all ranks and everything they have started; at most the grace time and 5 s."""
        self._end("signal")

    def wait_for_start(self) -> None:
        """Return when every process has been started, or cannot be."""
        deadline = time.monotonic() + _START
        while not self._over and not all(rank.pid or rank.end.error for rank in self._all):
            if not self._wait(deadline):
                return

    def at_exit(self, *, daemon: bool) -> None:
        """See to the ranks when the caller ends: wait for them, or (``daemon``, or if it failed) end them."""
        atexit.register(self._leave, daemon)

    def _leave(self, daemon: bool) -> None:
        if os.getpid() != self._owner:
            return  # A fork of the caller ends; the ranks are not its own.
        if daemon or _caller_has_failed():
            self.terminate()
        else:
            self.join()

    def _end(self, why: Reason) -> None:
        if self._closed:
            return
        self._asked = why
        try:
            if not self._over:
                self._keeper.signal(signal.SIGTERM)
                self._wait_until(time.monotonic() + self._grace)
            deadline = time.monotonic() + _GIVE_UP
            while not self._over and time.monotonic() < deadline:
                self._keeper.signal(signal.SIGKILL)
                self._wait(min(deadline, time.monotonic() + 0.1))
        finally:
            # Also at a second Ctrl-C: at the end of its pipe the keeper kills what is left.
            self._close()

    def _wait_until(self, deadline: float) -> None:
        while not self._over and self._wait(deadline):
            pass

    def _wait(self, deadline: float | None) -> bool:
        """Hear the next events; false when the time is over."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left < 0:
            return False
        if self._shown.active:
            left = _LOOK if left is None else min(left, _LOOK)
        poller = select.poll()
        poller.register(self._keeper.fileno(), select.POLLIN)
        poller.poll(None if left is None else left * 1000 + 0.5)
        for event in self._keeper.events():
            self._hear(event)
        self._shown.show()
        if self._keeper.gone and not self._over:
            self._lose_keeper()
        if self._over:
            self._close()
        return True

    def _hear(self, event: Event) -> None:
        if event.kind == keeper_protocol.EMPTY:
            self._over = True
        elif event.kind != keeper_protocol.BROKEN:
            self._hear_of(self._all[event.task], event)

    def _hear_of(self, rank: SpawnedRank, event: Event) -> None:
        end = rank.end
        if event.kind == keeper_protocol.STARTED:
            end.pid, end.started = event.pid, event.time / 1e9
            self._shown.add(rank)
        elif event.kind == keeper_protocol.CANNOT_RUN:
            end.error = event.value
            if event.extra != keeper_protocol.PROGRAM:  # Else its end is told next.
                end.status = _CANNOT_RUN
                self._first = self._first or rank
        elif event.kind == keeper_protocol.ENDED:
            end.status, end.ended = event.value, event.time / 1e9
            end.cpu, end.peak, end.was_terminated = event.cpu / 1e9, event.extra, self._asked != "ended"
            ranks_over = all(process.exitcode == 0 for process in self.processes)
            if end.status != 0 and not end.was_terminated and not (rank.rank < 0 and ranks_over):
                self._first = self._first or rank
            if ranks_over:
                # Nobody needs a scheduler any more, and what the ranks have left behind is to go.
                self._keeper.signal(signal.SIGTERM)

    def _lose_keeper(self) -> None:
        """The keeper was killed, or failed: the kernel has killed the ranks with it."""
        if self._keeper.failure:
            sys.stderr.write(f"hccl-tools: the keeper process failed:\n{self._keeper.failure}")
        for process in self.processes:
            if process.exitcode is None:
                process.end.status = int(signal.SIGKILL)
                self._first = self._first or process
        self._over = True

    def _close(self) -> None:
        """Let the keeper go, and everything that is left with it; write the report."""
        if self._closed:
            return
        self._over = self._closed = True
        atexit.unregister(self._leave)
        with contextlib.suppress(OSError):
            self._keeper.close()
        self._shown.show(last=True)
        self._shown.close()
        first = self._first.end if self._first else None
        reason: Reason = "failed" if first else self._asked
        outcome = Outcome(
            reason=reason,
            ends=[process.end for process in self._all],
            duration=time.monotonic() - self._began,
            first=first,
            signal=signal.SIGTERM if reason == "signal" else 0,
        )
        self._report = report.make(
            outcome, run_dir=self.run_dir, killed_by_oom=oom.kills().since(self._oom_kills)
        )
        if report.write(self._report, os.path.join(self.run_dir, "report.json")):
            directory.note_end(self.run_dir, outcome.exit_code, outcome.reason)
        for descriptor in self._locks:
            if descriptor >= 0:
                os.close(descriptor)

    def _failure(self, rank: SpawnedRank) -> RankFailedError:
        facts = RankFacts(
            rank.rank,
            rank.device,
            rank.pid,
            rank.end.code or 1,
            self._report["first_failure"]["signal"],
            rank.log,
        )
        original, text = rank.failure()
        found = self._report["first_failure"]
        details = [text] if text else [f"| {line}" for line in found["last_lines"]]
        details += [f"hint: {hint}" for hint in found["hints"]]
        return failure(facts, text, original, details="\n".join(details))


def _forget(private_dir: str, descriptor: int, owner: int) -> None:
    if os.getpid() == owner:  # A fork of the caller may end long before it.
        private_files.remove(private_dir)
        os.close(descriptor)


def _caller_has_failed() -> bool:
    """Tell whether this program ends by an exception; at a prompt it does not end by the last one."""
    return hasattr(sys, "last_value") and not hasattr(sys, "ps1")
