"""Telling how a job ended: first where nobody has to be waited for, last on the terminal.

Whoever reads our output may have stopped to (``less``, Ctrl-S, a pipe to a program that hangs). The job has
ended all the same: its report is written, its locks are free, and ``--notify`` is called.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.logs.follower import Followers
from hccl_tools.launch.processes.signals import ENDING
from hccl_tools.launch.report import report
from hccl_tools.launch.report.oom import kills
from hccl_tools.launch.runs import directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.logs.terminal import Console
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.processes.signals import Signals
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.launch.supervise.options import Supervision

#: Seconds that a reader gets to take the end of the logs before something else is done meanwhile.
_READER = 1.0


class Telling:
    """What is shown of a job and said about its end; ``followers`` are its logs, over all its restarts."""

    def __init__(self, run_dir: str, options: Supervision, console: Console, *, several: bool) -> None:
        self._run_dir, self._options, self._console = run_dir, options, console
        self._oom_kills = kills()
        self._told: Outcome | None = None
        self._attempts: list[dict[str, Any]] = []
        self._began = time.monotonic()
        self.followers = Followers(
            console.out,
            style=options.log_style,
            several=several,
            color=console.color,
            hidden=options.hidden,
            tell=console.say,
        )

    def first_failure(self, end: RankEnd) -> dict[str, Any]:
        """The report's part on the rank that failed first."""
        return report.first_failure(end, killed_by_oom=kills().since(self._oom_kills))

    def failed(self, outcome: Outcome) -> None:
        """Tell of a failure that need not be the end."""
        self._show_rest(_READER)
        made = self._report(outcome)
        self._console.say(report.text(made))
        self._told, self._attempts = outcome, made["attempts"]

    def interrupted(self, attempt: Attempt) -> None:
        """Write a report as soon as the launcher is asked to end: a batch system may not let it finish."""
        if attempt.state.reason == "signal":
            report.write(self._report(attempt.outcome()), f"{self._run_dir}/report.json")

    def end(self, outcome: Outcome, signals: Signals, locks: Sequence[int] = ()) -> None:
        """Write the report, close the locks; if the job did not end well, pass it on, print it, judge."""
        console, options = self._console, self._options
        made = self._report(outcome)
        path = f"{self._run_dir}/report.json"
        if unwritten := report.write(made, path):
            console.say(f"cannot write {path}: {unwritten}")
            directory.note_end(self._run_dir, outcome.exit_code, outcome.reason)
        for descriptor in locks:
            if descriptor >= 0:
                os.close(descriptor)
        failed = outcome.exit_code != 0 and options.reports
        told = not failed or outcome is self._told
        if self._show_rest(_READER, signals) and not told:
            told = True
            console.say(report.text(made, unwritten))
        if failed and options.watch.notify and (why := report.notify(made, options.watch.notify, signals)):
            console.say(f"--notify: {why}")
        self._show_rest(None, signals)
        if not told:
            console.say(report.text(made, unwritten))
        if failed:
            console.say(report.verdict(made))
        self._show_rest(None, signals)
        self.followers.close()

    def _report(self, outcome: Outcome) -> dict[str, Any]:
        return report.make(
            outcome,
            run_dir=self._run_dir,
            killed_by_oom=kills().since(self._oom_kills),
            earlier=self._attempts[:-1] if outcome is self._told else self._attempts,
            duration=time.monotonic() - self._began,
        )

    def _show_rest(self, seconds: float | None, signals: Signals | None = None) -> bool:
        """Show what is left of the logs of ranks that have ended; whether the reader has taken all in time.

        Whoever interrupts meanwhile does not want to wait for the reader any more: without ``signals`` that
        is for somebody else to see.
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
