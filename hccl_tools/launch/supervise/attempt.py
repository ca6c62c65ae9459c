"""One start of all ranks of this host, from the first process to the last: watch, decide, end.

Everything arrives in one poll(): what the keeper saw, what the launcher was sent, room on the terminal, time.
"""

from __future__ import annotations

import select
import signal
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.model.outcome import Outcome, RankEnd, Reason
from hccl_tools.launch.processes import keeper_protocol
from hccl_tools.launch.processes import signals as received
from hccl_tools.launch.processes.process_limit import why_not_started
from hccl_tools.launch.processes.reactor import Reactor
from hccl_tools.launch.processes.signal_names import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.logs.follower import Followers
    from hccl_tools.launch.logs.terminal import Console
    from hccl_tools.launch.model.outcome import Cause
    from hccl_tools.launch.processes.keeper import Keeper
    from hccl_tools.launch.processes.keeper_protocol import Event
    from hccl_tools.launch.processes.procfs import Status
    from hccl_tools.launch.processes.signals import Signals

_RUNNING, _ENDING, _KILLING, _OVER = range(4)
#: Seconds between two rounds of SIGKILL, and until what survives them is given up as stuck in the kernel.
_KILL_AGAIN, _GIVE_UP = 0.1, 5.0
#: Seconds that what the ranks left behind gets to end by itself after them.
_LEFT_BEHIND = 0.25
#: Signals that kill when they come again, and for how many seconds they may be the first one on another way.
_AGAIN = {signal.SIGINT: 0.2, signal.SIGTERM: 1.0}


class Attempt:
    """The state of a running job; ``run`` sees it to its end."""

    def __init__(
        self,
        ends: list[RankEnd],
        *,
        keeper: Keeper,
        signals: Signals,
        console: Console,
        followers: Followers,
        followed: Callable[[RankEnd], bool],
        grace: float,
        scheduler_wait: float,
    ) -> None:
        self.ends, self.keeper, self.signals = ends, keeper, signals
        self.console, self.followers = console, followers
        self.grace, self.slack, self.scheduler_wait = grace, 0.0, scheduler_wait
        self.reason: Reason = "ended"
        self.detail, self.signal = "", 0
        self.first: RankEnd | None = None
        self.elsewhere: Cause | None = None
        self.stuck: list[Status] = []
        self.notes, self.helpers = list[str](), list[received.Helper]()
        self._followed = followed
        self._phase, self._interrupted, self._began = _RUNNING, 0.0, time.monotonic()
        self._end_began, self._ending = float("inf"), list[RankEnd]()
        # Processes that have not ended, ranks that have not ended well.
        self._left, self._ranks_left = len(ends), sum(end.process.rank >= 0 for end in ends)
        self.reactor = Reactor()
        self.at, self.on_readable = self.reactor.at, self.reactor.on_readable
        #: Called for every process that ends, when the end begins, when all are to be killed at once.
        self.on_end: list[Callable[[RankEnd], None]] = []
        self.on_ending: list[Callable[[], None]] = []
        self.on_kill: list[Callable[[], None]] = []
        #: Whether a second SIGTERM, or one after Ctrl-C, is somebody's who does not want to wait any more.
        self.hears_sigterm_again = True
        #: How processes are asked to end; they are killed when the grace time and the slack are over.
        self.ask: Callable[[int], None] = keeper.signal
        self._poller = self.reactor.poller

    def say(self, text: str) -> None:
        """Tell the user, now and in the report."""
        self.notes.append(text)
        self.console.say(text)

    @property
    def ranks_ended_well(self) -> bool:
        """Whether every rank has; the scheduler may still run."""
        return not self._ranks_left

    @property
    def is_ending(self) -> bool:
        """Whether its end has begun."""
        return self._phase != _RUNNING

    @property
    def running(self) -> list[RankEnd]:
        """The processes that have been started and have not ended."""
        return [end for end in self.ends if end.pid and end.status is None]

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def end(self, reason: Reason, detail: str = "", number: int = signal.SIGTERM) -> None:
        """Begin to end the job, unless it is ending: signal everyone, and after the grace time kill."""
        if self._phase != _RUNNING:
            return
        self._phase, self._end_began = _ENDING, time.monotonic()
        self.reason, self.detail = reason, detail
        for act in self.on_ending:
            act()
        if self.grace <= 0:
            self.kill()
            return
        self.ask(number)
        if number != signal.SIGTERM:
            self.at("terminate", self.grace / 3, lambda: self.ask(signal.SIGTERM))
        self.at("kill", self.grace + self.slack, self.kill)

    def end_for(self, cause: Cause) -> None:
        """Begin to end the job for what another process of it has reported."""
        if self._phase == _RUNNING:
            self.elsewhere = cause
            self.end(cause.reason, cause.detail, cause.signal or signal.SIGTERM)

    def run(self) -> Outcome:
        """See the job to its end; the processes have been handed to the keeper."""
        self._poller.register(self.keeper.fileno(), select.POLLIN)
        self._poller.register(self.signals.fileno(), select.POLLIN)
        while self._phase != _OVER:
            self._look()
        self.console.err.show_status("")
        for helper in self.helpers:
            helper.end()
        self.followers.finish()
        while self.followers.show() and not self.console.waiting:
            pass  # The reader takes what there is; one that does not keeps nobody waiting.
        return self.outcome()

    def _look(self) -> None:
        poller = self._poller
        for stream in self.console.streams:
            if stream.waiting:
                poller.register(stream.fileno(), select.POLLOUT)
        due = min(self.followers.next_look, self.reactor.next_due)
        wait = None if due == float("inf") else max(0.0, due - time.monotonic()) * 1000 + 0.5
        ready = {descriptor for descriptor, _ in poller.poll(wait)}
        for stream in self.console.streams:
            if stream.fileno() in ready:
                poller.unregister(stream.fileno())
                stream.pump()
                self.followers.next_look = 0.0
        for event in self.keeper.events():
            self._hear(event)
        for number in self.signals.read():
            self._receive(number)
        self.reactor.run_ready(ready)
        if self.keeper.gone and self._phase != _OVER:
            self._give_up()
        if time.monotonic() >= self.followers.next_look:
            self.followers.show()
        self.reactor.run_due()

    def _hear(self, event: Event) -> None:
        end = self.ends[event.task]
        if event.kind == keeper_protocol.STARTED:
            end.pid, end.started = event.pid, event.time / 1e9
            if self._followed(end):
                self.followers.follow(end.log, end.process.rank)
        elif event.kind == keeper_protocol.CANNOT_RUN:
            self._hear_cannot(event, end)
        elif event.kind == keeper_protocol.ENDING:
            self._hear_ending(end, event.value)
        elif event.kind == keeper_protocol.ENDED:
            end.cpu, end.peak = event.cpu / 1e9, event.extra
            self._hear_end(end, event.value, event.time / 1e9)
        elif event.kind == keeper_protocol.EMPTY:
            self._phase = _OVER
        else:
            self.detail = "the launcher's keeper process failed; this is a bug in hccl-tools"
            self.say(f"{self.detail}:\n{self.keeper.failure}")

    def _hear_cannot(self, event: Event, end: RankEnd) -> None:
        end.error = event.value
        if event.extra == keeper_protocol.PROGRAM:
            return  # Its end is told next.
        what = keeper_protocol.ABOUT[event.extra].format(log=end.log, name=end.process.name)
        self.end("refused", f"cannot {what}: {why_not_started(event.value)}")

    def _hear_ending(self, end: RankEnd, status: int) -> None:
        """A failure that began before the one that is told next, and is not complete."""
        if self._phase == _RUNNING:
            from dataclasses import replace  # noqa: PLC0415  (rare)

            # What is told of it while it goes on; its end will say the same.
            self.first = replace(end, status=status, ended=time.monotonic())
            self.end("failed")
            self.first = end
        if self.reason == "failed" and self.elsewhere is None:
            self._ending.append(end)

    def _hear_end(self, end: RankEnd, status: int, when: float) -> None:
        end.status, end.ended = status, when
        self._left -= 1
        self._ranks_left -= status == 0 and end.process.rank >= 0
        end.was_terminated = when > self._end_began
        if end in self._ending and self.elsewhere is None:
            self.first, self._ending = end, []
        for act in self.on_end:
            act(end)
        if self._phase != _RUNNING:
            return
        if status != 0 and self._ranks_left:
            self.first = end
            self.end("failed")
        elif not self._left:
            self.at("left behind", _LEFT_BEHIND, self._end_left_behind)
        elif not self._ranks_left:
            # Nobody needs it any more; MindSpore's looks only every 5 s whether its ranks have gone.
            self.at("scheduler", self.scheduler_wait, lambda: self.end("ended"))

    def _end_left_behind(self) -> None:
        if left := self.keeper.descendants():
            from hccl_tools.launch.supervise import leftovers  # noqa: PLC0415  (rare)

            self.say(leftovers.describe_leftovers(left))
        self.end("ended")

    def _receive(self, number: int) -> None:
        if number in received.PASSED_ON:
            self.keeper.signal(number, keeper_protocol.RANKS)
        elif number == signal.SIGTSTP:
            self.console.err.show_status("")
            self.keeper.signal(signal.SIGSTOP)
            received.stop_self()
            self.keeper.signal(signal.SIGCONT)
        elif number == signal.SIGCONT:
            self.keeper.signal(signal.SIGCONT)
        elif self._phase == _RUNNING:
            self.signal, self._interrupted = number, time.monotonic()
            again = f"{'Ctrl-C or SIGTERM' if self.hears_sigterm_again else 'Ctrl-C'} then kills at once"
            self.say(f"{signal_name(number)}: ending the job (at most {self.grace:g} s; {again})")
            self.end("signal", number=number)
        elif number in _AGAIN and time.monotonic() - self._interrupted > _AGAIN[signal.Signals(number)]:
            if number == signal.SIGTERM and not (self._interrupted and self.hears_sigterm_again):
                return  # Of a batch system, say, while ranks have their grace time after a failure.
            for act in self.on_kill:
                act()
            self.kill()

    def kill(self) -> None:
        """Kill everyone now, again and again until nobody is left."""
        if self._phase != _KILLING:
            self._phase = _KILLING
            self.at("give up", _GIVE_UP, self._give_up)
        self.keeper.signal(signal.SIGKILL)
        self.at("kill", _KILL_AGAIN, self.kill)

    def _give_up(self) -> None:
        """Some are left after many rounds of SIGKILL, or the keeper was killed."""
        from hccl_tools.launch.supervise import leftovers  # noqa: PLC0415  (rare)

        if self._phase == _RUNNING:
            self._phase, self.reason = _KILLING, "keeper"
            for act in self.on_ending:
                act()
        self.stuck = leftovers.end_job(self.keeper, self.running, self.say, _GIVE_UP)
        self._phase = _OVER

    def outcome(self) -> Outcome:
        """How it ended, as far as is known here."""
        return Outcome(
            self.reason, self.ends, self.age, self.first, self.signal, self.stuck,
            detail=self.detail, notes=self.notes, elsewhere=self.elsewhere,
        )  # fmt: skip
