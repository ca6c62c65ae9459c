"""What readers use of plan.json and report.json, which have more; another version may have written them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.records import Count, ExitCode, Index, OsText, Seconds


def is_path(text: str) -> bool:
    """Return whether a text can be the path of a file."""
    return bool(text) and "\0" not in text


class SavedProcess(NamedTuple):
    """A process of a plan.

    Attributes:
        rank: The rank; -1 for the scheduler.
        log: The path of the log, relative to the run directory.
        here: Whether the launcher that wrote the plan starts the process.
        device: The index of the device on its host; -1 for the scheduler.
    """

    rank: Index
    host: str
    log: OsText
    argv: tuple[OsText, ...]
    here: bool = True
    device: Index | None = None

    def check(self) -> str:
        """Return why the log is not a file, "" if it may be one."""
        return "" if is_path(self.log) else "log: this is not a path"


class SavedPlan(NamedTuple):
    """A plan.

    Attributes:
        command: The command line of the engine; empty if the launcher starts the processes itself.
        meeting: The address to which launchers that were typed on each host connect.
        slurm_job: The id of the Slurm job.
        start: The start method of the ranks.
        cpu: Whether the job was a rehearsal on the CPU.
        reached: By the address that a host has answered with: the other name by which it is reached.
    """

    processes: tuple[SavedProcess, ...]
    hosts: tuple[str, ...] = ()
    command: tuple[OsText, ...] = ()
    meeting: str | None = None
    slurm_job: str | None = None
    start: str = ""
    cpu: bool = False
    reached: Mapping[str, str] = MappingProxyType({})

    @property
    def ranks(self) -> list[SavedProcess]:
        """The ranks, without the scheduler."""
        return [process for process in self.processes if process.rank >= 0]


class PlanHead(NamedTuple):
    """What a plan has before its processes; ``world_size`` is the number of ranks."""

    world_size: Count
    hosts: tuple[str, ...] = ()


class PlanSummary(NamedTuple):
    """What a list of runs shows of a plan: numbers of ranks and hosts, the command of the first rank."""

    ranks: int
    hosts: int
    command: tuple[str, ...]


class SavedFailure(NamedTuple):
    """The rank that failed first, or an engine (rank -1), and how it ended.

    ``killed_by_oom`` tells whether the kernel's out-of-memory killer ended it, ``None`` if that is unknown.
    """

    rank: Index
    name: str = ""
    how: str = ""
    host: str = ""
    signal: str | None = None
    killed_by_oom: bool | None = None


class SavedHungRank(NamedTuple):
    """A rank of a job that hung.

    Attributes:
        is_first: Whether it stopped before the others.
        doing: What it did, as text.
        stack: Its stack, from its inside.
    """

    rank: Index
    host: str = ""
    is_first: bool = False
    doing: OsText = ""
    last_line: OsText = ""
    stack: tuple[OsText, ...] = ()


class SavedEnd(NamedTuple):
    """The end of a rank: how it ended, as text; ``plog`` is the folder of CANN's logs."""

    rank: Index
    how: OsText = ""
    asked_to_end: bool | None = None
    plog: OsText | None = None


class SavedReport(NamedTuple):
    """A report.

    Attributes:
        reason: Why the job ended, a key of ``hccl_tools.runs.ends.REASONS``.
        detail: The reason in a sentence.
        began_on: The host on which the end began, if it was another host.
        duration: Seconds from the start to the end.
        ranks: How each rank ended.
        restarts: How often the job was started again.
    """

    exit_code: ExitCode | None = None
    reason: str = ""
    detail: str | None = None
    began_on: str | None = None
    duration: Seconds | None = None
    first_failure: SavedFailure | None = None
    hung: tuple[SavedHungRank, ...] = ()
    ranks: tuple[SavedEnd, ...] = ()
    restarts: Count = 0
