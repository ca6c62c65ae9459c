"""How the part of a job on this host is watched and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.logs.follower import Style
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.processes.signals import Signals
    from hccl_tools.launch.supervise.attempt import Attempt


class Peers(Protocol):
    """One start of the job on this host, connected with those on its other hosts."""

    def wait_for_peers(self, signals: Signals) -> Outcome:
        """Wait until no other host needs this launcher, and return the outcome.

        All local processes have ended by then.
        """


class JoinPeers(Protocol):
    """Connects one start of the job with those on its other hosts."""

    def __call__(
        self,
        attempt: Attempt,
        *,
        run_dir: str,
        restart: int,
        may_restart: bool,
        first_failure: Callable[[RankEnd], dict[str, Any]],
    ) -> Peers:
        """Return the connection; ``restart`` counts the starts from 0."""


class Supervision(NamedTuple):
    """How a job is watched and ended; times in seconds, ``None`` means never.

    Attributes:
        grace: From the first signal to SIGKILL, for all ranks together, on every path.
        tail: The ranks shown on the terminal.
        log_style: ``[rank N] `` before each line, or not; ``auto``: when several ranks are shown.
        early_exit_warn: Say so when a rank has ended with 0 and others still run after this time.
        hang_warn: Say so when no rank has written or used the CPU for this time.
        timeout: End the job after this time, restarts included.
        stdin_rank: The rank that reads the launcher's stdin.
        on_log_error: What a full disk means for the job.
        notify: A shell command that gets the report of a job that did not end well on its stdin.
        color: Colours on the terminal; ``None``: where that makes sense.
        progress: A progress line on the terminal; ``None``: where that makes sense.
        max_restarts: How often all ranks are started again after a failure.
        restart: Which restart of the job this is, where another supervisor counts them.
        scheduler_wait: How long the scheduler may take to end after the ranks have.
        cpus: The cores each rank is bound to; a rank that is not named may use all.
        before_restart: Called with the number of the restart (1, 2, ...) and the signals that have been
            received; returns the processes to start then; raises HcclToolsError where there can be none.
        hidden: Lines of a log that begin so are not shown on the terminal.
        explain: Called with how an attempt ended before anybody is told: an engine puts the ranks that it
            started itself in the place of its own process.
        reports: Whether a bad end is told here; report.json is written all the same.
        watch: Called with every attempt as it begins: for an engine that does not end a job itself.
        join_peers: Connects every start of the job with the launchers of its other hosts, where each was
            started by hand.
    """

    grace: float = 15.0
    tail: tuple[int, ...] | Literal["all"] = (0,)
    log_style: Style = "auto"
    early_exit_warn: float | None = 60.0
    hang_warn: float | None = 600.0
    timeout: float | None = None
    stdin_rank: int | None = None
    on_log_error: Literal["warn", "stop"] = "warn"
    notify: str | None = None
    color: bool | None = None
    progress: bool | None = None
    max_restarts: int = 0
    restart: int = 0
    scheduler_wait: float = 15.0
    cpus: Mapping[int, Sequence[int]] | None = None
    before_restart: Callable[[int, Signals], Sequence[RankProcess]] | None = None
    hidden: tuple[bytes, ...] = ()
    explain: Callable[[Outcome], None] | None = None
    reports: bool = True
    watch: Callable[[Attempt], None] | None = None
    join_peers: JoinPeers | None = None


DEFAULTS = Supervision()
