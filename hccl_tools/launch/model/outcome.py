"""How a job ended: the end of every rank, the first failure, and the exit code that follows from them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from hccl_tools.launch.processes.signal_names import signal_name

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.processes.procfs import Status

Reason = Literal["ended", "failed", "timeout", "signal", "log-error", "keeper", "host", "daemon", "refused"]

#: The exit code of a job that exceeded its ``--timeout``, as timeout(1) has it.
TIMED_OUT = 124
#: The exit code when the launcher itself cannot go on.
LAUNCHER_FAILED = 125


def seconds(duration: float) -> str:
    """``1.53 s``, ``12 min 5 s``, ``3 h 2 min``."""
    if duration < 60:
        return f"{duration:.2f} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


@dataclass(slots=True)
class RankEnd:
    """What is known of one process of the job.

    Times are ``time.monotonic()`` seconds on this host, 0.0 until the event has happened.
    """

    process: RankProcess
    log: str
    pid: int = 0
    started: float = 0.0
    ended: float = 0.0
    #: The raw wait status.
    status: int | None = None
    #: The errno that kept the program from starting.
    error: int = 0
    #: CPU time in seconds.
    cpu: float = 0.0
    #: Peak memory in KiB.
    peak: int = 0
    #: Whether it ended after the launcher had terminated it; ``None`` where that is unknown.
    was_terminated: bool | None = None
    #: Whether another launcher has reported it; its log is on that launcher's host.
    is_elsewhere: bool = False

    @property
    def code(self) -> int | None:
        """The exit code as a shell would give it, 128+n for signal n; ``None`` while it runs."""
        if self.status is None:
            return None
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 if none did."""
        return os.WTERMSIG(self.status) if self.status is not None and os.WIFSIGNALED(self.status) else 0

    @property
    def duration(self) -> float:
        """Seconds from its start to its end."""
        return max(0.0, self.ended - self.started)

    @property
    def description(self) -> str:
        """``exit code 7``, ``killed by SIGSEGV``, ``still running`` or ``not started``: how it ended."""
        if self.signal:
            return f"killed by {signal_name(self.signal)}"
        if self.code is None:
            return "still running" if self.pid else "not started"
        return f"exit code {self.code}"


def _order(end: RankEnd) -> tuple[float, int]:
    terminated = end.was_terminated or end.status is None or end.signal == signal.SIGTERM
    return (float("inf") if terminated else end.ended, end.process.rank)


@dataclass(slots=True)
class Outcome:
    """How the job on this host ended."""

    #: Why the end began: every rank ended by itself, one failed, the time was over, the launcher was
    #: signalled, the logs could not be written, the keeper was killed, another host or a process of the
    #: engine was lost, nothing could be started.
    reason: Reason
    ends: list[RankEnd]
    #: In seconds.
    duration: float
    #: The first failure in time.
    first: RankEnd | None = None
    #: The signal that the launcher received.
    signal: int = 0
    #: Processes that the kernel did not end.
    stuck: list[Status] = field(default_factory=list)
    restarts: int = 0
    detail: str = ""
    #: The messages printed during the job.
    notes: list[str] = field(default_factory=list)
    #: The cause where the end began on another host; ``first`` and ``signal`` are not set then.
    elsewhere: Cause | None = None

    @property
    def exit_code(self) -> int:
        """What the launcher exits with."""
        if self.elsewhere is not None:
            return self.elsewhere.exit_code
        if self.reason == "failed":
            return (self.first.code if self.first else None) or 1
        codes = {
            "ended": 0,
            "timeout": TIMED_OUT,
            "signal": 128 + self.signal,
            "keeper": 128 + signal.SIGKILL,
            "host": 128 + signal.SIGKILL,
            "daemon": 128 + signal.SIGKILL,
        }
        return codes.get(self.reason, LAUNCHER_FAILED)

    @property
    def consequences(self) -> list[RankEnd]:
        """The other failures: ranks that failed on their own by time, then terminated ones by rank.

        Ranks that were terminated are sorted by rank: their exit times carry no information.
        """
        reported = (self.elsewhere.first_failure if self.elsewhere else None) or {}
        first = self.first.process.rank if self.first else reported.get("rank")
        others = [end for end in self.ends if end.process.rank != first and end.status != 0]
        return sorted(others, key=_order)


class Cause(NamedTuple):
    """Why the end of a job has begun on one of its hosts, as that host reports it to the others."""

    host: str
    reason: Reason
    #: The job's, on all hosts.
    exit_code: int
    detail: str = ""
    signal: int = 0
    #: The report's part on the rank that failed.
    first_failure: dict[str, Any] | None = None

    @classmethod
    def parse(cls, reported: Any, host: str) -> Cause:
        """Return the cause that a host reported; one of its own for a message that cannot be understood."""
        try:
            cause = cls(**reported)
            first = cause.first_failure
            known = cause.reason in get_args(Reason) and 0 <= cause.exit_code < 256 and cause.signal >= 0
            if known and (cause.reason != "failed" or {"name", "how", "rank"} <= set(first or {})):
                return cause
        except TypeError:
            pass
        return cls(
            host, "refused", LAUNCHER_FAILED, "its launcher sent a message this version does not understand"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return self._asdict()

    @property
    def message(self) -> str:
        """What happened, in a sentence."""
        if self.first_failure:
            return f"{self.first_failure['name']} on {self.host} failed first: {self.first_failure['how']}"
        sentences = {
            "timeout": f"the job exceeded --timeout on {self.host}",
            "signal": f"the launcher on {self.host} received {signal_name(self.signal)}",
            "keeper": f"the keeper process on {self.host} was killed, and every rank there with it",
            "refused": f"{self.host} does not start its part: {self.detail}",
            "host": self.detail,
            "daemon": self.detail,
        }
        return sentences.get(self.reason, f"{self.host}: {self.detail or self.reason}")
