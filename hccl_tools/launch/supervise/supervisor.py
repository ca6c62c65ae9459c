"""Run this host's part of a job over all its restarts, and report how it ended."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Literal

from hccl_tools import load_part
from hccl_tools.errors import HcclToolsError
from hccl_tools.launch.logs.terminal import Console
from hccl_tools.launch.model.outcome import RESTART_CAUSES, Outcome, RankEnd
from hccl_tools.launch.model.variables import of_restart
from hccl_tools.launch.supervise.attempt import Attempt
from hccl_tools.launch.supervise.options import DEFAULTS, Supervision
from hccl_tools.launch.supervise.reporter import Progress, Reporter
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import time_span
from hccl_tools.processes import keeper as keepers
from hccl_tools.processes import run_files
from hccl_tools.processes.keeper_protocol import Task
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.processes.signals import ENDING, Signals
from hccl_tools.programs.lookup import find_program
from hccl_tools.runs import names
from hccl_tools.runs.log_files import FULL_BYTES, LOW_BYTES, free_bytes, is_full

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hccl_tools.launch.model.outcome import Outcome, RestartCause
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.model.request import Watch
    from hccl_tools.launch.supervise.after_start import AfterStart
    from hccl_tools.processes.keeper import Keeper
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.evidence import EvidenceNote

_HOUR_SECONDS = 3600.0

#: When the watch for ``--hang-warn`` begins: in seconds, and as a part of the time after which it warns.
_FIRST_LOOK, _FIRST_PART = 1.0, 0.125
#: Seconds from one check of the disk to the next, with enough free space.
_SPACE_INTERVAL = 5.0
#: Seconds from one check of the disk to the next, with little free space.
_LOW_SPACE_INTERVAL = 0.5


def supervise(
    processes: Sequence[RankProcess],
    *,
    run_dir: str | Path,
    environment: Mapping[str, str],
    working_dir: str | Path,
    options: Supervision = DEFAULTS,
    keeper: Keeper | None = None,
    locks: Sequence[int] = (),
) -> Outcome:
    """Run the processes of this host until the job ends.

    The variables of each process are added to ``environment``. The descriptors ``locks`` (-1: no lock) are
    closed once the report is written. The function also prints the report and runs ``--notify``.
    """
    with Signals() as signals:
        host = HostSupervision(processes, run_dir, environment, working_dir, options)
        return host.run(keeper or keepers.current() or keepers.start(), signals, locks)


class HostSupervision:
    """Supervises this host's part of a job, over all its restarts."""

    def __init__(
        self,
        processes: Sequence[RankProcess],
        run_dir: str | Path,
        environment: Mapping[str, str],
        working_dir: str | Path,
        options: Supervision,
    ) -> None:
        self.processes, self.began = processes, time.monotonic()
        self.run_dir, self.working_dir = str(run_dir), str(working_dir)
        run_files.hold(self.run_dir)
        self.environment, self.options = environment, options
        self.restarts = Restarts(options.watch)
        self.console = Console(color=options.color, progress=options.progress, instead=options.stream)
        self.reporter = Reporter(
            self.run_dir, options, self.console, several=sum(map(self.is_shown, processes)) > 1
        )

    def run(self, keeper: Keeper, signals: Signals, locks: Sequence[int]) -> Outcome:
        """Start the processes, restart them after a failure if allowed, and report the end."""
        outcome = self.attempt(keeper, signals)
        while self.restarts.follows(outcome) and self.prepare_restart(outcome, signals):
            outcome = self.attempt(keeper, signals)
        keeper.close(wait=0.1 if outcome.stuck else 1.0)
        self.reporter.report_end(outcome, signals, locks)
        self.console.close()
        return outcome

    def prepare_restart(self, outcome: Outcome, signals: Signals) -> bool:
        """Report the end of a start, and prepare the next one; return whether it can begin."""
        watch, restarts = self.options.watch, self.restarts
        self.reporter.report_attempt(outcome)
        if why := restarts.refusal():
            return self.give_up(outcome, why)
        if watch.restart_delay:
            self.console.say(f"the ranks are started again in {time_span(watch.restart_delay, 1)}")
        if number := restarts.wait(signals):
            outcome.reason, outcome.signal = "signal", number
            outcome.first_failure = outcome.remote_cause = None
            return False
        if self.options.before_restart:
            try:
                following = self.options.before_restart(outcome, restarts.made + 1, signals)
            except HcclToolsError as error:
                return self.give_up(outcome, error.message, error.hint)
            self.processes = following.processes
            self.reporter.replaced += following.replaced
            for line in following.news:
                self.console.say(line)
        restarts.count(outcome)
        of = f" of {watch.max_restarts}" if restarts.made == restarts.counted else ""
        self.console.say(f"restart {restarts.made}{of}: starting all ranks again")
        return True

    def give_up(self, outcome: Outcome, why: str, hint: str | None = None) -> bool:
        """Report why there is no restart, and return false."""
        text = f"no restart: {why}" + (f"\nhint: {hint}" if hint else "")
        self.console.say(text)
        outcome.notes.append(text)
        return False

    def attempt(self, keeper: Keeper, signals: Signals) -> Outcome:
        """Start the processes once and wait until they have exited."""
        options, restart = self.options, self.restarts.made
        ends = [
            RankEnd(
                process, os.path.join(self.run_dir, names.generation(process.log, options.restart + restart))
            )
            for process in self.processes
        ]
        attempt = Attempt(
            ends,
            keeper=keeper,
            signals=signals,
            console=self.console,
            followers=self.reporter.followers,
            followed=lambda end: self.is_shown(end.process),
            grace=options.watch.grace,
            scheduler_wait=options.scheduler_wait,
        )
        # An engine sends SIGTERM more than once, which must not kill the ranks of a part of its job.
        attempt.state.second_sigterm_kills = options.reports
        self.watch(attempt)
        stdin = [index for index, end in enumerate(ends) if end.process.rank == options.stdin_rank]
        environment = of_restart(self.environment, options.restart + restart)
        keeper.start_tasks(self.tasks(ends, attempt.pipes), environment, self.working_dir, *stdin)
        peers = options.join_peers and options.join_peers(
            attempt,
            run_dir=self.run_dir,
            restart=restart,
            restarts_after=reasons(options.watch) if self.restarts.may_follow else frozenset(),
            first_failure=self.reporter.first_failure,
            hang_timeout=options.watch.hang_timeout,
        )
        outcome = attempt.run()
        if peers:
            outcome = peers.wait_for_peers(signals)
        outcome.restarts = restart
        if options.explain:
            options.explain(outcome)
        outcome.combine_hung()
        return outcome

    def is_shown(self, process: RankProcess) -> bool:
        """Return whether a process's log is followed on the terminal."""
        tail = self.options.tail
        return process.rank >= 0 and (tail == "all" or process.rank in tail)

    def watch(self, attempt: Attempt) -> None:
        """Add the observers and timers of an attempt."""
        options = self.options
        attempt.on_ending.append(lambda: self.reporter.report_interrupt(attempt))
        if options.watch.evidence_timeout > 0:
            attempt.state.evidence_timeout = options.watch.evidence_timeout
            attempt.take_evidence = partial(self.take_evidence, attempt)
        if options.on_attempt:
            options.on_attempt(attempt)
        LogSpace(attempt, self.run_dir, options.watch.on_log_error)
        if options.watch.timeout is not None:
            left = self.began + options.watch.timeout - time.monotonic()
            attempt.on_ending.append(lambda: self.announce_timeout(attempt))
            attempt.call_later("timeout", left, lambda: attempt.end("timeout"))
        if options.watch.early_exit_warn is not None:
            EarlyExit(attempt, options.watch.early_exit_warn)
        if options.watch.hang_timeout is not None:
            self.watch_for_hangs(attempt)
        elif (warn_after := options.watch.hang_warn) is not None:
            # Later, because most ranks start by then, and the watch is not loaded for the shortest jobs.
            first = min(_FIRST_LOOK, _FIRST_PART * warn_after)
            attempt.call_later("hang", first, partial(self.watch_for_hangs, attempt))
        if self.console.progress:
            Progress(attempt, options.count_ranks)

    def watch_for_hangs(self, attempt: Attempt) -> None:
        """Begin to measure what the ranks do."""
        _after_start().HangWatch(attempt, self.options, self.run_dir)

    def take_evidence(self, attempt: Attempt, done: Callable[[], None]) -> None:
        """Take evidence of what the ranks of this host do; ``done`` is called at its end."""

        def finish(note: EvidenceNote) -> None:
            attempt.state.evidence.append(note)
            done()

        own = self.options.engine_ranks
        ends = own.running(attempt) if own else [end for end in attempt.state.ends if end.process.rank >= 0]
        if not ends:
            done()
            return
        _after_start().Evidence(
            attempt,
            ends,
            run_dir=self.run_dir,
            restart=self.options.restart + self.restarts.made,
            records=self.options.watch.flight_recorder,
            done=finish,
        )

    def announce_timeout(self, attempt: Attempt) -> None:
        """Show a message if the job ends because it has exceeded its time limit."""
        if attempt.state.reason == "timeout" and attempt.state.remote_cause is None:
            limit, longest = self.options.watch.timeout, attempt.state.longest_end
            attempt.say(f"--timeout {limit:g} s exceeded: ending the job (at most {longest:g} s)")

    def tasks(self, ends: list[RankEnd], pipes: Mapping[int, tuple[str, str]]) -> list[Task]:
        """Return the tasks for the keeper; ``pipes`` as of ``Attempt``."""
        found: dict[tuple[str, str], str] = {}
        tasks = []
        for end in ends:
            process = end.process
            path = process.environment.get("PATH") or self.environment.get("PATH") or os.defpath
            key = (process.argv[0], path)
            if key not in found:
                found[key] = find_program(*key)
            cpus = tuple((self.options.cpus or {}).get(process.rank, ()))
            errors = process.errors and os.path.join(self.run_dir, process.errors)
            log, errors = pipes.get(process.rank, (end.log, errors))
            is_piped = process.rank in pipes
            tasks.append(Task(found[key], process.argv, process.environment, log, cpus, errors, is_piped))
        return tasks


def _after_start() -> type[AfterStart]:
    """Load what is needed only after the start of the ranks."""
    loaded: type[AfterStart] = load_part("launch.supervise.after_start").AfterStart
    return loaded


def cause_of(outcome: Outcome) -> RestartCause | None:
    """Return the cause of an early end as ``--restart-on`` names it; ``None`` if no restart can follow."""
    if outcome.stuck:
        return None
    return "host-lost" if outcome.is_host_lost else RESTART_CAUSES.get(outcome.reason)


def reasons(watch: Watch) -> frozenset[Reason]:
    """Return the reasons for an end on any host after which all hosts restart their ranks."""
    return frozenset(reason for reason, cause in RESTART_CAUSES.items() if cause in watch.restart_on)


class Restarts:
    """The restarts of one job.

    Attributes:
        made: The number of restarts so far; it numbers the logs.
        counted: The restarts that count for ``--max-restarts``. A start that began no rank on a spare host,
            which the next spare then replaces, does not count.
    """

    def __init__(self, watch: Watch, clock: Callable[[], float] = time.monotonic) -> None:
        self._watch, self._clock = watch, clock
        self._times: list[float] = []
        self.made, self.counted = 0, 0

    @property
    def may_follow(self) -> bool:
        """Whether ``--max-restarts`` allows another restart."""
        return self.counted < self._watch.max_restarts

    def follows(self, outcome: Outcome) -> bool:
        """Return whether a restart follows, unless its preparation fails."""
        if cause_of(outcome) not in self._watch.restart_on:
            return False
        return self.may_follow or self._is_free(outcome)

    def refusal(self) -> str:
        """Return why no restart may begin at this time, "" if one may."""
        most, now = self._watch.restarts_per_hour, self._clock()
        recent = [one for one in self._times if now - one < _HOUR_SECONDS]
        if most is None or len(recent) < most:
            return ""
        since = time_span(now - recent[0], 2)
        return f"--max-restarts-per-hour {most}: {len(recent)} in the last {since}"

    def count(self, outcome: Outcome) -> None:
        """Count the restart that follows an outcome."""
        if not self._is_free(outcome):
            self.counted += 1
        self.made += 1
        self._times.append(self._clock())

    def wait(self, signals: Signals) -> int:
        """Wait for ``--restart-delay``; return the signal that ended the wait, 0 without one."""
        deadline = time.monotonic() + self._watch.restart_delay
        while (left := deadline - time.monotonic()) > 0:
            wait_readable(left, signals)
            if number := next((one for one in signals.read() if one in ENDING), 0):
                return number
        return 0

    def _is_free(self, outcome: Outcome) -> bool:
        return self.made > 0 and outcome.lost_before_start


class EarlyExit:
    """Warns once if ranks have exited with 0 and others still run after ``after`` seconds."""

    def __init__(self, attempt: Attempt, after: float) -> None:
        self._attempt, self._after = attempt, after
        attempt.on_end.append(self._on_end)

    def _on_end(self, end: RankEnd) -> None:
        if end.status == 0 and end.process.rank >= 0 and len(self._good()) == 1:
            self._attempt.call_later("early exit", self._after, self._warn)

    def _good(self) -> list[RankEnd]:
        return [end for end in self._attempt.state.ends if end.status == 0 and end.process.rank >= 0]

    def _warn(self) -> None:
        running = [end.process.rank for end in self._attempt.state.running if end.process.rank >= 0]
        if not running:
            return
        good = self._good()
        first = min(end.ended for end in good)
        still, they = ("is still", "it") if len(running) == 1 else ("are still", "they")
        self._attempt.say(
            f"{rank_list(end.process.rank for end in good)} exited with code 0, but"
            f" {rank_list(running)} {still} running {_about(time.monotonic() - first)} later;"
            f" in a collective {they} would wait forever"
        )


def _about(duration: float) -> str:
    return f"{duration:.2g} s" if duration < 60 else time_span(duration, 2)


class LogSpace:
    """Warns if the disk of the run directory is nearly full; may end the job if it is full."""

    def __init__(self, attempt: Attempt, run_dir: str, on_error: Literal["warn", "stop"]) -> None:
        self._attempt, self._run_dir, self._on_error = attempt, run_dir, on_error
        self._full = f"the disk of {run_dir} is full: what the ranks write to their logs is lost"
        self._warned_low = self._warned_full = False
        attempt.on_ending.append(self._check_failure)
        self._check()

    def _check_failure(self) -> None:
        """Attribute the failure of a rank to a full disk that the next check would have detected."""
        attempt = self._attempt
        if attempt.state.reason != "failed" or not is_full(self._run_dir):
            return
        self._judge(0)
        if self._on_error == "stop":
            attempt.state.blame_logs(self._full)

    def _check(self) -> None:
        free = free_bytes(self._run_dir)
        if free is not None:
            self._judge(free)
        interval = _LOW_SPACE_INTERVAL if self._warned_low else _SPACE_INTERVAL
        self._attempt.call_later("space", interval, self._check)

    def _judge(self, free: int) -> None:
        if free >= LOW_BYTES:
            self._warned_low = self._warned_full = False
        elif free < FULL_BYTES and not self._warned_full:
            self._warned_low = self._warned_full = True
            self._attempt.say(self._full)
            if self._on_error == "stop":
                self._attempt.end("log-error", self._full)
        elif not self._warned_low:
            self._warned_low = True
            self._attempt.say(f"only {free / (1 << 20):.1f} MiB are left for the logs in {self._run_dir}")
