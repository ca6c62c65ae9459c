"""The processes of a ``spawn`` call, with their results and output."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from hccl_tools.launch.logs.follower import Follower
from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.spawn.child import FAILURE, RESULT
from hccl_tools.records import NamedTuple
from hccl_tools.runs import private_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.model.plan import RankProcess, Tail


#: Waits until a rank has ended, at most this many seconds (``None``: without limit).
Wait: TypeAlias = "Callable[[SpawnedRank, float | None], None]"


class SpawnedRank:
    """One process of a ``spawn`` call.

    Attributes:
        end: The end of the process.
        rank: The rank, -1 for MindSpore's scheduler.
        device: The physical device.
        log: The absolute path of the log.
    """

    def __init__(self, process: RankProcess, run_dir: str, private_dir: str, wait: Wait) -> None:
        self._wait = wait
        self.rank, self.device, self.name = process.rank, process.device, process.name
        self.log = os.path.join(run_dir, process.log)
        self.end = RankEnd(process, self.log)
        self._result = os.path.join(private_dir, RESULT.format(rank=process.rank))
        self._failure = os.path.join(private_dir, FAILURE.format(rank=process.rank))

    @property
    def pid(self) -> int:
        """The process id."""
        return self.end.pid

    @property
    def exitcode(self) -> int | None:
        """The exit code, -n for signal n as in ``multiprocessing``; ``None`` while the process runs."""
        return None if self.end.status is None else os.waitstatus_to_exitcode(self.end.status)

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return bool(self.pid) and self.exitcode is None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has exited, at most ``timeout`` seconds; raise no error on a failure."""
        self._wait(self, timeout)

    def terminate(self) -> None:
        """Send SIGTERM to the process; a rank that it ends has failed."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        # The keeper, its parent, may have reaped it already.
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    @property
    def has_result(self) -> bool:
        """Whether the function of the rank has returned."""
        return os.path.exists(self._result)

    def result(self) -> Any:
        """Return the function's return value; ``None`` without one or after ``sys.exit(0)``."""
        return _unpickled(self._result) if self.has_result else None

    def failure(self) -> tuple[Exception | None, str]:
        """Return the function's exception, if it could be sent, and the traceback, "" if none."""
        if not os.path.exists(self._failure):
            return None, ""
        try:
            original, text = _unpickled(self._failure)
        except Exception as error:  # noqa: BLE001  (an exception's own __setstate__, or its module is not here)
            return None, f"(its exception cannot be read here: {error})"
        return original, text

    def queues(self) -> tuple[Queue, Queue]:
        """Return paddle's queues of the result and of the traceback."""
        result = Queue(self.result, lambda: not self.has_result)
        return result, Queue(lambda: self.failure()[1], lambda: not self.failure()[1])


class Queue(NamedTuple):
    """One of paddle's queues, for the result of a rank or for its traceback."""

    get: Callable[[], Any]
    empty: Callable[[], bool]


class Shown:
    """Copies the output of the ranks in ``tail`` to ``sys.stdout``, in whole lines."""

    def __init__(self, tail: Tail, *, several: bool) -> None:
        self._tail, self._several = tail, several
        self._followers: list[Follower] = []

    @property
    def active(self) -> bool:
        """Whether at least one log is followed."""
        return bool(self._followers)

    def add(self, rank: SpawnedRank) -> None:
        """Follow the log of a started rank if its output is shown."""
        if rank.rank >= 0 and (self._tail == "all" or rank.rank in self._tail):
            prefix = f"[{rank.name}] ".encode() if self._several else b""
            self._followers.append(Follower(rank.log, prefix))

    def show(self, *, last: bool = False) -> None:
        """Write new lines to ``sys.stdout``; ``last`` includes an incomplete line."""
        out = sys.stdout
        try:
            for follower in self._followers:
                while data := follower.read(last=last):
                    if out is not None:
                        out.write(data.decode(errors="replace"))
            if self._followers and out is not None:
                out.flush()
        except (OSError, ValueError):
            self.close()  # The reader has closed it.

    def close(self) -> None:
        """Stop following."""
        for follower in self._followers:
            follower.close()
        self._followers.clear()


def _unpickled(path: str) -> Any:
    with open(private_files.open_own(path), "rb") as file:
        return pickle.load(file)  # noqa: S301  (written by our own child)  # nosec B301
