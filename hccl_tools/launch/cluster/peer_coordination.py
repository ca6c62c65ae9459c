"""A job whose command was typed on every host ends on all of them, and for the same reason.

A host whose part ends before its time says why; rank 0's host, which hears them all, decides which cause was
the first and tells all others. Each launcher returns when its ranks have ended well; rank 0's stays until the
others have done so too, as somebody must pass their words on, and so does each while a restart is possible.
"""

from __future__ import annotations

import select
import signal
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.cluster import membership
from hccl_tools.launch.model.outcome import Cause, Outcome
from hccl_tools.launch.processes import signals as received
from hccl_tools.launch.processes.signal_names import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.cluster.peer_link import Line
    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.processes.signals import Signals
    from hccl_tools.launch.supervise.attempt import Attempt

#: Seconds until it is said who is waited for, for a word to be heard, for the scheduler once nobody needs it.
_PATIENCE, _HEARD, _SCHEDULER = 3.0, 2.0, 0.2
#: Seconds between two tries to send what a wire has not taken at once, and between two looks at the time.
_PUMP, _LOOK = 0.1, 0.5


def join(
    line: Line,
    attempt: Attempt,
    *,
    run_dir: str,
    restart: int,
    may_restart: bool,
    first_failure: Callable[[RankEnd], dict[str, Any]],
) -> Together:
    """Connect one start of the job with those on its other hosts; ``restart`` counts the starts from 0."""
    if restart == 0:
        line.keep_run_dirs(run_dir)
    return Together(attempt, line, restart=restart, may_restart=may_restart, first_failure=first_failure)


class Together:
    """One start of the job on this host, held together with those on the other hosts."""

    def __init__(
        self,
        attempt: Attempt,
        line: Line,
        *,
        restart: int,
        may_restart: bool,
        first_failure: Callable[[RankEnd], dict[str, Any]],
    ) -> None:
        self._attempt, self._line = attempt, line
        self._restart, self._may_restart = restart, may_restart
        self._first_failure = first_failure
        #: Why the job ends, once that is decided.
        self._cause: Cause | None = None
        #: Hosts whose ranks have all ended well, that have heard our last word, that have hung up.
        self._ended_well: set[int] = set()
        self._heard: set[int] = set()
        self._gone: set[int] = set()
        self._told, self._all_ended, self._said_who = False, False, False
        self._until = float("inf")
        attempt.on_ending.append(self._tell)
        attempt.on_kill.append(lambda: line.say("kill", restart))
        attempt.on_end.append(self._notice)
        if line.leads:
            attempt.state.scheduler_wait = float("inf")  # Ranks elsewhere may need it for long.
        for server in line.others:
            attempt.on_readable(line.wires[server].fileno(), self._hear)
        attempt.call_later("line", 0.0, self._hear)  # What was said while this start was prepared.

    def stay(self, signals: Signals) -> Outcome:
        """Return how it ended here, once this host is not needed any more; none of its processes is left."""
        if self._attempt.state.reason == "ended":
            self._line.say("ended", self._restart)
        self._tell()
        began = time.monotonic()
        self._until = began + _HEARD
        while not self._may_go():
            poller = select.poll()
            poller.register(signals.fileno(), select.POLLIN)
            for server in self._line.others:
                poller.register(self._line.wires[server].fileno(), select.POLLIN)
            poller.poll(_LOOK * 1000)
            for number in signals.read():
                self._receive(number)
            self._hear()
            if time.monotonic() > began + _PATIENCE:
                self._say_whom_it_waits_for()
        if self._line.leads and self._cause is None:
            self._line.say("all ended", self._restart)
        self._note_silence()
        return self._attempt.outcome()

    def _may_go(self) -> bool:
        late, reason = time.monotonic() > self._until, self._attempt.state.reason
        if self._line.leads:
            if self._cause is None:
                return self._others() <= self._ended_well | self._gone
            return late or self._others() <= self._heard | self._gone
        if self._gone or self._cause is not None:
            return True
        if reason == "ended" and self._may_restart:
            return self._all_ended
        return late or (reason == "ended" and bool(self._heard))

    def _others(self) -> set[int]:
        return set(self._line.wires)

    def _hear(self) -> None:
        for server, word in self._line.hear(self._restart):
            self._take(server, word)
        waiting = False
        for server, wire in self._line.wires.items():
            if wire.closed and server not in self._gone:
                self._gone.add(server)
                self._attempt.on_readable(wire.fileno(), None)
                self._lose(server)
            wire.pump()
            waiting = waiting or (wire.waiting and not wire.closed)
        if waiting:
            self._attempt.call_later("line", _PUMP, self._hear)

    def _take(self, server: int, word: dict[str, Any]) -> None:
        said, line = word.get("word"), self._line
        if said == "heard":
            self._heard.add(server)
        elif said == "all ended":
            self._all_ended = True
        elif said == "ended":
            self._ended_well.add(server)
            line.say("heard", self._restart, server)
            self._release_scheduler()
        elif said == "ending":
            self._decide(Cause.parse(word.get("cause"), line.hosts[server]), server)
        elif said == "end":
            line.say("heard", self._restart, server)
            self._cause = Cause.parse(word.get("cause"), line.hosts[server])
            if word.get("server") != line.own:
                self._take_over(self._cause)
        elif said == "kill" and self._attempt.state.reason != "ended":
            if line.leads and (to := [other for other in line.others if other != server]):
                line.say("kill", self._restart, *to)
            self._attempt.kill()

    def _notice(self, _end: RankEnd) -> None:
        """Once all ranks here have ended well, the scheduler may still have to wait for those elsewhere."""
        if self._attempt.state.ranks_ended_well:
            self._attempt.call_later("others", _PATIENCE, self._say_whom_it_waits_for)
            self._release_scheduler()

    def _release_scheduler(self) -> None:
        if self._line.leads and self._others() <= self._ended_well:
            self._attempt.state.scheduler_wait = _SCHEDULER
            if self._attempt.state.ranks_ended_well:
                self._attempt.call_later("scheduler", _SCHEDULER, lambda: self._attempt.end("ended"))

    def _tell(self) -> None:
        """Tell why this host's part ends before its time, unless another host's word is why."""
        outcome, line = self._attempt.outcome(), self._line
        if self._told or outcome.reason == "ended" or outcome.elsewhere is not None:
            return
        self._told = True
        first = None if outcome.first is None else self._first_failure(outcome.first)
        own = line.hosts[line.own]
        cause = Cause(own, outcome.reason, outcome.exit_code, outcome.detail, outcome.signal, first)
        if line.leads:
            self._decide(cause, line.own)
        else:
            line.say("ending", self._restart, cause=cause.as_dict())

    def _decide(self, cause: Cause, server: int) -> None:
        """Let the first cause that rank 0's host hears of be the job's."""
        if self._cause is not None:
            return
        self._cause, self._until = cause, time.monotonic() + _HEARD
        self._line.say("end", self._restart, cause=cause.as_dict(), server=server)
        if server != self._line.own:
            self._take_over(cause)

    def _take_over(self, cause: Cause) -> None:
        """End this host's part for what has happened on another."""
        attempt = self._attempt
        if attempt.state.ranks_ended_well and not (cause.reason == "failed" and self._may_restart):
            attempt.say(f"{cause.message}, after all ranks of this host had ended well")
            attempt.end("ended")
            return
        if attempt.state.reason == "ended":
            attempt.say(f"{cause.message}: ending the ranks here (at most {attempt.state.grace:g} s)")
        attempt.adopt_cause(cause)

    def _lose(self, server: int) -> None:
        line = self._line
        if self._cause is not None or server in self._ended_well:
            return
        cause = Cause(line.hosts[server], "host", 128 + signal.SIGKILL, line.lost(server))
        if line.leads:
            self._decide(cause, server)
        elif self._told:
            self._attempt.say(cause.message)  # Perhaps why a rank here has failed; its own code stays.
        elif not self._attempt.state.ranks_ended_well:
            self._cause = cause
            self._take_over(cause)

    def _note_silence(self) -> None:
        """Name the hosts that should have heard by now that the job ends, and have not answered."""
        if self._line.leads:
            silent = self._others() - self._heard - self._gone if self._cause is not None else set()
        else:
            silent = self._others() - self._gone if self._told and self._cause is None else set()
        if silent:
            hosts = membership.some([self._line.hosts[server] for server in sorted(silent)])
            self._attempt.say(f"no answer from {hosts}: cut off, down or stopped; ranks there may still run")

    def _say_whom_it_waits_for(self) -> None:
        left = sorted(self._others() - self._ended_well - self._gone)
        if self._cause is None and left and self._line.leads and not self._said_who:
            self._said_who = True
            hosts = membership.some([self._line.hosts[server] for server in left])
            self._attempt.say(f"all ranks of this host have ended well; those of {hosts} still run")

    def _receive(self, number: int) -> None:
        """While no process is left here: whoever interrupts now means the other hosts, or our waiting."""
        attempt, state = self._attempt, self._attempt.state
        if number == signal.SIGTSTP:
            received.stop_self()
        elif number in received.ENDING:
            if state.reason == "ended" and self._cause is None and (self._line.leads or self._may_restart):
                attempt.say(f"{signal_name(number)}: ending the job on the other hosts")
                state.reason, state.signal = "signal", number
                self._tell()
            self._until = min(self._until, time.monotonic() + _HEARD) if state.reason == "signal" else 0.0
