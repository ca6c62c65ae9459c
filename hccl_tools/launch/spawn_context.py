"""The running job of a ``spawn`` call: waiting for it, its results, and its bounded end."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import channel
from hccl_tools.launch.outcome import signal_name
from hccl_tools.launch.spawn_child import FAILURE, RESULT
from hccl_tools.launch.spawn_errors import RankFacts, RankFailedError, failure

if TYPE_CHECKING:
    from hccl_tools.launch.channel import Event
    from hccl_tools.launch.keeper import Keeper
    from hccl_tools.launch.plan import RankProcess

#: Seconds for what is left after SIGKILL before it is given up as stuck in the kernel.
_GIVE_UP = 5.0


class SpawnedRank:
    """One process of a ``spawn`` call: ``pid`` is 0 before it starts, ``exitcode`` ``None`` until it ends."""

    def __init__(self, process: RankProcess, run_dir: str) -> None:
        self.rank = process.rank
        self.device = process.device
        self.name = process.name
        self.log = os.path.join(run_dir, process.log)
        self.pid = 0
        self.exitcode: int | None = None

    def is_alive(self) -> bool:
        """Tell whether it has started and not ended."""
        return bool(self.pid) and self.exitcode is None


class _Returned:
    """paddle's ``return_queues[i]``: ``get()`` gives the rank's result."""

    def __init__(self, context: SpawnContext, rank: int) -> None:
        self._context, self._rank = context, rank

    def get(self) -> Any:
        """Return the result; the rank must have ended well."""
        return self._context.result(self._rank)

    def empty(self) -> bool:
        """Tell whether there is no result: the rank still runs, or called ``sys.exit``."""
        return not os.path.exists(self._context.result_path(self._rank))


class SpawnContext:
    """What ``spawn`` returns.

    Attributes:
        processes: The ranks, by rank.
        run_dir: The run directory with one log per rank.
        return_queues: Results in paddle's way; ``results`` is the short one.
    """

    def __init__(self, keeper: Keeper, processes: list[RankProcess], run_dir: str, grace: float) -> None:
        self._keeper = keeper
        self._all = [SpawnedRank(process, run_dir) for process in processes]
        self._grace = grace
        self._over = self._closed = False
        self._first: SpawnedRank | None = None
        self.run_dir = run_dir
        self.processes = [process for process in self._all if process.rank >= 0]
        self.return_queues = [_Returned(self, process.rank) for process in self.processes]

    def pids(self) -> list[int]:
        """Return the process ids by rank."""
        return [process.pid for process in self.processes]

    @property
    def results(self) -> list[Any]:
        """What the function returned, by rank; ``None`` for a rank that called ``sys.exit(0)``."""
        return [self.result(process.rank) for process in self.processes]

    def result(self, rank: int) -> Any:
        """Return what the function returned in one rank; ``None`` where it left by ``sys.exit(0)``."""
        path = self.result_path(rank)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return pickle.load(file)  # noqa: S301  (written by our own child)

    def result_path(self, rank: int) -> str:
        """Return where the result of a rank lies once it is there."""
        return os.path.join(self.run_dir, RESULT.format(rank=rank))

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all ranks.

        Args:
            timeout: Seconds; ``None`` waits for ever.

        Returns:
            True when all have ended well, False if some still run after ``timeout``.

        Raises:
            RankFailedError: A rank failed. The others have been ended: SIGTERM, the grace time, SIGKILL.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._over and self._first is None and self._wait(deadline):
                pass
        except BaseException:
            # Ctrl-C in the caller: its ranks go with it.
            self.terminate()
            raise
        if self._first is not None:
            self.terminate()
            raise self._failure(self._first)
        return self._over

    def terminate(self) -> None:
        """End all ranks and everything they have started; at most the grace time and 5 s."""
        if not self._over:
            self._keeper.signal(signal.SIGTERM)
            deadline = time.monotonic() + self._grace
            while not self._over and self._wait(deadline):
                pass
        deadline = time.monotonic() + _GIVE_UP
        while not self._over and time.monotonic() < deadline:
            self._keeper.signal(signal.SIGKILL)
            self._wait(min(deadline, time.monotonic() + 0.1))
        self._close()

    def _wait(self, deadline: float | None) -> bool:
        """Hear the next events; false when the time is over."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left < 0:
            return False
        poller = select.poll()
        poller.register(self._keeper.fileno(), select.POLLIN)
        poller.poll(None if left is None else left * 1000 + 0.5)
        for event in self._keeper.events():
            self._hear(event)
        if self._keeper.gone:
            self._lose_keeper()
        return True

    def _hear(self, event: Event) -> None:
        if event.kind == channel.EMPTY:
            self._over = True
            self._close()
            return
        process = self._all[event.task]
        if event.kind == channel.STARTED:
            process.pid = event.pid
        elif event.kind == channel.CANNOT_RUN:
            process.exitcode = process.exitcode or 126
            self._first = self._first or process
        elif event.kind == channel.ENDED:
            process.exitcode = os.waitstatus_to_exitcode(event.value)
            if process.exitcode != 0 and process.rank >= 0:
                self._first = self._first or process
            if process.rank >= 0 and all(rank.exitcode == 0 for rank in self.processes):
                # Nobody needs a scheduler any more, and what the ranks have left behind is to go.
                self._keeper.signal(signal.SIGTERM)

    def _lose_keeper(self) -> None:
        """The keeper was killed: the kernel has killed the ranks with it."""
        for process in self.processes:
            if process.exitcode is None:
                process.exitcode = -signal.SIGKILL
                self._first = self._first or process
        self._over = True

    def _close(self) -> None:
        self._over = True
        if not self._closed:
            self._closed = True
            self._keeper.close()

    def _failure(self, process: SpawnedRank) -> RankFailedError:
        code = process.exitcode or 1
        name = signal_name(-code) if code < 0 else None
        facts = RankFacts(
            process.rank, process.device, process.pid, code if code >= 0 else 128 - code, name, process.log
        )
        path = os.path.join(self.run_dir, FAILURE.format(rank=process.rank))
        if not os.path.exists(path):
            return failure(facts, "", None)
        with open(path, "rb") as file:
            original, text = pickle.load(file)  # noqa: S301  (written by our own child)
        return failure(facts, text, original)
