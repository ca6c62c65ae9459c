"""The options for supervising this host's part of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hccl_tools.launch.model.request import Watch
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.logs.follower import Style
    from hccl_tools.launch.logs.terminal import Stream
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.model.plan import RankProcess, Tail
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.signals import Signals
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.job_report import RankFailure


class Peers(Protocol):
    """One start of the job on this host, coordinated with the other hosts."""

    def wait_for_peers(self, signals: Signals) -> Outcome:
        """Wait until no other host needs this launcher; all local processes have exited."""


class JoinPeers(Protocol):
    """Coordinates one start of the job with the other hosts."""

    def __call__(
        self,
        attempt: Attempt,
        *,
        run_dir: str,
        restart: int,
        restarts_after: frozenset[Reason],
        first_failure: Callable[[RankEnd], RankFailure],
        hang_timeout: float | None,
    ) -> Peers:
        """Return the coordination; ``restart`` counts the starts from 0.

        After an end for a reason in ``restarts_after``, all hosts restart their ranks.
        """


class NextStart(NamedTuple):
    """What a restart starts.

    Attributes:
        replaced: The spare hosts that have taken the places of lost hosts, for the report.
        news: Lines for the user: what differs from the last start.
    """

    processes: Sequence[RankProcess]
    replaced: tuple[Mapping[str, Any], ...] = ()
    news: tuple[str, ...] = ()


#: Prepares a restart of all ranks: accepts the outcome of the last start, the number of the restart, from 1,
#: and the signals to this launcher. It raises HcclToolsError if a restart is impossible.
BeforeRestart: TypeAlias = "Callable[[Outcome, int, Signals], NextStart]"


class RankCount(NamedTuple):
    """The ranks of a job that run, and all ranks."""

    running: int
    number: int


class EngineRanks(NamedTuple):
    """The ranks that an engine has started on this host: their number, and those of an attempt that run."""

    number: int
    running: Callable[[Attempt], list[RankEnd]]


class Supervision(NamedTuple):
    """The user's options, and the launcher's hooks, for supervising this host's part of a job."""

    watch: Watch = Watch()
    #: The ranks shown on the terminal.
    tail: Tail = (0,)
    #: Whether lines on the terminal begin with ``[rank N] ``; ``auto``: when several ranks are shown.
    log_style: Style = "auto"
    #: The rank that reads the launcher's standard input.
    stdin_rank: int | None = None
    #: Whether to colour the output; ``None``: in the foreground of a terminal.
    color: bool | None = None
    #: Whether to show a progress line; ``None``: in the foreground of a terminal.
    progress: bool | None = None
    #: Where output and messages go in place of standard output and error.
    stream: Stream | None = None
    #: The number of this restart, if another supervisor counts the restarts.
    restart: int = 0
    #: Seconds for the scheduler to exit after the ranks.
    scheduler_wait: float = 15.0
    #: The cores to which each rank is bound; a rank without an entry may use all cores.
    cpus: Mapping[int, Sequence[int]] | None = None
    #: Called before each restart.
    before_restart: BeforeRestart | None = None
    #: Prefixes of log lines that are not shown on the terminal.
    hidden: tuple[bytes, ...] = ()
    #: Called with the outcome of an attempt before its report; replaces the engine's process with the ranks.
    explain: Callable[[Outcome], None] | None = None
    #: Whether a failure is reported on the terminal.
    reports: bool = True
    #: Whether report.json is written. A supervisor on another host does not write it into a run directory
    #: that the launcher holds: its report would replace that of the whole job.
    writes_report: bool = True
    #: Called with every attempt as it begins: for an engine that does not end a job itself.
    on_attempt: Callable[[Attempt], None] | None = None
    #: Coordinates every start of the job with the launchers of other hosts, if each was started by hand.
    join_peers: JoinPeers | None = None
    #: Counts the ranks of the job, if an engine has started them.
    count_ranks: Callable[[], RankCount] | None = None
    #: The ranks, if an engine on this host has started them.
    engine_ranks: EngineRanks | None = None
    #: The spare hosts that have taken the places of others before the first start, for the report.
    replaced: tuple[Mapping[str, Any], ...] = ()


DEFAULTS = Supervision()
