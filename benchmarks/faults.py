"""Break jobs at random and see what is left: ``python -m benchmarks.faults [--trials N] [--seed S]``.

Each trial starts 2 to 16 ranks under a launcher and breaks something at a random time: once all run a random
rank or the launcher itself, or the launcher while it starts. Ours also loses its keeper and its watcher, two
of the three within 20 ms. Then four questions. Is a process of the job left 2 s after the launcher's end? Did
that come in time? Is the exit code the right one? Is the first cause named?
mpirun, torchrun and msrun get the same faults where they are installed, in fewer trials: one takes seconds.

``--all-guards N`` measures what is left when launcher, keeper and watcher are all killed, N times per gap.
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

from benchmarks.fault_trials import ALL_GUARDS, EARLY_SIGNALS, FAULTS, GUARD_FAULTS, Trial, draw
from benchmarks.launchers import LAUNCHERS
from benchmarks.measuring import plain_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.launchers import Launcher

MARK = "HCCL_TOOLS_FAULT_TRIAL"
RANK_PROGRAM = Path(__file__).with_name("fault_rank.py")
#: Seconds: for the ranks to end by themselves, for what is left after that, for our launcher to end, for any
#: launcher to come up or to end (torchrun gives ranks that do not listen 30 s).
GRACE, LEFT, LATE, LONGEST = 1.0, 2.0, 5.0, 60.0
#: Milliseconds from the first to the last of three kills.
GAPS = (0, 1, 2, 5, 10, 20)


@dataclass
class Tally:
    """What has been counted for one launcher."""

    trials: int = 0
    left: int = 0
    wrong_code: int = 0
    wrong_cause: int = 0
    hung: int = 0
    late: int = 0
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)


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

    def guards(self) -> dict[str, int]:
        """The keeper and the watcher by name."""
        found = {}
        for pid in self.living():
            with suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                found[name.removeprefix("hccl-")] = pid
        return found

    def break_launcher(self) -> None:
        """Send the trial's signals, the gap between the first and the last."""
        trial = self.trial
        pids = {} if trial.fault in EARLY_SIGNALS else self.guards()
        pause = trial.gap / max(1, len(trial.signals) - 1)
        time.sleep(trial.delay)
        for number, (name, signal_number) in enumerate(trial.signals):
            if number:
                time.sleep(pause)
            if name == "launcher":
                self.process.send_signal(signal_number)
            elif name in pids:
                with suppress(ProcessLookupError):
                    os.kill(pids[name], signal_number)

    def judge(self, tally: Tally) -> list[str]:
        """Wait for the end and count what is wrong with it."""
        trial = self.trial
        if (trial.fault in EARLY_SIGNALS or wait_until(self.all_up, LONGEST)) and trial.from_launcher:
            self.break_launcher()
        began = time.monotonic()
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            tally.hung += 1
            return ["hung"]
        tally.seconds.append(time.monotonic() - began)
        problems = []
        if self.launcher.ours and tally.seconds[-1] > LATE:
            tally.late += 1
            problems.append(f"ended after {tally.seconds[-1]:.1f} s")
        if not wait_until(lambda: not self.living(), LEFT):
            tally.left += 1
            problems.append("left processes")
        if code not in trial.right_codes:
            tally.wrong_code += 1
            problems.append(f"code {code} instead of {' or '.join(map(str, trial.right_codes))}")
        blamed = self.launcher.blames(self.folder)
        if not trial.from_launcher and blamed != trial.culprit:
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


def run(launcher: Launcher, trial: Trial, folder: Path, tally: Tally, *, tell: bool = True) -> None:
    """Carry out one trial and count what came of it."""
    experiment = Experiment(launcher, trial, folder)
    tally.trials += 1
    tally.faults[trial.fault] += 1
    try:
        if problems := experiment.judge(tally):
            tally.failed[trial.fault] += 1
            if launcher.ours and tell:
                said = (folder / "output").read_text()
                print(f"  {trial}: {', '.join(problems)}\n{said}", file=sys.stderr)
    finally:
        experiment.clean_up()


def mount_small_disk(folder: Path) -> bool:
    """Put a file system of 8 MiB there, for the fault ``disk``; only root can."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


def campaign(launcher: Launcher, trials: int, seed: int, only: tuple[str, ...]) -> Tally:
    """Run so many random trials of one launcher, of these faults or of all."""
    generator, tally = random.Random(seed), Tally()  # noqa: S311  (repeatable, not secret)
    base = Path(mkdtemp(prefix="hccl-tools-faults-"))
    disk = mount_small_disk(base / "disk")
    every = (*FAULTS, *GUARD_FAULTS) if launcher.ours else FAULTS
    faults = tuple(fault for fault in every if fault in only or (not only and (disk or fault != "disk")))
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
        f" {tally.hung:>6} {tally.late:>6} {worst:>9.2f}"
    )


def all_guards(trials: int) -> None:
    """Kill launcher, keeper and watcher, so often per gap, and print after which gaps something is left."""
    print("\nlauncher, keeper and watcher killed: ms from the first to the last, trials, with processes left")
    base = Path(mkdtemp(prefix="hccl-tools-faults-"))
    for gap in GAPS:
        tally = Tally()
        for number in range(trials):
            (folder := base / f"{gap}-{number}").mkdir()
            trial = Trial(next(iter(ALL_GUARDS)), 8, 0, 0, 0.0, gap / 1000)
            run(LAUNCHERS[0], trial, folder, tally, tell=False)
        print(f"{gap:>6} {trials:>6} {tally.left:>6}", flush=True)
    shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    """Run the campaigns and print the table; 1 if ours failed a trial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=300, help="for hccl-tools (300)")
    parser.add_argument("--peer-trials", type=int, default=40, help="for each other launcher (40)")
    parser.add_argument("--engine-trials", type=int, default=40, help="for hccl-tools by mpirun (40)")
    parser.add_argument("--faults", default="", metavar="LIST", help="only these, comma-separated")
    parser.add_argument("--all-guards", type=int, default=0, metavar="N", help="per gap, see above (0)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="to repeat a campaign")
    options = parser.parse_args()
    print(f"seed {options.seed}; grace {GRACE:g} s; worst: seconds from the fault to the launcher's end")
    heads = f"{'left over':>10} {'wrong code':>11} {'wrong cause':>12} {'hung':>6} {'late':>6} {'worst':>9}"
    print(f"{'launcher':<12} trials {heads}")
    only = tuple(filter(None, options.faults.split(",")))
    good = True
    for launcher in LAUNCHERS:
        trials = options.engine_trials if launcher.ours else options.peer_trials
        trials = options.trials if launcher is LAUNCHERS[0] else trials
        if not launcher.is_here() or not trials:
            print(f"{launcher.name:<12} {'not asked for' if launcher.is_here() else 'is not installed'}")
            continue
        tally = campaign(launcher, trials, options.seed, only)
        print(line(launcher.name, tally), dict(tally.failed) or "", flush=True)
        print("  " + ", ".join(f"{fault} {count}" for fault, count in sorted(tally.faults.items())))
        good = good and not (launcher.ours and tally.failed)
    if options.all_guards:
        all_guards(options.all_guards)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
