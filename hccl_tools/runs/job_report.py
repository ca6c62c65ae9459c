"""The report of a job: report.json in its run directory has these fields, in this order.

``hccl_tools.runs.saved`` has what readers use of it: another version may have written the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import Count, ExitCode, Index, NamedTuple, OsText, Seconds, Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hccl_tools.runs.evidence import EvidenceNote

SCHEMA_VERSION = 1


class ProcessEnd(NamedTuple):
    """How a process ended.

    Attributes:
        rank: The rank; -1 for an engine or the scheduler.
        device: The index of its device, -1 for an engine.
        exit_code: The exit code in a shell.
        signal: The name of the signal that ended it.
        how: How it ended, as text.
        duration: Seconds for which it ran, ``None`` if its end is not known.
        cpu: Seconds of CPU time.
        peak_memory_kib: The largest resident memory.
        asked_to_end: Whether the launcher had told it to end, ``None`` if unknown.
        plog: The folder of its CANN logs, if it is known.
        log_host: The host of the logs, if not the host that reports the end.
    """

    rank: Index
    name: str
    host: str
    device: Index
    pid: Count | None
    exit_code: ExitCode | None
    signal: str | None
    how: OsText
    duration: Seconds | None
    cpu: Seconds
    peak_memory_kib: Size
    asked_to_end: bool | None
    log: OsText
    plog: OsText | None
    log_host: str | None


class RankFailure(NamedTuple):
    """How the rank that failed first ended, with extracts of its log; report.json has the same fields.

    ``exit_code`` is the exit code in a shell, ``signal`` a name. ``duration`` and ``cpu`` are in seconds.
    ``asked_to_end`` tells whether the rank was terminated. ``plog`` is the folder of its CANN logs.
    ``log_host`` is the host of the logs, if not the host that reports the failure. ``killed_by_oom`` tells
    whether the kernel's out-of-memory killer ended it; ``None`` if unknown.
    """

    rank: Index
    name: str
    host: str = ""
    device: Index = 0
    pid: Count | None = None
    exit_code: ExitCode | None = None
    signal: str | None = None
    how: OsText = ""
    duration: Seconds | None = None
    cpu: Seconds = 0.0
    peak_memory_kib: Size = 0
    asked_to_end: bool | None = None
    log: OsText = ""
    plog: OsText | None = None
    log_host: str | None = None
    killed_by_oom: bool | None = None
    hints: list[OsText] = []  # noqa: RUF012  (read only)
    hccl_codes: list[str] = []  # noqa: RUF012
    traceback: list[str] = []  # noqa: RUF012
    last_lines: list[str] = []  # noqa: RUF012


class HungRank(NamedTuple):
    """One rank of a job that hangs.

    Attributes:
        is_first: Whether the rank stopped first, as far as its host can tell.
        idle: Seconds since the rank's last output, CPU time or heartbeat.
        idle_heartbeat: Seconds since its last heartbeat, ``None`` if the rank has no heartbeats.
        doing: What it does: ``sleeping in recvfrom() on a socket``, ``stopped``.
        last_line: The last line of its log.
        stack: Its Python stack, the lines of faulthandler or py-spy; empty if unknown.
        is_culprit: Whether its state shows that it does not wait for another rank.
        by_progress: Whether ``idle`` is the time since a line of any rank has matched ``--progress``.
    """

    rank: Index
    name: str
    host: str
    pid: Count
    is_first: bool
    idle: Seconds
    idle_heartbeat: Seconds | None
    doing: OsText
    log: OsText
    last_line: OsText = ""
    stack: list[OsText] = []  # noqa: RUF012  (read only)
    is_culprit: bool = False
    by_progress: bool = False

    def after(self, seconds: float) -> HungRank:
        """Return the record of a time later, if the rank has done nothing since."""
        beat = self.idle_heartbeat
        return self._replace(
            idle=round(self.idle + seconds, 3),
            idle_heartbeat=None if beat is None else round(beat + seconds, 3),
        )


class StuckProcess(NamedTuple):
    """A process that is still running after SIGKILL; ``waits_in`` is the function of the kernel."""

    pid: Count
    rank: int | None
    command: OsText
    state: str
    waits_in: str


class AttemptReport(NamedTuple):
    """One start of the ranks: the fields of the report that are about it alone."""

    duration: Seconds
    reason: str
    detail: str
    began_on: str | None
    exit_code: ExitCode
    first_failure: RankFailure | None
    warnings: Sequence[str]


class JobReport(NamedTuple):
    """The report.

    Attributes:
        reason: A key of ``hccl_tools.runs.ends.REASONS``.
        detail: The reason in a sentence; "" if there is nothing to add.
        signal: The signal that the launcher received.
        began_on: The host on which the end began, if it was another host.
        ended: When the job ended, with the offset of the host's time zone.
        duration: Seconds of the whole job, with its restarts.
        replaced: The spares in the places of lost hosts.
        hung: The ranks of a job that hung, those that stopped first before the others.
        evidence: What was found of the ranks before their end, by host.
        consequences: The processes that ended after the first failure, in the order of time.
        warnings: The messages of the launcher during the job.
        attempts: Each start of the ranks, the last one included.
    """

    schema_version: int
    exit_code: ExitCode
    reason: str
    detail: str
    signal: str | None
    began_on: str | None
    ended: str
    duration: Seconds
    restarts: Count
    replaced: Sequence[Mapping[str, Any]]
    run_dir: str
    first_failure: RankFailure | None
    hung: Sequence[HungRank]
    evidence: Sequence[EvidenceNote]
    consequences: Sequence[ProcessEnd]
    stuck: Sequence[StuckProcess]
    ranks: Sequence[ProcessEnd]
    warnings: Sequence[str]
    attempts: Sequence[AttemptReport]
