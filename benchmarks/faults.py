"""Break jobs at random and see what is left: ``python -m benchmarks.faults [--trials N] [--seed S]``.

Each trial starts 2 to 16 ranks under a launcher and, once all run, breaks something at a random time: a
random rank, or the launcher itself. Then three questions. Is a process of the job left 2 s after the
launcher's end (which is due within the grace time)? Is the exit code the right one? Is the first cause named?
mpirun, torchrun and msrun get the same faults where they are installed, in fewer trials: one takes seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks.fault_trials import FAULTS, LAUNCHER_SIGNALS, draw
from benchmarks.launchers import LAUNCHERS
from benchmarks.measuring import plain_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.fault_trials import Trial
    from benchmarks.launchers import Launcher

MARK = "HCCL_TOOLS_FAULT_TRIAL"
RANK_PROGRAM = Path(__file__).with_name("fault_rank.py")
#: Seconds: for the ranks to end by themselves, for what is left after that, for the launcher to come up or to
#: end (torchrun gives ranks that do not listen 30 s).
GRACE, LEFT, LONGEST = 1.0, 2.0, 60.0


@dataclass
class Tally:
    """What has been counted for one launcher."""

    trials: int = 0
    left: int = 0
    wrong_code: int = 0
    wrong_cause: int = 0
    hung: int = 0
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Experiment:
    """One trial under one launcher, in a folder of its own."""

    def __init__(self, launcher: Launcher, trial: Trial, folder: Path) -> None:
        self.launcher, self.trial, self.folder = launcher, trial, folder
        self.mark = uuid.uuid4().hex
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the launcher and through it the ranks."""
        trial = self.trial
        environment = {
            **plain_environment(),
            MARK: self.mark,
            "FAULT": trial.fault,
            "FAULT_RANK": str(trial.culprit),
            "FAULT_CODE": str(trial.code),
            "FAULT_DELAY": str(trial.delay),
            "FAULT_FOLDER": str(self.folder),
            "FAULT_RANKS": str(trial.ranks),
        }
        with (self.folder / "output").open("wb") as stream:
            return subprocess.Popen(
                self.launcher.command(trial.ranks, str(RANK_PROGRAM), self.folder, GRACE),
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def living(self) -> list[int]:
        """The processes of the trial that have not ended."""
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, IndexError):
                mine = f"{MARK}={self.mark}".encode()
                if folder.name.isdigit() and mine in (folder / "environ").read_bytes():
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                    found += [int(folder.name)] * (state not in "ZX")
        return found

    def all_up(self) -> bool:
        """Whether every rank runs, or the launcher has ended."""
        return len(list(self.folder.glob("up_*"))) >= self.trial.ranks or self.process.poll() is not None

    def judge(self, tally: Tally) -> list[str]:
        """Wait for the end and count what is wrong with it."""
        trial, from_launcher = self.trial, self.trial.fault in LAUNCHER_SIGNALS
        if wait_until(self.all_up, LONGEST) and from_launcher:
            time.sleep(trial.delay)
            self.process.send_signal(LAUNCHER_SIGNALS[trial.fault])
        began = time.monotonic()
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            tally.hung += 1
            return ["hung"]
        tally.seconds.append(time.monotonic() - began)
        problems = []
        if not wait_until(lambda: not self.living(), LEFT):
            tally.left += 1
            problems.append("left processes")
        if code != trial.right_code:
            tally.wrong_code += 1
            problems.append(f"code {code} instead of {trial.right_code}")
        blamed = self.launcher.blames(self.folder)
        if not from_launcher and blamed != trial.culprit:
            tally.wrong_cause += 1
            problems.append(f"blamed {blamed} instead of {trial.culprit}")
        return problems

    def clean_up(self) -> None:
        """Kill what is left."""
        self.process.kill()
        self.process.wait()
        while found := self.living():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def run(launcher: Launcher, trial: Trial, folder: Path, tally: Tally) -> None:
    """Carry out one trial and count what came of it."""
    experiment = Experiment(launcher, trial, folder)
    tally.trials += 1
    try:
        if problems := experiment.judge(tally):
            tally.failed[trial.fault] += 1
            if launcher is LAUNCHERS[0]:
                said = (folder / "output").read_text()
                print(f"  {trial}: {', '.join(problems)}\n{said}", file=sys.stderr)
    finally:
        experiment.clean_up()


def mount_small_disk(folder: Path) -> bool:
    """Put a file system of 8 MiB there, for the fault ``disk``; only root can."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


def campaign(launcher: Launcher, trials: int, seed: int) -> Tally:
    """Run so many random trials of one launcher."""
    generator, tally = random.Random(seed), Tally()  # noqa: S311  (repeatable, not secret)
    base = Path(mkdtemp(prefix="hccl-tools-faults-"))
    disk = mount_small_disk(base / "disk")
    faults = FAULTS if disk else tuple(fault for fault in FAULTS if fault != "disk")
    try:
        for number in range(trials):
            trial = draw(generator, faults)
            folder, logs = base / str(number), base / "disk" / str(number)
            folder.mkdir()
            if trial.fault == "disk":
                logs.mkdir()
                (folder / "log").symlink_to(logs)
            run(launcher, trial, folder, tally)
            shutil.rmtree(folder)
            shutil.rmtree(logs, ignore_errors=True)
    finally:
        if disk:
            subprocess.run(["umount", str(base / "disk")], check=False)
        shutil.rmtree(base, ignore_errors=True)
    return tally


def line(name: str, tally: Tally) -> str:
    """One row of the table."""
    worst = max(tally.seconds, default=0.0)
    return (
        f"{name:<12} {tally.trials:>6} {tally.left:>10} {tally.wrong_code:>11} {tally.wrong_cause:>12}"
        f" {tally.hung:>6} {worst:>9.2f}"
    )


def main() -> int:
    """Run the campaigns and print the table; 1 if ours failed a trial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=300, help="for hccl-tools (300)")
    parser.add_argument("--peer-trials", type=int, default=40, help="for each other launcher (40)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="to repeat a campaign")
    options = parser.parse_args()
    print(f"seed {options.seed}; grace {GRACE:g} s; worst: seconds from the fault to the launcher's end")
    heads = ("left over", "wrong code", "wrong cause", "hung", "worst")
    print(f"{'launcher':<12} trials {heads[0]:>10} {heads[1]:>11} {heads[2]:>12} {heads[3]:>6} {heads[4]:>9}")
    good = True
    for launcher in LAUNCHERS:
        ours = launcher is LAUNCHERS[0]
        trials = options.trials if ours else options.peer_trials
        if not launcher.is_here() or not trials:
            print(f"{launcher.name:<12} {'not asked for' if launcher.is_here() else 'is not installed'}")
            continue
        tally = campaign(launcher, trials, options.seed)
        print(line(launcher.name, tally), dict(tally.failed) or "", flush=True)
        good = good and not (ours and tally.failed)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
