"""What ends a job, what is killed when, and its exit code: decisions, without a process or a clock."""

from __future__ import annotations

import errno
import heapq
import signal
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.model.outcome import Cause, RankEnd
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.supervise.job_state import KILL, HandleEnd, JobState, Say, SetTimer, Signal, Step
from hccl_tools.processes import keeper_protocol
from hccl_tools.processes.keeper_protocol import Event
from hccl_tools.runs.job_report import RankFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.supervise.job_state import Decision

STEPS = {
    Step.BEGIN_END: "begin",
    Step.TAKE_EVIDENCE: "evidence",
    Step.KILL_ELSEWHERE: "elsewhere",
    Step.SHOW_LEFTOVERS: "leftovers",
    Step.GIVE_UP: "give-up",
}
REMOTE = {
    "failed": Cause("b", "failed", 9, first_failure=RankFailure(5, "rank 5")),
    "host": Cause("b", "host", 137, "b was lost"),
    "signal": Cause("b", "signal", 130, signal=signal.SIGINT),
}


def end_of(rank: int) -> RankEnd:
    return RankEnd(RankProcess(rank, "a", 0, rank, rank, {}, ("x",), "x.log"), "x.log")


def status_of(word: str) -> int:
    return int(word) << 8 if word.isdigit() else int(signal.Signals[f"SIG{word}"])


class Job:
    """A job state with its timers; what it decides is written down with the time, ``0.5 TERM``."""

    def __init__(
        self,
        ranks: int = 2,
        *,
        scheduler: bool = False,
        grace: float = 4.0,
        extra: float = 0.0,
        evidence: float = 0.0,
    ) -> None:
        ends = [end_of(rank) for rank in range(ranks)] + [end_of(-1)] * scheduler
        self.state = JobState(ends, grace=grace, scheduler_wait=1.0, now=0.0)
        self.state.extra_grace, self.state.evidence_timeout = extra, evidence
        self.now, self.decided, self.said = 0.0, list[str](), list[str]()
        self.timers: dict[str, float] = {}
        self.on_begin: Callable[[], None] = lambda: None
        self.on_signal: Callable[[int], None] = lambda _: None
        self.before_judging: Callable[[RankEnd], None] = lambda _: None

    def act(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, SetTimer):
                self.timers[decision.name] = self.now + decision.seconds
            elif isinstance(decision, Say):
                self.said.append(decision.text)
            elif isinstance(decision, HandleEnd):
                self.before_judging(decision.end)
                self.act(self.state.process_ended(decision.end, self.now))
            elif isinstance(decision, Signal):
                self.decided.append(f"{self.now:g} {signal.Signals(decision.number).name[3:]}")
                self.on_signal(decision.number)
            else:
                self.decided.append(f"{self.now:g} {STEPS[decision]}")
                if decision is Step.BEGIN_END:
                    self.on_begin()

    def advance(self, until: float) -> None:
        """Let time pass, and the timers that are due with it."""
        while not self.state.is_over and self.timers and min(self.timers.values()) <= until:
            name = min(self.timers, key=lambda key: self.timers[key])
            self.now = self.timers.pop(name)
            self.act(self.state.timer(name, self.now))
        self.now = max(self.now, until)

    def event(
        self, kind: int, task: int = 0, value: int = 0, *, when: float | None = None, extra: int = 0
    ) -> None:
        time = round((self.now if when is None else when) * 1e9)
        self.act(self.state.apply(Event(kind, task, 100 + task, value, time, extra=extra), self.now))

    def play(self, script: str) -> None:
        """Play events such as ``1.5 end 0 7``: at 1.5 s the process of index 0 ends with exit code 7."""
        for line in filter(None, map(str.strip, script.split(";"))):
            time, what, *rest = line.split()
            self.advance(float(time))
            self.play_one(what, rest)

    def play_one(self, what: str, rest: list[str]) -> None:
        state, now = self.state, self.now
        if what == "end":
            when = float(rest[2]) if len(rest) > 2 else None
            self.event(keeper_protocol.ENDED, int(rest[0]), status_of(rest[1]), when=when)
        elif what == "failing":
            self.event(keeper_protocol.ENDING, int(rest[0]), status_of(rest[1]))
        elif what == "start":
            self.event(keeper_protocol.STARTED, int(rest[0]))
        elif what == "taken":
            self.act(state.evidence_taken(now))
        elif what == "cannot":
            self.event(keeper_protocol.CANNOT_RUN, int(rest[0]), 2, extra=int(rest[1]))
        elif what == "empty":
            self.event(keeper_protocol.EMPTY)
        else:
            self.act(self.request(what, rest, state, now))

    def request(self, what: str, rest: list[str], state: JobState, now: float) -> list[Decision]:
        requests: dict[str, Callable[[], list[Decision]]] = {
            "timeout": lambda: state.end("timeout", now=now),
            "full": lambda: state.end("log-error", "full", now=now),
            "remote": lambda: state.end_for(REMOTE[rest[0]], now),
            "adopt": lambda: state.adopt_cause(REMOTE[rest[0]], now),
            "kill": lambda: state.kill(now),
            "lost": lambda: state.lose_keeper(" ".join(rest), now),
        }
        return requests[what]() if what in requests else state.interrupt(signal.Signals[what], now)


class Row(NamedTuple):
    """A job: its events, what is decided, then the reason, the exit code and the first failure's rank."""

    name: str
    script: str
    decided: str
    reason: str
    code: int
    first: int | None = None
    options: dict[str, Any] = {}  # noqa: RUF012  (read only)


WELL = "0 end 0 0; 0 end 1 0; 0 empty"
FIVE_SECONDS_OF_SIGKILL = ";".join(f"{1 + tenth / 10:g} KILL" for tenth in range(51))
ROWS = [
    # Ends without a failure.
    Row("all ranks end well", WELL, "", "ended", 0),
    Row("ranks end at different times", "0 end 0 0; 9 end 1 0; 9 empty", "", "ended", 0),
    Row("something is left behind",
        "0 end 0 0; 1 end 1 0; 3 empty", "1.25 leftovers;1.25 begin;1.25 TERM", "ended", 0),
    Row("what is left behind ignores SIGTERM",
        "0 end 0 0; 1 end 1 0; 5.3 empty", "1.25 leftovers;1.25 begin;1.25 TERM;5.25 KILL", "ended", 0),
    Row("the scheduler ends by itself",
        "0 end 0 0; 1 end 1 0; 1.5 end 2 0; 1.5 empty", "", "ended", 0, None, {"scheduler": True}),
    Row("the scheduler outlives its ranks",
        "0 end 0 0; 1 end 1 0; 2.5 end 2 TERM; 2.5 empty", "2 begin;2 TERM", "ended", 0, None,
        {"scheduler": True}),
    Row("the scheduler fails after its ranks",
        "0 end 0 0; 1 end 1 0; 1.5 end 2 9; 1.5 empty", "", "ended", 0, None, {"scheduler": True}),
    # Failures.
    Row("a rank fails", "1 end 1 7; 2 end 0 TERM; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("a rank is killed", "1 end 1 SEGV; 2 end 0 TERM; 2 empty", "1 begin;1 TERM", "failed", 139, 1),
    Row("the only rank fails", "1 end 0 7; 1 empty", "1 begin;1 TERM", "failed", 7, 0, {"ranks": 1}),
    Row("a rank fails after another has ended well",
        "0 end 0 0; 1 end 1 3; 1 empty", "1 begin;1 TERM", "failed", 3, 1),
    Row("the last rank is killed by SIGTERM from outside",
        "0 end 0 0; 1 end 1 TERM; 1 empty", "1 begin;1 TERM", "failed", 143, 1),
    Row("two fail in the order of their ends",
        "1 end 1 7; 1 end 0 8; 1 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("the second failure began first",
        "1 failing 0 8; 1 end 1 7; 2 end 0 8; 2 empty", "1 begin;1 TERM", "failed", 8, 0),
    Row("of two that began first the first to end",
        "1 failing 0 8; 1 failing 2 9; 1 end 1 7; 2 end 2 9; 3 end 0 8; 3 empty", "1 begin;1 TERM", "failed",
        9, 2, {"ranks": 3}),
    Row("a failure that begins after another process has failed",
        "1 end 1 7; 1.5 failing 0 8; 2 end 0 8; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("a failure that began is never completed",
        "1 failing 0 8; 1 end 1 7; 2 lost", "1 begin;1 TERM;2 give-up", "failed", 8, 0),
    Row("a rank fails in the grace time", "1 end 1 7; 2 end 0 9; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("a rank ends well in the grace time",
        "1 end 1 7; 2 end 0 0; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("the scheduler fails first",
        "1 end 2 3; 2 end 0 TERM; 2 end 1 TERM; 2 empty", "1 begin;1 TERM", "failed", 3, -1,
        {"scheduler": True}),
    Row("the scheduler ends well first",
        "1 end 2 0; 2 end 0 0; 3 end 1 0; 3 empty", "", "ended", 0, None, {"scheduler": True}),
    Row("a program is missing",
        "0 cannot 0 0; 0 end 0 127; 1 end 1 TERM; 1 empty", "0 begin;0 TERM", "failed", 127, 0),
    Row("a log cannot be opened", "0 cannot 1 1; 1 end 0 TERM; 1 empty", "0 begin;0 TERM", "refused", 125),
    Row("the working directory is missing", "0 cannot 0 3; 0 empty", "0 begin;0 TERM", "refused", 125),
    # The grace time.
    Row("a rank ignores SIGTERM",
        "1 end 1 7; 5.05 end 0 KILL; 5.05 empty", "1 begin;1 TERM;5 KILL", "failed", 7, 1),
    Row("other hosts get extra grace",
        "1 end 1 7; 7.05 empty", "1 begin;1 TERM;7 KILL", "failed", 7, 1, {"extra": 2.0}),
    Row("no grace",
        "1 end 1 7; 1.05 end 0 KILL; 1.05 empty", "1 begin;1 KILL", "failed", 7, 1, {"grace": 0.0}),
    Row("SIGKILL is repeated",
        "1 end 1 7; 1.25 end 0 KILL; 1.25 empty", "1 begin;1 KILL;1.1 KILL;1.2 KILL", "failed", 7, 1,
        {"grace": 0.0}),
    # Evidence before the first SIGTERM.
    Row("evidence is taken before SIGTERM",
        "1 end 1 7; 1.5 taken; 2 end 0 TERM; 2 empty", "1 begin;1 evidence;1.5 TERM", "failed", 7, 1,
        {"evidence": 2.0}),
    Row("little time for evidence",
        "1 end 1 7; 2 empty", "1 begin;1 evidence;1.5 TERM", "failed", 7, 1, {"evidence": 0.5}),
    Row("evidence that is late is not waited for",
        "1 end 1 7; 3.5 taken; 4 end 0 TERM; 4 empty", "1 begin;1 evidence;3 TERM", "failed", 7, 1,
        {"evidence": 2.0}),
    Row("the grace time begins after the evidence",
        "1 end 1 7; 2 taken; 6.05 end 0 KILL; 6.05 empty", "1 begin;1 evidence;2 TERM;6 KILL", "failed", 7, 1,
        {"evidence": 2.0}),
    Row("all end while evidence is taken",
        "1 end 1 7; 1.5 end 0 9; 1.5 empty; 1.6 taken", "1 begin;1 evidence", "failed", 7, 1,
        {"evidence": 2.0}),
    Row("no grace, with evidence",
        "1 end 1 7; 2 taken; 2.05 end 0 KILL; 2.05 empty", "1 begin;1 evidence;2 KILL", "failed", 7, 1,
        {"evidence": 2.0, "grace": 0.0}),
    Row("Ctrl-C does not wait for evidence",
        "1 SIGINT; 4 empty", "1 begin;1 INT;2.33333 TERM", "signal", 130, None, {"evidence": 2.0}),
    Row("evidence of another end changes nothing",
        "1 SIGTERM; 1.5 taken; 2 empty", "1 begin;1 TERM", "signal", 143, None, {"evidence": 2.0}),
    Row("Ctrl-C while evidence is taken kills",
        "1 end 1 7; 1.5 SIGINT; 1.55 end 0 KILL; 1.55 empty; 2 taken",
        "1 begin;1 evidence;1.5 elsewhere;1.5 KILL",
        "failed", 7, 1, {"evidence": 2.0}),
    # Signals to the launcher.
    Row("SIGTERM", "1 SIGTERM; 2 end 0 TERM; 2 end 1 TERM; 2 empty", "1 begin;1 TERM", "signal", 143),
    Row("SIGINT is followed by SIGTERM", "1 SIGINT; 4 empty", "1 begin;1 INT;2.33333 TERM", "signal", 130),
    Row("SIGHUP", "1 SIGHUP; 1.1 empty", "1 begin;1 HUP", "signal", 129),
    Row("a failure and SIGTERM in the same millisecond",
        "1 end 1 7 0.9999; 1 SIGTERM; 2 end 0 TERM; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("SIGTERM and a failure in the same millisecond",
        "1 SIGTERM; 1 end 1 7 0.9999; 2 end 0 TERM; 2 empty", "1 begin;1 TERM", "signal", 143),
    Row("a second SIGINT",
        "1 SIGINT; 1.5 SIGINT; 1.55 empty", "1 begin;1 INT;1.5 elsewhere;1.5 KILL", "signal", 130),
    Row("a second SIGINT at once is the same Ctrl-C",
        "1 SIGINT; 1.1 SIGINT; 1.15 empty", "1 begin;1 INT", "signal", 130),
    Row("a second SIGTERM",
        "1 SIGTERM; 2.5 SIGTERM; 2.55 empty", "1 begin;1 TERM;2.5 elsewhere;2.5 KILL", "signal", 143),
    Row("a second SIGTERM too early", "1 SIGTERM; 1.9 SIGTERM; 1.95 empty", "1 begin;1 TERM", "signal", 143),
    Row("SIGTERM after SIGINT",
        "1 SIGINT; 2.1 SIGTERM; 2.15 empty", "1 begin;1 INT;2.1 elsewhere;2.1 KILL", "signal", 130),
    Row("SIGTERM in the grace time of a failure",
        "1 end 1 7; 3 SIGTERM; 3.5 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("SIGINT in the grace time of a failure",
        "1 end 1 7; 3 SIGINT; 3.05 empty", "1 begin;1 TERM;3 elsewhere;3 KILL", "failed", 7, 1),
    Row("a second SIGHUP", "1 SIGHUP; 3 SIGHUP; 3.05 empty", "1 begin;1 HUP;2.33333 TERM", "signal", 129),
    Row("SIGINT when all is over", WELL + "; 1 SIGINT", "", "ended", 0),
    # Other causes.
    Row("timeout", "1 timeout; 2 empty", "1 begin;1 TERM", "timeout", 124),
    Row("timeout 0", "0 timeout; 0 timeout; 1 empty", "0 begin;0 TERM", "timeout", 124),
    Row("a failure after the timeout", "1 timeout; 1 end 1 7; 2 empty", "1 begin;1 TERM", "timeout", 124),
    Row("timeout after a failure", "1 end 1 7; 1 timeout; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("the disk is full", "1 full; 2 end 0 TERM; 2 empty", "1 begin;1 TERM", "log-error", 125),
    Row("the keeper is killed", "1 lost", "1 begin;1 give-up", "keeper", 137),
    Row("the keeper fails", "1 lost Traceback", "1 begin;1 give-up", "keeper", 137),
    Row("the keeper is killed in the grace time",
        "1 end 1 7; 2 lost", "1 begin;1 TERM;2 give-up", "failed", 7, 1),
    Row("the keeper ends after the job", WELL + "; 1 lost", "", "ended", 0),
    Row("processes survive SIGKILL",
        "1 kill; 7 lost", f"1 begin;{FIVE_SECONDS_OF_SIGKILL};6 give-up", "signal", 137),
    # Other hosts.
    Row("a rank fails elsewhere",
        "1 remote failed; 2 end 0 TERM; 2 end 1 TERM; 2 empty", "1 begin;1 TERM", "failed", 9),
    Row("a host is lost", "1 remote host; 2 empty", "1 begin;1 TERM", "host", 137),
    Row("Ctrl-C on another host", "1 remote signal; 2 empty", "1 begin;1 INT", "signal", 130),
    Row("a rank fails elsewhere after one here",
        "1 end 1 7; 2 remote failed; 2 empty", "1 begin;1 TERM", "failed", 7, 1),
    Row("the hosts agree on another cause",
        "1 end 1 7; 2 adopt failed; 2 empty", "1 begin;1 TERM", "failed", 9),
    Row("the hosts agree on a lost one", "1 end 1 7; 2 adopt host; 3 empty", "1 begin;1 TERM", "host", 137),
    Row("the hosts agree before the first failure is complete",
        "1 failing 0 8; 1 adopt failed; 2 end 0 8; 2 empty", "1 begin;1 TERM", "failed", 9),
    Row("the hosts agree on a cause", "1 adopt host; 2 empty", "1 begin;1 TERM", "host", 137),
    Row("an own timeout decides the own exit code",
        "1 timeout; 2 adopt failed; 3 empty", "1 begin;1 TERM", "timeout", 124),
    Row("another host asks for SIGKILL",
        "1 remote failed; 2 kill; 2.05 empty", "1 begin;1 TERM;2 KILL", "failed", 9),
    Row("SIGKILL on request is not a success",
        "1 kill; 1.05 end 0 KILL; 1.05 empty", "1 begin;1 KILL", "signal", 137),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_decisions(row: Row) -> None:
    job = Job(**row.options)
    job.play(row.script)

    outcome = job.state.outcome(job.now)
    first = None if outcome.first_failure is None else outcome.first_failure.process.rank
    assert ";".join(job.decided) == row.decided
    assert (outcome.reason, outcome.exit_code, first) == (row.reason, row.code, row.first)
    assert job.state.is_over


def test_a_process_that_ends_after_the_end_has_begun_was_terminated() -> None:
    job = Job(3)
    job.play("1 end 1 7; 1.5 end 0 8 0.99; 2 end 2 TERM; 2 empty")

    terminated = {end.process.rank: end.was_terminated for end in job.state.ends}
    assert terminated == {1: False, 0: False, 2: True}


def test_a_failure_that_had_begun_before_was_not_terminated() -> None:
    job = Job(3)
    job.play("1 failing 0 8; 1 end 1 7; 2 end 0 8; 2 end 2 TERM; 2 empty")

    assert {end.process.rank: end.was_terminated for end in job.state.ends} == {0: False, 1: False, 2: True}


@pytest.mark.parametrize("cause", ["remote failed", "timeout", "SIGTERM"])
def test_a_failure_that_begins_after_another_end_of_the_job_was_terminated(cause: str) -> None:
    job = Job()
    job.play(f"1 {cause}; 1.5 failing 0 8; 2 end 0 8; 2 end 1 TERM; 2 empty")

    assert [end.was_terminated for end in job.state.ends] == [True, True]


@pytest.mark.parametrize(
    ("part", "number", "detail"),
    [
        (keeper_protocol.LOG, errno.ELOOP, "cannot write x.log: it is a symbolic link"),
        (keeper_protocol.FORK, errno.EAGAIN, "cannot start rank 0: no more processes can be started"),
        (keeper_protocol.DIRECTORY, errno.ENOENT, "cannot enter the working directory: No such file"),
    ],
)
def test_a_process_that_cannot_start_is_refused_with_the_reason(part: int, number: int, detail: str) -> None:
    job = Job()
    job.event(keeper_protocol.CANNOT_RUN, 0, number, extra=part)

    assert job.state.outcome(0.0).detail.startswith(detail)


def test_an_end_is_recorded_in_seconds_and_kibibytes() -> None:
    state = JobState([end_of(0)], grace=4.0, scheduler_wait=1.0, now=0.0)
    state.apply(Event(keeper_protocol.STARTED, 0, 100, 0, 1_500_000_000), 1.5)
    state.apply(Event(keeper_protocol.ENDED, 0, 100, 0, 4_000_000_000, cpu=2_250_000_000, extra=4096), 4.0)

    end = state.ends[0]
    assert (end.started, end.ended, end.cpu, end.peak) == (1.5, 4.0, 2.25, 4096)


def test_what_a_state_tells_of_its_job_changes_with_the_events() -> None:
    job = Job(scheduler=True)

    def told() -> tuple[bool, bool, bool, bool]:
        state = job.state
        return state.ranks_ended_well, state.is_ending, state.takes_evidence, state.is_over

    assert told() == (False, False, False, False)
    job.play("0 start 0; 0 start 2; 0.5 start 1; 1 end 0 0")
    assert job.state.running == [job.state.ends[1], job.state.ends[2]]
    job.play("1 end 1 0")
    assert told() == (True, False, False, False)
    assert job.state.running == [job.state.ends[2]]
    job.play("2.5 end 2 0")
    assert told() == (True, True, False, False)
    job.play("2.5 empty")
    assert told() == (True, True, False, True)
    assert job.state.timer(KILL, 3.0) == []


def test_a_process_that_has_not_been_started_does_not_run() -> None:
    job = Job()
    job.play("0 start 1")

    assert job.state.running == [job.state.ends[1]]


def test_a_job_without_settings_takes_no_evidence_and_adds_no_grace() -> None:
    state = JobState([end_of(0)], grace=4.0, scheduler_wait=1.0, now=10.0)

    assert state.end("timeout", now=12.5) == [Step.BEGIN_END, Signal(signal.SIGTERM), SetTimer(KILL, 4.0)]
    assert (state.outcome(12.5).duration, state.outcome(12.5).signal) == (2.5, 0)
    state.evidence_timeout = 2.0
    assert state.longest_end == 6.0


@pytest.mark.parametrize("script", ["1 end 1 7; 2 empty", "1 failing 1 7; 1.5 end 1 7; 2 empty"])
def test_a_full_disk_is_to_blame_for_the_failure_that_it_caused(script: str) -> None:
    job = Job()
    job.on_begin = lambda: job.state.blame_logs("the disk is full")
    job.play(script)

    outcome = job.state.outcome(2.0)
    assert (outcome.reason, outcome.exit_code, outcome.detail) == ("log-error", 125, "the disk is full")
    assert outcome.first_failure is None


def test_a_rank_is_to_blame_for_a_refusal_or_a_lost_keeper_only() -> None:
    for script, blamed in (("1 lost", True), ("0 cannot 1 1; 1 empty", True), ("1 timeout; 2 lost", False)):
        job = Job()
        job.play(script)
        for end in job.state.ends:
            end.status = signal.SIGKILL
            job.state.blame_rank(end)

        assert job.state.first_failure is (job.state.ends[0] if blamed else None)
        assert job.state.reason == ("failed" if blamed else "timeout")


def test_an_observer_may_know_the_cause_of_an_end() -> None:
    """The engine that has ended was killed with its host: that is the cause, not the engine's exit code."""
    job = Job(1)
    job.before_judging = lambda _: job.act(job.state.end_for(REMOTE["host"], job.now))
    job.play("1 end 0 1; 1 empty")

    assert job.state.outcome(1.0).reason == "host"
    assert job.decided == ["1 begin", "1 TERM"]


def test_an_engine_may_send_sigterm_more_than_once() -> None:
    job = Job()
    job.state.second_sigterm_kills = False
    job.play("1 SIGTERM; 3 SIGTERM; 4 SIGINT; 4.05 empty")

    assert job.decided == ["1 begin", "1 TERM", "4 elsewhere", "4 KILL"]
    assert job.said == ["SIGTERM: ending the job within 4 s; another Ctrl-C kills it at once"]


@pytest.mark.parametrize("script", ["1 lost", WELL + "; 1 lost Traceback", WELL + "; 1 lost"])
def test_a_keeper_without_a_traceback_or_after_the_job_is_not_reported(script: str) -> None:
    job = Job()
    job.play(script)

    assert (job.said, job.state.detail) == ([], "")


def test_a_keeper_that_fails_after_the_end_has_begun_keeps_the_detail() -> None:
    job = Job()
    job.play("1 full; 2 lost Traceback")

    assert (len(job.said), job.state.detail) == (1, "full")


def test_a_keeper_that_has_failed_is_reported_with_its_traceback() -> None:
    job = Job()
    job.play("1 lost Traceback (most recent call last)")

    assert job.said[0].endswith("this is a bug in hccl-tools:\nTraceback (most recent call last)")
    assert "keeper process failed" in job.state.outcome(1.0).detail


class Fate(NamedTuple):
    """When a process ends by itself and with what; how long it takes after SIGTERM and SIGKILL."""

    ends_at: float
    status: int
    after_term: float
    after_kill: float


NEVER = 1e6
TIMES = st.sampled_from([0.0, 0.05, 0.5, 1.0, 1.0001, 3.0, 8.0])
FATES = st.builds(
    Fate, TIMES | st.just(NEVER), st.sampled_from([0, 0, 7 << 8, 255 << 8, 11, 15]),
    TIMES | st.just(NEVER), st.sampled_from([0.0, 0.05, 0.3, NEVER]),
)  # fmt: skip
INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]
REQUESTS = ["timeout", "full", "kill", "lost", "remote failed", "remote host", "adopt failed", "adopt signal"]


class Kernel:
    """Ends processes as their fates say, and reports that to a job."""

    def __init__(self, job: Job, fates: list[Fate]) -> None:
        self.job, self.fates, self.left = job, fates, set(range(len(fates)))
        self.due = [(fate.ends_at, task, fate.status) for task, fate in enumerate(fates)]
        heapq.heapify(self.due)
        job.on_signal = self.deliver

    def deliver(self, number: int) -> None:
        for task in self.left:
            fate = self.fates[task]
            wait = fate.after_kill if number == signal.SIGKILL else fate.after_term
            heapq.heappush(self.due, (self.job.now + wait, task, int(number)))

    def run(self, until: float) -> None:
        """Let processes end, and timers with them, until a time or the end of the job."""
        while self.due and not self.job.state.is_over:
            timers = min(self.job.timers.values(), default=NEVER)
            time, task, status = self.due[0]
            if min(time, timers) > until:
                break
            if timers < time:
                self.job.advance(timers)
                continue
            heapq.heappop(self.due)
            if task in self.left and time < NEVER:
                self.left.remove(task)
                self.job.advance(time)
                self.job.event(keeper_protocol.ENDED, task, status)
                if not self.left:
                    self.job.event(keeper_protocol.EMPTY)
        self.job.advance(until)


@given(
    fates=st.lists(FATES, min_size=1, max_size=4),
    scheduler=st.booleans(),
    grace=st.sampled_from([0.0, 0.5, 4.0]),
    requests=st.lists(st.tuples(TIMES, st.sampled_from(INTERRUPTS + REQUESTS)), max_size=4),
)
def test_every_order_of_events(
    fates: list[Fate], scheduler: bool, grace: float, requests: list[tuple[float, str]]
) -> None:
    scheduler = scheduler and len(fates) > 1
    job = Job(len(fates) - scheduler, scheduler=scheduler, grace=grace)
    kernel = Kernel(job, fates)
    for time, request in [*sorted(requests), (30.0, "timeout")]:
        kernel.run(time)
        if not job.state.is_over:
            job.play(f"{time} {request}")
    kernel.run(60.0)

    outcome = job.state.outcome(job.now)
    assert job.state.is_over
    assert 0 <= outcome.exit_code <= 255
    failed = [end for end in outcome.ends if end.process.rank >= 0 and end.status]
    if any(end.was_terminated is False for end in failed):
        assert outcome.exit_code != 0
    check_grace(job, grace, [request for _, request in requests])


def check_grace(job: Job, grace: float, requests: list[str]) -> None:
    """SIGKILL comes after the grace time, unless a repeated signal or another host asks for it."""
    times = {what: float(time) for time, what in reversed([line.split() for line in job.decided])}
    if "KILL" in times and "elsewhere" not in times and "kill" not in requests:
        assert times["KILL"] >= times["begin"] + grace - 1e-6
