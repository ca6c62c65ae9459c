"""Decide what ends a job, when each process is signalled, and what the exit code of the job is.

A pure state machine: the methods accept events with their times and return decisions, which the event loop
(``attempt``, ``spawn.context``) carries out in order. It does not start, signal or wait for processes, and
does not read a clock.

The earliest failure decides. The end of a process after the end of the job has begun is a consequence. After
a failure, a hang or a timeout evidence is taken first. Then all processes get SIGTERM and, after the grace
time, SIGKILL repeatedly until no process is left.
"""

from __future__ import annotations

import signal
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from hccl_tools.launch.model.outcome import RESTARTABLE, Outcome
from hccl_tools.processes import keeper_protocol, run_files, timing
from hccl_tools.processes.limits import why_not_started
from hccl_tools.processes.signals import signal_name
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.outcome import Cause, RankEnd
    from hccl_tools.processes.keeper_protocol import Event
    from hccl_tools.processes.procfs import Status
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.evidence import EvidenceNote
    from hccl_tools.runs.job_report import HungRank


class Signal(NamedTuple):
    """Send a signal to all processes of the job."""

    number: int


class SetTimer(NamedTuple):
    """Call ``JobState.timer`` with ``name`` after the given seconds; replace a timer of the same name."""

    name: str
    seconds: float


class Say(NamedTuple):
    """Show a message, and add it to the report."""

    text: str


class HandleEnd(NamedTuple):
    """Notify the observers, which may report the cause, then call ``JobState.process_ended``."""

    end: RankEnd


class Step(Enum):
    """Decisions without arguments."""

    #: Notify the observers that the end of the job begins.
    BEGIN_END = "begin the end"
    #: Take evidence of what the ranks do, then call ``JobState.evidence_taken``.
    TAKE_EVIDENCE = "take evidence"
    #: Request that the other hosts kill their processes, too.
    KILL_ELSEWHERE = "kill elsewhere"
    #: Show which processes the ranks have left behind.
    SHOW_LEFTOVERS = "show leftovers"
    #: End the remaining processes without the keeper, or leave them.
    GIVE_UP = "give up"


Decision: TypeAlias = "Signal | SetTimer | Say | HandleEnd | Step"


class Timing(NamedTuple):
    """The durations of a job's end in seconds, without the grace time."""

    #: From one round of SIGKILL to the next.
    kill_again: float = 0.1
    #: From the first SIGKILL until the surviving processes count as stuck in the kernel.
    give_up: float = 5.0
    #: For processes that the ranks have left behind to exit by themselves.
    leftovers: float = 0.25
    #: From the first signal until SIGINT kills: some programs send SIGINT to a process and to its group.
    repeat_sigint: float = 0.2
    #: From the first signal until SIGTERM kills.
    repeat_sigterm: float = 1.0


TIMING = timing.from_environment("supervisor", Timing())


#: The timers that a job state sets, by name.
TERMINATE, KILL, GIVE_UP, SCHEDULER, LEFTOVERS = "terminate", "kill", "give up", "scheduler", "leftovers"
EVIDENCE = "evidence"
#: The ends before which evidence is taken: what the ranks do then shows the cause.
_WITH_EVIDENCE = frozenset({"failed", "hang", "timeout"})
_NEVER = float("inf")


class Phase(Enum):
    """The phase of a job. ENDING: SIGTERM was sent; KILLING: SIGKILL was sent; OVER: no process is left."""

    RUNNING = "running"
    ENDING = "ending"
    KILLING = "killing"
    OVER = "over"


class JobState:
    """One start of a job's processes on this host.

    All times are ``time.monotonic()`` seconds. ``reason``, ``detail``, ``signal``, ``first_failure``,
    ``remote_cause``, ``stuck``, ``notes``, ``hung`` and ``evidence`` have the same meaning as in ``Outcome``.

    Attributes:
        ends: The end of each process, as far as events have reported it.
        grace: Seconds from SIGTERM to SIGKILL.
        evidence_timeout: Seconds by which evidence may postpone the first SIGTERM; 0: none is taken.
        extra_grace: Seconds added to ``grace``, for other hosts to report.
        scheduler_wait: Seconds for the scheduler to exit after all ranks have exited with 0.
        second_sigterm_kills: Whether a second SIGTERM, or SIGTERM after SIGINT, skips the grace time.
    """

    def __init__(
        self,
        ends: Sequence[RankEnd],
        *,
        grace: float,
        scheduler_wait: float,
        now: float,
        timing: Timing = TIMING,
    ) -> None:
        self.ends, self.grace, self.scheduler_wait = list(ends), grace, scheduler_wait
        self.extra_grace, self.second_sigterm_kills = 0.0, True
        self.evidence_timeout = 0.0
        self.phase = Phase.RUNNING
        self.reason: Reason = "ended"
        self.detail, self.signal = "", 0
        self.first_failure: RankEnd | None = None
        self.remote_cause: Cause | None = None
        self.stuck, self.notes, self.hung = list["Status"](), list[str](), list["HungRank"]()
        self.evidence = list["EvidenceNote"]()
        self._timing, self._began, self._end_began, self._interrupted = timing, now, _NEVER, -_NEVER
        #: Processes whose failure began before the first reported failure.
        self._failing: list[RankEnd] = []
        #: The signal that is sent once the evidence is taken.
        self._postponed = 0
        self._first_is_known = True
        self._processes_left = len(self.ends)
        self._ranks_left = sum(end.process.rank >= 0 for end in self.ends)

    @property
    def is_ending(self) -> bool:
        """Whether the end of the job has begun."""
        return self.phase is not Phase.RUNNING

    @property
    def takes_evidence(self) -> bool:
        """Whether the end has begun and the processes are terminated once evidence is taken."""
        return bool(self._postponed)

    @property
    def longest_end(self) -> float:
        """Seconds from the beginning of an end with evidence to SIGKILL."""
        return self.grace + self.evidence_timeout

    @property
    def is_over(self) -> bool:
        """Whether no process is left, except for processes that cannot be killed."""
        return self.phase is Phase.OVER

    @property
    def ranks_ended_well(self) -> bool:
        """Whether every rank has exited with 0; the scheduler may still run."""
        return not self._ranks_left

    @property
    def running(self) -> list[RankEnd]:
        """The processes that have been started and have not exited."""
        return [end for end in self.ends if end.pid and end.status is None]

    def outcome(self, now: float) -> Outcome:
        """Return the outcome of the job as far as it is known on this host."""
        return Outcome(
            self.reason, self.ends, now - self._began, self.first_failure, self.signal, self.stuck,
            detail=self.detail, notes=self.notes, remote_cause=self.remote_cause, hung=self.hung,
            evidence=self.evidence,
        )  # fmt: skip

    def apply(self, event: Event, now: float) -> list[Decision]:
        """Handle a report of the keeper on a process."""
        end = self.ends[event.task]
        if event.kind == keeper_protocol.STARTED:
            end.pid, end.started = event.pid, event.time / 1e9
        elif event.kind == keeper_protocol.CANNOT_RUN:
            end.error = event.value
            if event.extra != keeper_protocol.PROGRAM:  # If a program is missing, ENDED follows.
                what = keeper_protocol.ABOUT[event.extra].format(log=end.log, name=end.process.name)
                is_log = event.extra == keeper_protocol.LOG
                why = run_files.reason(event.value) if is_log else why_not_started(event.value)
                return self.end("refused", f"cannot {what}: {why}", now=now)
        elif event.kind == keeper_protocol.ENDING:
            return self._begin_failure(end, event.value, now)
        elif event.kind == keeper_protocol.ENDED:
            self._record_end(end, event)
            return [HandleEnd(end)]
        elif event.kind == keeper_protocol.EMPTY:
            self.phase = Phase.OVER
        return []

    def _begin_failure(self, end: RankEnd, status: int, now: float) -> list[Decision]:
        """Record that a process is exiting with a failure that began before the next reported failure."""
        decisions: list[Decision] = []
        if self.phase is Phase.RUNNING:
            self.first_failure, self._first_is_known = end, False
            end.status, end.ended = status, now
            decisions = self.end("failed", now=now)
        if self.reason == "failed" and self.remote_cause is None:
            self._failing.append(end)
        return decisions

    def _record_end(self, end: RankEnd, event: Event) -> None:
        end.status, end.ended = event.value, event.time / 1e9
        end.cpu, end.peak = event.cpu / 1e9, event.extra
        is_failing = end in self._failing
        end.was_terminated = end.ended > self._end_began and not is_failing
        self._processes_left -= 1
        self._ranks_left -= end.status == 0 and end.process.rank >= 0
        if is_failing and not self._first_is_known and self.remote_cause is None:
            self.first_failure, self._first_is_known = end, True

    def process_ended(self, end: RankEnd, now: float) -> list[Decision]:
        """Decide what follows the exit of a process, unless the job is already ending."""
        if self.phase is not Phase.RUNNING:
            return []
        if end.status != 0 and self._ranks_left:
            self.first_failure = end
            return self.end("failed", now=now)
        if not self._processes_left:
            return [SetTimer(LEFTOVERS, self._timing.leftovers)]
        if not self._ranks_left:
            # No rank needs the scheduler now, which checks only every 5 s whether its ranks have ended.
            return [SetTimer(SCHEDULER, self.scheduler_wait)]
        return []

    def end(
        self, reason: Reason, detail: str = "", *, now: float, number: int = signal.SIGTERM
    ) -> list[Decision]:
        """Begin to end the job unless it is already ending: terminate, then kill all processes."""
        if self.phase is not Phase.RUNNING:
            return []
        self.phase, self.reason, self.detail = Phase.ENDING, reason, detail
        if self.evidence_timeout > 0 and reason in _WITH_EVIDENCE:
            self._postponed = number
            return [Step.BEGIN_END, Step.TAKE_EVIDENCE, SetTimer(EVIDENCE, self.evidence_timeout)]
        return [Step.BEGIN_END, *self._terminate(number, now)]

    def evidence_taken(self, now: float) -> list[Decision]:
        """Terminate the processes, unless that was done already."""
        number, self._postponed = self._postponed, 0
        return self._terminate(number, now) if number and self.phase is Phase.ENDING else []

    def _terminate(self, number: int, now: float) -> list[Decision]:
        self._end_began = now
        if self.grace <= 0:
            return self.kill(now)
        decisions: list[Decision] = [Signal(number)]
        if number != signal.SIGTERM:
            decisions.append(SetTimer(TERMINATE, self.grace / 3))
        return [*decisions, SetTimer(KILL, self.grace + self.extra_grace)]

    def end_for(self, cause: Cause, now: float) -> list[Decision]:
        """End the job for a cause reported by another process, unless it is already ending."""
        if self.phase is not Phase.RUNNING:
            return []
        self.remote_cause = cause
        return self.end(cause.reason, cause.detail, now=now, number=cause.signal or signal.SIGTERM)

    def adopt_cause(self, cause: Cause, now: float) -> list[Decision]:
        """Adopt the cause on which the hosts have agreed, in place of a failure or hang on this host.

        A signal to this launcher, or its own timeout, still determines its exit code.
        """
        if self.reason != "ended" and self.reason not in RESTARTABLE:
            return []
        decisions = self.end_for(cause, now)
        self.remote_cause, self.first_failure, self.reason = cause, None, cause.reason
        return decisions

    def blame_logs(self, detail: str) -> None:
        """Attribute a failure to the logs: a rank may fail on a full disk before the disk is checked."""
        self.reason, self.detail = "log-error", detail
        self.first_failure = self.remote_cause = None
        self._first_is_known = True

    def blame_rank(self, end: RankEnd) -> None:
        """Attribute a refusal, or the loss of the keeper, to the failure of one of the job's processes."""
        if self.reason in {"refused", "keeper"}:
            self.reason, self.first_failure = "failed", end

    def interrupt(self, number: int, now: float) -> list[Decision]:
        """Handle a signal that requests the end of the job; a repeated signal kills the processes."""
        if self.phase is Phase.RUNNING:
            self.signal, self._interrupted = number, now
            again = "another Ctrl-C or SIGTERM" if self.second_sigterm_kills else "another Ctrl-C"
            cause = "Ctrl-C" if number == signal.SIGINT else signal_name(number)
            text = f"{cause}: ending the job within {self.grace:g} s; {again} kills it at once"
            return [Say(text), *self.end("signal", now=now, number=number)]
        if self.phase is Phase.OVER or not self._is_repeated(number, now):
            return []
        return [Step.KILL_ELSEWHERE, *self.kill(now)]

    def _is_repeated(self, number: int, now: float) -> bool:
        since = now - self._interrupted
        if number == signal.SIGINT:
            return since > self._timing.repeat_sigint
        # Without an earlier interrupt, a batch system may have sent SIGTERM in the grace time of a failure.
        is_second = self._interrupted > -_NEVER and self.second_sigterm_kills
        return number == signal.SIGTERM and is_second and since > self._timing.repeat_sigterm

    def kill(self, now: float) -> list[Decision]:
        """Kill all processes repeatedly until no process is left."""
        decisions: list[Decision] = []
        if self.phase is Phase.OVER:
            return decisions
        if self.phase is Phase.RUNNING:  # Another host requested this: no success.
            self.reason, self.signal, self._end_began = "signal", signal.SIGKILL, now
            decisions.append(Step.BEGIN_END)
        if self.phase is not Phase.KILLING:
            self.phase, self._end_began = Phase.KILLING, min(self._end_began, now)
            decisions.append(SetTimer(GIVE_UP, self._timing.give_up))
        return [*decisions, Signal(signal.SIGKILL), SetTimer(KILL, self._timing.kill_again)]

    def timer(self, name: str, now: float) -> list[Decision]:
        """Handle an expired timer."""
        if name == KILL:
            return self.kill(now)
        if name == GIVE_UP:
            return self._give_up(now)
        if name == EVIDENCE:
            return self.evidence_taken(now)
        if name == TERMINATE:
            return [Signal(signal.SIGTERM)] if self.phase is Phase.ENDING else []
        shown: list[Decision] = [Step.SHOW_LEFTOVERS] if name == LEFTOVERS else []
        return shown + self.end("ended", now=now)

    def lose_keeper(self, traceback: str, now: float) -> list[Decision]:
        """Record the end of the keeper: killed if ``traceback`` is empty, else failed."""
        decisions: list[Decision] = []
        if traceback and self.phase is not Phase.OVER:
            failed = "the launcher's keeper process failed; this is a bug in hccl-tools"
            self.detail = self.detail or failed
            decisions.append(Say(f"{failed}:\n{traceback}"))
        return decisions + self._give_up(now)

    def _give_up(self, now: float) -> list[Decision]:
        if self.phase is Phase.OVER:
            return []
        decisions: list[Decision] = [Step.GIVE_UP]
        if self.phase is Phase.RUNNING:
            self.reason, self._end_began = "keeper", now
            decisions.insert(0, Step.BEGIN_END)
        self.phase = Phase.OVER
        return decisions
