"""Show a job to the user: a progress line while it runs, a report at its end.

The report has an order: files, locks and ``--notify`` first, the terminal last. The terminal
may block: the reader of the output may have stopped reading (``less``, Ctrl-S, a pipe).
"""

from __future__ import annotations

import os
import time
from signal import SIGINT
from typing import TYPE_CHECKING, Any

from hccl_tools.explain.brief import explained
from hccl_tools.launch.logs.follower import Followers
from hccl_tools.launch.report import report
from hccl_tools.launch.report.hints import kills
from hccl_tools.launch.supervise.options import RankCount
from hccl_tools.processes import run_files
from hccl_tools.processes.signals import ENDING
from hccl_tools.runs import directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.logs.terminal import Console
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.launch.supervise.options import Supervision
    from hccl_tools.processes.signals import Signals
    from hccl_tools.runs.job_report import AttemptReport, JobReport, RankFailure

#: Seconds for a reader to accept the end of the logs before the launcher continues.
_READER_TIMEOUT = 1.0
#: Seconds between two updates of the progress line.
_INTERVAL = 1.0
#: Seconds without output after which the line shows the time without output.
_QUIET = 10.0


class Reporter:
    """Reports one job over all its restarts; ``followers`` show its logs."""

    def __init__(self, run_dir: str, options: Supervision, console: Console, *, several: bool) -> None:
        self._run_dir, self._options, self._console = run_dir, options, console
        self._oom_kills = kills()
        self._reported: Outcome | None = None
        self._attempts: Sequence[AttemptReport] = ()
        #: The spare hosts that have taken the places of lost hosts.
        self.replaced: tuple[Mapping[str, Any], ...] = options.replaced
        self._began = time.monotonic()
        self.followers = Followers(
            console.out,
            style=options.log_style,
            several=several,
            color=console.color,
            hidden=options.hidden,
            notify=console.say,
        )

    def first_failure(self, end: RankEnd) -> RankFailure:
        """Return the report on the rank that failed first."""
        return report.first_failure(end, killed_by_oom=kills().since(self._oom_kills))

    def report_attempt(self, outcome: Outcome) -> None:
        """Report a failure after which the job may be restarted."""
        self._drain_logs(_READER_TIMEOUT)
        made = self._report(outcome)
        self._console.say(self._text(made, has_verdict=False), "error")
        self._reported, self._attempts = outcome, made.attempts

    def report_interrupt(self, attempt: Attempt) -> None:
        """Write a report as soon as the launcher is signalled: a batch system may soon kill the launcher."""
        if attempt.state.reason == "signal" and self._options.writes_report:
            report.write(self._report(attempt.outcome()), self._run_dir)

    def report_end(self, outcome: Outcome, signals: Signals, locks: Sequence[int] = ()) -> None:
        """Write report.json and release the locks; after a failure, run --notify and print the report."""
        console, options = self._console, self._options
        made = self._report(outcome)
        unwritten = report.write(made, self._run_dir) if options.writes_report else None
        if unwritten:
            console.say(f"cannot write {self._run_dir}/report.json: {unwritten}")
            directory.note_end(self._run_dir, outcome.exit_code, outcome.reason)
        for descriptor in locks:
            if descriptor >= 0:
                os.close(descriptor)
        failed = outcome.exit_code != 0 and options.reports
        printed = not failed or outcome is self._reported
        if self._drain_logs(_READER_TIMEOUT, signals) and not printed:
            printed = True
            console.say(self._text(made, unwritten), "error")
        if failed and options.watch.notify and (why := report.notify(made, options.watch.notify, signals)):
            console.say(f"--notify: {why}")
        self._drain_logs(None, signals)
        if not printed:
            console.say(self._text(made, unwritten), "error")
        if failed:
            hints = made.first_failure.hints if made.first_failure else ()
            # After Ctrl-C, what a rank wrote, even a crash at its start, follows from that.
            is_interrupted = outcome.reason == "signal" and outcome.signal == SIGINT
            if not is_interrupted and (said := explained(self._run_dir, hints)):
                console.say(said, "message")
            console.say(report.verdict(made), "error")
        self._drain_logs(None, signals)
        self.followers.close()

    def _text(self, made: JobReport, unwritten: str | None = None, *, has_verdict: bool = True) -> str:
        console = self._console
        above = self.followers.only_rank if console.out is console.err and console.out.is_terminal else None
        return report.text(made, unwritten, has_verdict=has_verdict, above=above)

    def _report(self, outcome: Outcome) -> JobReport:
        return report.make(
            outcome,
            run_dir=self._run_dir,
            killed_by_oom=kills().since(self._oom_kills),
            earlier=self._attempts[:-1] if outcome is self._reported else self._attempts,
            replaced=self.replaced,
            duration=time.monotonic() - self._began,
        )

    def _drain_logs(self, seconds: float | None, signals: Signals | None = None) -> bool:
        """Show the rest of the logs; return whether the reader has accepted all of it in time.

        An interrupt ends the wait; without ``signals`` the caller must check for interrupts.
        """
        console = self._console
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.followers.show() or console.waiting:
            if console.waiting:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                console.wait(signals.fileno() if signals else -1, left)
            if signals and ENDING & set(signals.read()):
                console.drop()
        return True


class Progress:
    """Redraws the progress line once a second, below all other output."""

    def __init__(self, attempt: Attempt, count_ranks: Callable[[], RankCount] | None = None) -> None:
        """``count_ranks`` counts the ranks of a job whose process here is an engine."""
        self._attempt, self._count_ranks = attempt, count_ranks or self._count_here
        attempt.call_later("progress", _INTERVAL, self._draw)

    def _draw(self) -> None:
        ranks = [end for end in self._attempt.state.ends if end.process.rank >= 0]
        running, number = self._count_ranks()
        minutes, seconds = divmod(int(self._attempt.age), 60)
        text = f"{running} of {number} ranks running, {minutes // 60}:{minutes % 60:02}:{seconds:02}"
        quiet = time.time() - max((_written(end.log) for end in ranks), default=0.0)
        if _QUIET < quiet < self._attempt.age:
            text += f", no output for {quiet:.0f} s"
        width = _terminal_width(self._attempt.console.err.fileno())
        self._attempt.console.err.show_status(text[: width - 1])
        self._attempt.call_later("progress", _INTERVAL, self._draw)

    def _count_here(self) -> RankCount:
        ranks = [end for end in self._attempt.state.ends if end.process.rank >= 0]
        return RankCount(sum(end.status is None for end in ranks), len(ranks))


def _written(path: str) -> float:
    about = run_files.status(path)
    return about.st_mtime if about else 0.0


def _terminal_width(descriptor: int) -> int:
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return 80
