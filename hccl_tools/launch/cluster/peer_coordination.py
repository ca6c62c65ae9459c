"""End a job on all hosts for the same reason, if its launchers were started by hand.

A host whose part ends early reports the cause to rank 0's host (the leader), which decides which cause was
first and announces it to all hosts. A launcher returns once its ranks have exited with 0. The leader, which
forwards messages, waits for the other hosts; if a restart is possible, every host waits.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.evidence_round import EvidenceRound
from hccl_tools.launch.cluster.hang_decision import HangDecision
from hccl_tools.launch.cluster.own_part import NO_SERVER
from hccl_tools.launch.cluster.peer_link import TIMING
from hccl_tools.launch.model.outcome import MOST_HUNG_RANKS, Cause
from hccl_tools.launch.model.rank_messages import Ended
from hccl_tools.launch.protocol.messages import (
    End,
    Ending,
    EvidenceTaken,
    Heard,
    Hung,
    Kill,
    Look,
    Quiet,
    Release,
)
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes import signals as received
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.processes.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.signals import Signals
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.job_report import HungRank, RankFailure


class PeerCoordination:
    """Coordinates one start of the job with the other hosts; ``restart`` counts the starts from 0."""

    def __init__(
        self,
        link: PeerLink,
        attempt: Attempt,
        *,
        run_dir: str,
        restart: int,
        restarts_after: frozenset[Reason],
        first_failure: Callable[[RankEnd], RankFailure],
        hang_timeout: float | None,
    ) -> None:
        self._attempt, self._link = attempt, link
        self._restart, self._restarts_after = restart, restarts_after
        self._first_failure = first_failure
        #: The cause of the job's end, once decided.
        self._cause: Cause | None = None
        #: Servers whose ranks have all exited with 0, servers that have acknowledged the last message, and
        #: servers that have disconnected; and the connected servers that have not done so: each message of a
        #: thousand hosts is followed by the question whether any is left.
        self._ended_well: set[int] = set()
        self._acknowledged: set[int] = set()
        self._disconnected: set[int] = set()
        self._running, self._silent = set(link.connections), set(link.connections)
        self._announced, self._all_ended, self._reported_waiting = False, False, False
        self._deadline = float("inf")
        if restart == 0:
            link.keep_run_dirs(run_dir)
        attempt.on_ending.append(self._announce_end)
        attempt.on_kill.append(lambda: link.broadcast(Kill(restart)))
        attempt.on_end.append(self._rank_ended)
        if link.is_leader:
            attempt.state.scheduler_wait = float("inf")  # Remote ranks may need the scheduler for long.
        limit = float("inf") if hang_timeout is None else hang_timeout
        self._hangs = HangDecision(self._running_servers, self._ask_hung, self._end_hung, limit=limit)
        attempt.report_quiet = self._report_quiet
        self._evidence = EvidenceRound(self._running_servers, self._announce_evidence)
        self._end_ranks: Callable[[], None] = lambda: None
        attempt.share_evidence = self._share_evidence
        attempt.on_readable(link.fileno(), self._read)
        attempt.call_later("peers", 0.0, self._read)  # Messages that arrived while this start was prepared.

    def wait_for_peers(self, signals: Signals) -> Outcome:
        """Wait until no peer needs this launcher, then return the outcome; local processes have exited."""
        if self._attempt.state.reason == "ended":
            self._link.broadcast(Ended(restart=self._restart))
        self._announce_end()
        began = time.monotonic()
        self._deadline = began + TIMING.acknowledge
        while not self._is_released():
            wait_readable(TIMING.poll, signals, self._link)
            for number in signals.read():
                self._handle_signal(number)
            self._read()
            self._hangs.check()
            if time.monotonic() > began + TIMING.notice:
                self._report_waiting()
        if self._link.is_leader and self._cause is None:
            self._link.broadcast(Release(self._restart))
        self._warn_unacknowledged()
        return self._attempt.outcome()

    def _running_servers(self) -> set[int]:
        own = () if self._attempt.state.ranks_ended_well else (self._link.own,)
        return self._running.union(own)

    def _report_quiet(self, idle: float) -> None:
        if self._link.is_leader:
            self._hangs.report(self._link.own, idle)
        else:
            self._link.broadcast(Quiet(round(idle, 3), self._restart))

    def _share_evidence(self, proceed: Callable[[], None]) -> None:
        self._end_ranks = proceed
        if self._link.is_leader:
            self._evidence.add(self._link.own)
        elif self._disconnected:
            proceed()
        else:
            self._link.broadcast(EvidenceTaken(self._restart))

    def _announce_evidence(self) -> None:
        self._link.broadcast(EvidenceTaken(self._restart))
        self._end_ranks()

    def _ask_hung(self) -> None:
        if self._cause is not None:
            return
        self._link.broadcast(Look(self._restart))
        self._attempt.call_later("hung hosts", self._hangs.seconds_left, self._hangs.check)
        self._describe()

    def _describe(self) -> None:
        """Describe the ranks of this host to the leader."""
        if self._attempt.describe_ranks is not None:
            self._attempt.describe_ranks(self._answer)

    def _answer(self, found: Sequence[HungRank]) -> None:
        if self._link.is_leader:
            self._hangs.answer(self._link.own, tuple(found))
        else:
            self._link.broadcast(Hung(tuple(found[:MOST_HUNG_RANKS]), self._restart))

    def _end_hung(self, hung: list[HungRank], cause: Cause) -> None:
        if self._cause is None:
            self._attempt.state.hung = hung
            # Without a server: all hosts, also this one, adopt the cause.
            self._decide(cause, NO_SERVER)

    def _is_released(self) -> bool:
        late, reason = time.monotonic() > self._deadline, self._attempt.state.reason
        if self._link.is_leader:
            if self._cause is None:
                return not self._running
            return late or not self._silent
        if self._disconnected or self._cause is not None:
            return True
        if reason == "ended" and self._restarts_after:
            return self._all_ended
        return late or (reason == "ended" and bool(self._acknowledged))

    def _names(self, servers: Iterable[int]) -> str:
        return and_more([self._link.hosts[server] for server in sorted(servers)])

    def _read(self) -> None:
        for server, message in self._link.receive(self._restart):
            self._handle(server, message)
        for server in self._link.lost():
            self._disconnected.add(server)
            self._running.discard(server)
            self._silent.discard(server)
            self._peer_lost(server)
            self._evidence_lost()
        if self._link.flush():
            self._attempt.call_later("peers", TIMING.flush, self._read)

    def _handle(self, server: int, message: Message) -> None:
        link, heard = self._link, Heard(self._restart)
        if isinstance(message, Heard):
            self._acknowledged.add(server)
            self._silent.discard(server)
        elif isinstance(message, Release):
            self._all_ended = True
        elif isinstance(message, Ended):
            self._ended_well.add(server)
            self._running.discard(server)
            self._hangs.host_ended()
            self._evidence.check()
            link.broadcast(heard, server)
            self._release_scheduler()
        elif isinstance(message, Ending):
            self._decide(message.cause, server)
        elif isinstance(message, End):
            link.broadcast(heard, server)
            self._cause = message.cause
            if message.number != link.own:
                self._adopt_cause(self._cause)
        elif isinstance(message, Quiet):
            self._hangs.report(server, message.idle)
        elif isinstance(message, Look):
            self._describe()
        elif isinstance(message, Hung):
            self._hangs.answer(server, message.ranks)
        elif isinstance(message, EvidenceTaken):
            if link.is_leader:
                self._evidence.add(server)
            else:
                self._end_ranks()
        elif isinstance(message, Kill) and self._attempt.state.reason != "ended":
            if link.is_leader and (to := [other for other in link.others if other != server]):
                link.broadcast(Kill(self._restart), *to)
            self._attempt.kill()

    def _rank_ended(self, _end: RankEnd) -> None:
        """Keep the scheduler after the last local rank has exited with 0: remote ranks may still need it."""
        if self._attempt.state.ranks_ended_well:
            self._hangs.host_ended()
            self._attempt.call_later("others", TIMING.notice, self._report_waiting)
            self._release_scheduler()

    def _release_scheduler(self) -> None:
        if self._link.is_leader and len(self._ended_well) == len(self._link.connections):
            self._attempt.state.scheduler_wait = TIMING.scheduler
            if self._attempt.state.ranks_ended_well:
                self._attempt.call_later("scheduler", TIMING.scheduler, lambda: self._attempt.end("ended"))

    def _announce_end(self) -> None:
        outcome, link = self._attempt.outcome(), self._link
        if self._announced or outcome.reason == "ended" or outcome.remote_cause is not None:
            return
        self._announced = True
        first = None if outcome.first_failure is None else self._first_failure(outcome.first_failure)
        cause = outcome.cause(link.hosts[link.own], first)
        if link.is_leader:
            self._decide(cause, link.own)
        else:
            link.broadcast(Ending(cause, self._restart))

    def _decide(self, cause: Cause, server: int) -> None:
        """Adopt the first reported cause as the cause of the job, and announce it (leader only)."""
        if self._cause is not None:
            return
        self._cause, self._deadline = cause, time.monotonic() + TIMING.acknowledge
        self._link.broadcast(End(cause, server, self._restart))
        if server != self._link.own:
            self._adopt_cause(cause)

    def _adopt_cause(self, cause: Cause) -> None:
        attempt = self._attempt
        if attempt.state.ranks_ended_well and cause.reason not in self._restarts_after:
            attempt.say(f"{cause.message}, after all ranks of this host had exited with 0")
            attempt.end("ended")
            return
        if attempt.state.reason == "ended":
            seconds = attempt.state.longest_end
            attempt.say(f"{cause.message}: ending the ranks here (at most {seconds:g} s)")
        attempt.adopt_cause(cause)

    def _peer_lost(self, server: int) -> None:
        link = self._link
        if self._cause is not None or server in self._ended_well:
            return
        cause = Cause.lost(link.hosts[server], "host", link.describe_loss(server))
        if link.is_leader:
            self._decide(cause, server)
        elif self._announced:
            self._attempt.say(cause.message)  # This may be why a local rank failed; its exit code stays.
        elif not self._attempt.state.ranks_ended_well:
            self._cause = cause
            self._adopt_cause(cause)

    def _evidence_lost(self) -> None:
        """Do not wait for the evidence of a host that is lost."""
        if self._link.is_leader:
            self._evidence.check()
        else:
            self._end_ranks()

    def _warn_unacknowledged(self) -> None:
        silent: set[int] = set()
        if self._link.is_leader:
            if self._cause is not None:
                silent = self._silent
        elif self._announced and self._cause is None:
            silent = set(self._link.connections) - self._disconnected
        if silent:
            hosts = self._names(silent)
            self._attempt.say(
                f"no answer from {hosts}: unreachable, down or stopped; ranks may still be running there"
            )

    def _report_waiting(self) -> None:
        left = self._running
        if self._cause is None and left and self._link.is_leader and not self._reported_waiting:
            self._reported_waiting = True
            self._attempt.say(
                f"all ranks of this host have exited with 0; ranks of {self._names(left)} are still running"
            )

    def _handle_signal(self, number: int) -> None:
        attempt, state = self._attempt, self._attempt.state
        if number == signal.SIGTSTP:
            received.stop_self()
        elif number in received.ENDING:
            is_needed = self._link.is_leader or self._restarts_after
            if state.reason == "ended" and self._cause is None and is_needed:
                attempt.say(f"{signal_name(number)}: ending the job on the other hosts")
                state.reason, state.signal = "signal", number
                self._announce_end()
            by_signal = min(self._deadline, time.monotonic() + TIMING.acknowledge)
            self._deadline = by_signal if state.reason == "signal" else 0.0
