"""What both campaigns of fault trials share: starting a job, waiting for its end, counting what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import plain_environment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping

    from benchmarks import engine_trials, fault_trials

    Trial = engine_trials.Trial | fault_trials.Trial

RANK_PROGRAM = Path(__file__).with_name("fault_rank.py")
#: Seconds for the ranks to end by themselves.
GRACE = 1.0
#: Seconds after the launcher's end in which what is left may end.
LEFT = 2.0
#: Seconds for any launcher to come up or to end; torchrun gives ranks that do not listen 30 s.
LONGEST = 60.0
#: What is counted, in the order of the table's columns.
PROBLEMS = ("left over", "wrong code", "wrong cause", "hung", "late")


@dataclass
class Tally:
    """What has been counted for one launcher or place."""

    problems: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def print_row(self, name: str) -> None:
        """Print the row of the table, and below it how often each fault was tried."""
        counts = "".join(f"{self.problems[one]:>{len(one) + 2}}" for one in PROBLEMS)
        worst = max(self.seconds, default=0.0)
        print(f"{name:<13} {self.faults.total():>6}{counts} {worst:>8.2f}", dict(self.failed) or "")
        print(
            "  " + ", ".join(f"{fault} {count}" for fault, count in sorted(self.faults.items())), flush=True
        )


def arguments(parser: argparse.ArgumentParser, what: str) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """Add the options of every campaign, print the header; return all options and the faults to try."""
    parser.add_argument("--faults", default="", metavar="LIST", help="only these, comma-separated")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="to repeat a campaign")
    options = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Also under nohup, a trial can end a launcher by SIGHUP.
    print(f"seed {options.seed}; grace {GRACE:g} s; worst: seconds from the fault to the launcher's end")
    print(f"{what:<13} trials{''.join(f'  {one}' for one in PROBLEMS)}    worst", flush=True)
    return options, tuple(filter(None, options.faults.split(",")))


def asked_for(faults: Iterable[str], only: tuple[str, ...]) -> list[str]:
    """Return the faults that ``--faults`` asks for, all if it was not given; exit if there are none."""
    every = list(faults)
    found = [fault for fault in every if not only or fault in only]
    if not found:
        sys.exit(f"--faults {','.join(only)} names no fault; there are: {', '.join(every)}")
    return found


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class Experiment:
    """One trial in a folder of its own; subclasses start a job, break it and know what is right.

    Attributes:
        late: Seconds in which the launcher has to end.
        what: What is printed before a trial that failed; "" for nothing.
    """

    late = LONGEST
    what = ""

    def __init__(self, trial: Trial, folder: Path, ranks: int) -> None:
        self.folder, self.ranks = folder, ranks
        environment = {
            **plain_environment(),
            "FAULT": trial.fault,
            "FAULT_RANK": str(trial.culprit),
            "FAULT_CODE": str(trial.code),
            "FAULT_DELAY": str(trial.delay),
            "FAULT_FOLDER": str(folder),
            "FAULT_RANKS": str(ranks),
        }
        with (folder / "output").open("wb") as stream:
            self.process = self.start(environment, stream.fileno())

    def start(self, environment: Mapping[str, str], stream: int) -> subprocess.Popen[str]:
        """Start the launcher and through it the ranks; their output goes to ``stream``."""
        raise NotImplementedError

    def break_job(self) -> None:
        """Do what the trial wants done from outside."""
        raise NotImplementedError

    def living(self) -> list[int]:
        """Return the processes of the job that have not ended."""
        raise NotImplementedError

    def wrong(self, code: int) -> dict[str, str]:
        """Return what is wrong with the exit code and the named cause: ``PROBLEMS`` -> a description."""
        raise NotImplementedError

    @property
    def output(self) -> str:
        """What the launcher has printed."""
        return (self.folder / "output").read_text(errors="replace")

    def all_up(self) -> bool:
        """Whether every rank runs, or the launcher has ended."""
        return len(list(self.folder.glob("up_*"))) >= self.ranks or self.process.poll() is not None

    def judge(self, tally: Tally) -> dict[str, str]:
        """Wait for the end and return what is wrong with it."""
        self.break_job()
        began = time.monotonic()
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            return {"hung": "hung"}
        tally.seconds.append(time.monotonic() - began)
        found = {}
        if tally.seconds[-1] > self.late:
            found["late"] = f"ended after {tally.seconds[-1]:.1f} s"
        if not wait_until(lambda: not self.living(), LEFT):
            found["left over"] = f"left processes {self.living()}"
        return {**found, **self.wrong(code)}

    def carry_out(self, trial: Trial, tally: Tally) -> None:
        """See the trial to its end, count what came of it, and kill what is left."""
        tally.faults[trial.fault] += 1
        try:
            if problems := self.judge(tally):
                tally.problems.update(problems.keys())
                tally.failed[trial.fault] += 1
                if self.what:
                    print(
                        f"  {self.what}{trial}: {', '.join(problems.values())}\n{self.output}",
                        file=sys.stderr,
                    )
        finally:
            self.clean_up()

    def clean_up(self) -> None:
        """Kill what is left."""
        self.process.kill()
        self.process.wait()
        while found := self.living():
            for pid in found:
                kill(pid)
