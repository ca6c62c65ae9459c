"""The end of a job: the exit of every rank, the first failure or what hangs, and the resulting exit code."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import time_span
from hccl_tools.processes.signals import signal_name
from hccl_tools.records import ExitCode, NamedTuple, OsText, Signal
from hccl_tools.runs.ends import NOT_STARTED, REASONS, Reason
from hccl_tools.runs.job_report import HungRank, RankFailure  # noqa: TC001  (the codec reads the annotations)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.processes.procfs import Status
    from hccl_tools.runs.evidence import EvidenceNote

#: A cause of ``--restart-on``.
RestartCause = Literal["host-lost", "rank-failed", "hang"]
#: The ends after which ``--max-restarts`` starts the job again on the same hosts, with their causes.
RESTART_CAUSES: Mapping[Reason, RestartCause] = MappingProxyType({"failed": "rank-failed", "hang": "hang"})
RESTARTABLE = frozenset(RESTART_CAUSES)
#: Ranks of several hosts stopped at the same time if their silence differs by less than this factor: a host
#: looks at its ranks eight times in the time after which a job counts as hanging.
_SAME_TIME = 0.75
#: How the calls end in which a rank waits for another one.
_ON_SOCKET = " on a socket"
#: The maximum number of ranks that a host reports to others.
MOST_HUNG_RANKS = 16


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class RankEnd:
    """The known facts about one process of the job.

    Times are ``time.monotonic()`` seconds on this host, 0.0 until the event has happened.
    """

    process: RankProcess
    log: str
    pid: int = 0
    started: float = 0.0
    ended: float = 0.0
    #: The raw wait status.
    status: int | None = None
    #: The errno with which the start of the program failed.
    error: int = 0
    #: CPU time in seconds.
    cpu: float = 0.0
    #: Peak memory in KiB.
    peak: int = 0
    #: Whether the process exited after the launcher had terminated it; ``None`` if unknown.
    was_terminated: bool | None = None
    #: Whether another launcher has reported this process; the log is on that launcher's host.
    is_elsewhere: bool = False
    #: Of a rank that no agent has reported: ``NOT_STARTED`` or ``NOT_REPORTED``.
    unreported: str = ""

    @property
    def code(self) -> int | None:
        """The exit code as in a shell, 128+n for signal n; ``None`` while the process runs."""
        if self.status is None:
            return None
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    @property
    def signal(self) -> int:
        """The signal that killed the process, 0 without a signal."""
        return os.WTERMSIG(self.status) if self.status is not None and os.WIFSIGNALED(self.status) else 0

    @property
    def duration(self) -> float:
        """Seconds from the start of the process to its exit."""
        return max(0.0, self.ended - self.started)

    @property
    def description(self) -> str:
        """``exit code 7``, ``killed by SIGSEGV``, ``still running``, ``not started`` or ``not reported``."""
        if self.signal:
            return f"killed by {signal_name(self.signal)}"
        if self.code is None:
            return self.unreported or ("still running" if self.pid else NOT_STARTED)
        return f"exit code {self.code}"


def _order(end: RankEnd) -> tuple[float, int]:
    terminated = end.was_terminated or end.status is None or end.signal == signal.SIGTERM
    return (float("inf") if terminated else end.ended, end.process.rank)


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Outcome:
    """The end of the job on this host."""

    #: Why the job ended: every rank exited, a rank failed, the time limit was exceeded, the ranks made no
    #: progress, the launcher was signalled, the logs could not be written, the keeper was killed, another
    #: host or a process of the engine was lost, nothing could be started.
    reason: Reason
    ends: list[RankEnd]
    #: In seconds.
    duration: float
    first_failure: RankEnd | None = None
    signal: int = 0
    #: Processes that are still running after SIGKILL.
    stuck: list[Status] = field(default_factory=list)
    restarts: int = 0
    detail: str = ""
    #: The messages printed during the job.
    notes: list[str] = field(default_factory=list)
    #: The cause, if the job ended first on another host; ``first_failure`` and ``signal`` are then not set.
    remote_cause: Cause | None = None
    #: The ranks of this host when the job hung (for the launcher of an engine's job: the ranks of all hosts),
    #: those that stopped first before the others.
    hung: list[HungRank] = field(default_factory=list)
    #: The evidence that was taken before the end, by host.
    evidence: list[EvidenceNote] = field(default_factory=list)
    #: Whether a job with spares has lost a host, even if it is not known which.
    is_host_lost: bool = False
    #: The indices of the servers whose hosts were lost, or refused their part: spares must replace them.
    lost_servers: tuple[int, ...] = ()
    #: Sentences on those of them that answer, but cannot run hccl-tools.
    unusable: list[str] = field(default_factory=list)
    #: Whether these hosts did not begin their part: they could not be reached, or refused it.
    lost_before_start: bool = False

    def combine_hung(self) -> None:
        """Combine what this host and the host that has ended the job know of a job that hung."""
        cause = self.remote_cause
        if cause is None or cause.reason != "hang" or not self.hung:
            return
        hung = hung_on_all_hosts(cause.hung, self.hung)
        self.remote_cause = cause._replace(hung=tuple(hung), detail=hung_headline(hung))

    @property
    def exit_code(self) -> int:
        """The exit code of the launcher."""
        if self.remote_cause is not None:
            return self.remote_cause.exit_code
        first = self.first_failure
        return exit_code_of(self.reason, None if first is None else first.code or 1, self.signal)

    @property
    def consequences(self) -> list[RankEnd]:
        """The other failed ranks in order of time, followed by the terminated ranks in order of rank."""
        reported = self.remote_cause.first_failure if self.remote_cause else None
        others = [
            end
            for end in self.ends
            if end.status != 0
            and end.unreported != NOT_STARTED
            and end is not self.first_failure
            and not (reported and end.process.rank == reported.rank)
        ]
        return sorted(others, key=_order)

    def cause(self, host: str, first: RankFailure | None = None) -> Cause:
        """Return why the job ended here, for the other hosts; ``first`` is the first failure."""
        hung = tuple(self.hung[:MOST_HUNG_RANKS])
        return Cause(host, self.reason, self.exit_code, self.detail, self.signal, first, hung)


class Cause(NamedTuple):
    """The reason for the end of a job, as one of its hosts reports it to the others."""

    host: str
    reason: Reason
    #: The exit code of the job on all hosts.
    exit_code: ExitCode
    detail: OsText = ""
    signal: Signal = 0
    first_failure: RankFailure | None = None
    #: The ranks of ``host`` when the job hung, at most ``MOST_RANKS``; with ``combine_hung`` of all hosts.
    hung: tuple[HungRank, ...] = ()

    def check(self) -> str:
        """Return what is wrong with the fields together, "" if nothing is."""
        if self.reason == "failed" and self.first_failure is None:
            return "first_failure is missing"
        return f"hung has more than {MOST_HUNG_RANKS} ranks" if len(self.hung) > MOST_HUNG_RANKS else ""

    @classmethod
    def lost(cls, host: str, reason: Reason, detail: str) -> Cause:
        """Return the cause for a lost process or host, or for a refused start."""
        return cls(host, reason, REASONS[reason].exit_code, detail)

    @property
    def message(self) -> str:
        """The cause as a sentence."""
        if self.first_failure:
            return f"{self.first_failure.name} on {self.host} failed first: {self.first_failure.how}"
        text = REASONS[self.reason]
        detail = self.detail or text.detail or self.reason
        return text.message.format(host=self.host, detail=detail, signal=signal_name(self.signal))


def exit_code_of(reason: Reason, failed: int | None, number: int) -> int:
    """Return the exit code of a job.

    Args:
        failed: The exit code of the rank that failed first, ``None`` if none has.
        number: The signal that a launcher received.
    """
    if reason == "failed" and failed is not None:
        return failed
    return REASONS[reason].exit_code + number * (reason == "signal")


def hung_on_all_hosts(reported: Sequence[HungRank], others: Sequence[HungRank]) -> list[HungRank]:
    """Return the ranks of all hosts, those that stopped first before the others.

    ``reported`` are the ranks of the host that has ended the job, ``others`` those of all hosts.
    """
    known = {one.rank for one in reported}
    hung = [*reported, *(one for one in others if one.rank not in known)]
    first = [one for one in hung if one.is_first]
    if culprits := [one for one in first if one.is_culprit]:
        first = culprits
    elif (odd := odd_ones_first(hung)) != hung:
        return odd
    else:
        longest = max((_silent_seconds(one) for one in first), default=0.0)
        first = [one for one in first if _silent_seconds(one) >= longest * _SAME_TIME]
    numbers = {one.rank for one in first}
    hung = [one._replace(is_first=one.rank in numbers) for one in hung]
    return sorted(hung, key=lambda one: not one.is_first)


def odd_ones_first(hung: Sequence[HungRank]) -> list[HungRank]:
    """Return the ranks of a job with the few first that differ from all others, which wait for them.

    They differ by their Python stack, if the ranks have two; or all others wait on a socket. Nothing changes
    if neither tells, or if a rank's state shows the cause.
    """
    if any(one.is_first and one.is_culprit for one in hung):
        return list(hung)
    by_stack, by_call = dict[object, list[int]](), dict[object, list[int]]()
    for one in hung:
        by_stack.setdefault(tuple(one.stack), []).append(one.rank)
        by_call.setdefault(one.doing.endswith(_ON_SOCKET), []).append(one.rank)
    few = [] if () in by_stack else _few(by_stack)
    if not few and len(by_call.get(False, hung)) < len(by_call.get(True, ())):
        few = by_call[False]
    if not few:
        return list(hung)
    return sorted((one._replace(is_first=one.rank in few) for one in hung), key=lambda one: not one.is_first)


def _few(groups: Mapping[object, list[int]]) -> list[int]:
    """Return the smaller of two groups, [] if there are more or both are equal."""
    few, many = sorted(groups.values(), key=len)[:2] if len(groups) == 2 else ([], [])
    return few if len(few) < len(many) else []


def _silent_seconds(one: HungRank) -> float:
    return max(one.idle, one.idle_heartbeat or 0.0)


def hung_headline(hung: Sequence[HungRank]) -> str:
    """Return the ranks that stopped first, and what they do, as a sentence."""
    first = [one for one in hung if one.is_first]
    if not first:
        return "no rank has written or computed anything"
    doing = {one.doing for one in first}
    text = f"{rank_list(one.rank for one in first)} stopped first"
    if len(first) == len(hung) > 1:
        text = f"{rank_list(one.rank for one in first)} stopped at the same time"
    return f"{text}: {doing.pop()}" if len(doing) == 1 else text


def hung_silence(one: HungRank) -> str:
    """Return for how long a rank has done nothing: ``no heartbeat for 1m 2s``."""
    if one.idle_heartbeat is not None and one.idle_heartbeat > one.idle:
        return f"no heartbeat for {time_span(one.idle_heartbeat, 2)}"
    what = "no line that matches --progress" if one.by_progress else "no output and no CPU time"
    return f"{what} for {time_span(one.idle, 2)}"
