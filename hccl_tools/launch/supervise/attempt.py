"""Run one start of all processes of this host: an event loop that carries out the decisions of ``JobState``.

One poll() waits for events of the keeper, signals to the launcher, space on the terminal and timers.
"""

from __future__ import annotations

import select
import signal
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.supervise import leftovers
from hccl_tools.launch.supervise.job_state import HandleEnd, JobState, Say, SetTimer, Signal, Step
from hccl_tools.processes import keeper_protocol
from hccl_tools.processes import signals as received
from hccl_tools.processes.reactor import Reactor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.logs.follower import Followers
    from hccl_tools.launch.logs.terminal import Console
    from hccl_tools.launch.model.outcome import Cause, Outcome, RankEnd
    from hccl_tools.launch.supervise.job_state import Decision
    from hccl_tools.processes.keeper import Keeper
    from hccl_tools.processes.keeper_protocol import Event
    from hccl_tools.processes.signals import Signals
    from hccl_tools.processes.stack_dump import Stack
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.job_report import HungRank


class Attempt:
    """The event loop around a ``JobState``; ``run`` returns when no process is left.

    Attributes:
        state: The decisions and their reasons, for observers.
        on_end: Called with every process that has exited, before ``state`` handles its end.
        on_ending: Called when the end of the job begins.
        on_kill: Called when all processes of the job are to be killed, here and on other hosts.
        on_over: Called when no process is left.
        terminate: Terminates the processes; they are killed when the grace time is over.
        call_later: Calls a function after the given seconds; a later timer of the same name replaces it.
        on_readable: Calls a function whenever a descriptor is readable; ``None`` removes the function.
        report_quiet: Reports for how long the ranks of this host have done nothing, 0 once they go on;
            ``None`` if this host decides alone whether the job hangs.
        stacks: The stacks of the ranks when they were found to hang, by rank.
        take_evidence: Takes evidence of what the ranks do, and calls a function when it is done; ``None``:
            there is none to take.
        share_evidence: Tells the other hosts that this one has taken its evidence, or takes none, and calls a
            function when all have; ``None``: there are none.
        describe_ranks: Calls a function with what the ranks of this host do; ``None`` without a watch.
        pipes: Pipes that the keeper gives to a process in place of its log and errors, by their paths in
            /proc and by the number of the rank.
        helpers: Programs that the launcher has started for itself; it kills them when the job ends.
    """

    def __init__(
        self,
        ends: Sequence[RankEnd],
        *,
        keeper: Keeper,
        signals: Signals,
        console: Console,
        followers: Followers,
        followed: Callable[[RankEnd], bool],
        grace: float,
        scheduler_wait: float,
    ) -> None:
        self._began = time.monotonic()
        self.state = JobState(ends, grace=grace, scheduler_wait=scheduler_wait, now=self._began)
        self.keeper, self.signals = keeper, signals
        self.console, self.followers = console, followers
        self.pipes = dict[int, tuple[str, str]]()
        self.helpers = list[received.Helper]()
        self.stacks = dict[int, "Stack"]()
        self._followed = followed
        self.reactor = Reactor()
        self.call_later, self.on_readable = self.reactor.at, self.reactor.on_readable
        self.on_end: list[Callable[[RankEnd], None]] = []
        self.on_ending: list[Callable[[], None]] = []
        self.on_kill: list[Callable[[], None]] = []
        self.on_over: list[Callable[[], None]] = []
        self.terminate: Callable[[int], None] = keeper.signal
        self.report_quiet: Callable[[float], None] | None = None
        self.take_evidence: Callable[[Callable[[], None]], None] | None = None
        self.share_evidence: Callable[[Callable[[], None]], None] | None = None
        self.describe_ranks: Callable[[Callable[[list[HungRank]], None]], None] | None = None

    def say(self, text: str) -> None:
        """Show a message, and add it to the report."""
        self.state.notes.append(text)
        self.console.say(text)

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def end(self, reason: Reason, detail: str = "") -> None:
        """Begin to end the job, unless it is already ending."""
        self._act(self.state.end(reason, detail, now=time.monotonic()))

    def end_for(self, cause: Cause) -> None:
        """End the job for a cause reported by another process, unless it is already ending."""
        self._act(self.state.end_for(cause, time.monotonic()))

    def adopt_cause(self, cause: Cause) -> None:
        """End the job for the cause on which its hosts have agreed."""
        self._act(self.state.adopt_cause(cause, time.monotonic()))

    def kill(self) -> None:
        """Kill all processes repeatedly until no process is left."""
        self._act(self.state.kill(time.monotonic()))

    def outcome(self) -> Outcome:
        """Return the outcome of the job as far as it is known on this host."""
        return self.state.outcome(time.monotonic())

    def run(self) -> Outcome:
        """Run the event loop until the job has ended; the keeper has already received the processes."""
        self.reactor.poller.register(self.keeper.fileno(), select.POLLIN)
        self.reactor.poller.register(self.signals.fileno(), select.POLLIN)
        while not self.state.is_over:
            self._poll()
        for finish in self.on_over:
            finish()
        self.console.err.show_status("")
        for helper in self.helpers:
            helper.end()
        self.followers.finish()
        while self.followers.show() and not self.console.waiting:
            pass  # A reader that has stopped reading must not delay the report.
        return self.outcome()

    def _poll(self) -> None:
        poller = self.reactor.poller
        for stream in self.console.streams:
            if stream.waiting:
                poller.register(stream.fileno(), select.POLLOUT)
        ready = self.reactor.poll(self.followers.next_look)
        for stream in self.console.streams:
            if stream.fileno() in ready:
                poller.unregister(stream.fileno())
                stream.pump()
                self.followers.next_look = 0.0
        for event in self.keeper.events():
            self._receive_event(event)
        for number in self.signals.read():
            self._receive_signal(number)
        self.reactor.run_ready(ready)
        if self.keeper.has_ended:
            self._act(self.state.lose_keeper(self.keeper.failure, time.monotonic()))
        if time.monotonic() >= self.followers.next_look:
            self.followers.show()
        self.reactor.run_due()

    def _receive_event(self, event: Event) -> None:
        end = self.state.ends[event.task]
        if event.kind == keeper_protocol.STARTED and self._followed(end):
            self.followers.follow(end.log, end.process.rank)
        self._act(self.state.apply(event, time.monotonic()))

    def _receive_signal(self, number: int) -> None:
        if number in received.FORWARDED:
            self.keeper.signal(number, keeper_protocol.RANKS)
        elif number == signal.SIGTSTP:
            self.console.err.show_status("")
            self.keeper.signal(signal.SIGSTOP)
            received.stop_self()
            self.keeper.signal(signal.SIGCONT)
        elif number == signal.SIGCONT:
            self.keeper.signal(signal.SIGCONT)
        else:
            self._act(self.state.interrupt(number, time.monotonic()))

    def _act(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Signal):
                (self.keeper.signal if decision.number == signal.SIGKILL else self.terminate)(decision.number)
            elif isinstance(decision, SetTimer):
                self._set_timer(decision.name, decision.seconds)
            elif isinstance(decision, Say):
                self.say(decision.text)
            elif isinstance(decision, HandleEnd):
                for observe in self.on_end:
                    observe(decision.end)
                self._act(self.state.process_ended(decision.end, time.monotonic()))
            else:
                self._take_step(decision)

    def _set_timer(self, name: str, seconds: float) -> None:
        self.call_later(name, seconds, lambda: self._act(self.state.timer(name, time.monotonic())))

    def _take_evidence(self) -> None:
        if self.take_evidence is None:
            self._share_evidence()
            return
        try:
            self.take_evidence(self._share_evidence)
        except Exception as error:  # noqa: BLE001  (the job must end in any case)
            self.say(f"no evidence was taken: {error}")
            self._share_evidence()

    def _share_evidence(self) -> None:
        """Terminate the ranks once all hosts have evidence: the end of one rank soon ends its peers."""

        def proceed() -> None:
            self._act(self.state.evidence_taken(time.monotonic()))

        if self.share_evidence is None:
            proceed()
        else:
            self.share_evidence(proceed)

    def _take_step(self, step: Step) -> None:
        if step is Step.BEGIN_END:
            for begin in self.on_ending:
                begin()
            if self.share_evidence is not None and not self.state.takes_evidence:
                self.share_evidence(lambda: None)
        elif step is Step.TAKE_EVIDENCE:
            self._take_evidence()
        elif step is Step.KILL_ELSEWHERE:
            for kill in self.on_kill:
                kill()
        elif step is Step.GIVE_UP:
            self.state.stuck += leftovers.end_job(self.keeper, self.state.running, self.say)
        elif left := self.keeper.descendants():
            self.say(leftovers.describe_leftovers(left))
