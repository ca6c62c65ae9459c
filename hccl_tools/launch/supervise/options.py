"""How the part of a job on this host is watched and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from hccl_tools.launch.model.request import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.logs.follower import Style
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.model.rank_failure import RankFailure
    from hccl_tools.launch.model.request import Tail
    from hccl_tools.launch.processes.signals import Signals
    from hccl_tools.launch.supervise.attempt import Attempt


class Peers(Protocol):
    """One start of the job on this host, connected with those on its other hosts."""

    def wait_for_peers(self, signals: Signals) -> Outcome:
        """Wait, once all local processes have ended, until no other host needs this launcher."""


class JoinPeers(Protocol):
    """Connects one start of the job with those on its other hosts."""

    def __call__(
        self,
        attempt: Attempt,
        *,
        run_dir: str,
        restart: int,
        may_restart: bool,
        first_failure: Callable[[RankEnd], RankFailure],
    ) -> Peers:
        """Return the connection; ``restart`` counts the starts from 0."""


#: Prepares a restart of all ranks: takes its number, from 1, and the signals that this launcher has received,
#: and returns the processes to start. It raises HcclToolsError where there can be no restart.
BeforeRestart: TypeAlias = "Callable[[int, Signals], Sequence[RankProcess]]"


class Supervision(NamedTuple):
    """How the part of a job on this host is supervised: the user's options and what the launcher connects."""

    watch: Watch = Watch()
    #: The ranks shown on the terminal.
    tail: Tail = (0,)
    #: Whether lines on the terminal begin with ``[rank N] ``; ``auto``: when several ranks are shown.
    log_style: Style = "auto"
    #: The rank that reads the launcher's standard input.
    stdin_rank: int | None = None
    #: Colours on the terminal; ``None``: where that makes sense.
    color: bool | None = None
    #: A progress line on the terminal; ``None``: where that makes sense.
    progress: bool | None = None
    #: Which restart of the job this is, where another supervisor counts them.
    restart: int = 0
    #: Seconds that the scheduler may take to end after the ranks have.
    scheduler_wait: float = 15.0
    #: The cores each rank is bound to; a rank without an entry may use all.
    cpus: Mapping[int, Sequence[int]] | None = None
    #: Called before each restart.
    before_restart: BeforeRestart | None = None
    #: Lines of a log that begin so are not shown on the terminal.
    hidden: tuple[bytes, ...] = ()
    #: Called with the outcome of an attempt before it is reported: an engine replaces its own process by the
    #: ranks that it started.
    explain: Callable[[Outcome], None] | None = None
    #: Whether a failure is reported on the terminal; report.json is written in any case.
    reports: bool = True
    #: Called with every attempt as it begins: for an engine that does not end a job itself.
    on_attempt: Callable[[Attempt], None] | None = None
    #: Connects every start of the job with the launchers of its other hosts, where each was started by hand.
    join_peers: JoinPeers | None = None


DEFAULTS = Supervision()
