"""Break jobs at random and see what is left: ``python -m benchmarks.faults [--trials N] [--seed S]``.

Each trial starts 2 to 16 ranks under a launcher and breaks something at a random time: once all run a random
rank or the launcher itself, or the launcher while it starts. Ours also loses its keeper and its watcher, two
of the three within 20 ms. Then four questions. Is a process of the job left 2 s after the launcher's end? Did
that come in time? Is the exit code the right one? Is the first cause named?
``--hosts 3`` breaks jobs of three hosts instead (see ``benchmarks/host_faults.py``), with ``--starts`` while
they start (``benchmarks/start_faults.py``); ``--hangs`` lets them hang (``benchmarks/hang_faults.py``).
With ``--spares`` jobs have two hosts, with the third in reserve (``benchmarks/spare_faults.py``).
mpirun, torchrun and msrun get the same faults where they are installed, in fewer trials: one takes seconds.

``--all-guards N`` measures what is left when launcher, keeper and watcher are all killed, N times per gap.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks import hang_faults, host_faults, spare_faults, start_faults
from benchmarks.fault_experiment import (
    GRACE,
    LONGEST,
    RANK_PROGRAM,
    Experiment,
    Tally,
    arguments,
    asked_for,
    kill,
    wait_until,
)
from benchmarks.fault_trials import ALL_GUARDS, EARLY_SIGNALS, FAULTS, GUARD_FAULTS, Trial, draw
from benchmarks.launchers import LAUNCHERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.launchers import Launcher

MARK = "HCCL_TOOLS_FAULT_TRIAL"
#: Seconds in which our launcher has to end.
LATE = 5.0
#: What is tried on three hosts, by option.
OF_HOSTS = {"spares": spare_faults, "starts": start_faults, "hangs": hang_faults}
#: Milliseconds from the first to the last of three kills.
GAPS = (0, 1, 2, 5, 10, 20)


class LauncherExperiment(Experiment):
    """A trial under one launcher on this host."""

    def __init__(self, launcher: Launcher, trial: Trial, folder: Path, *, report: bool = True) -> None:
        self.launcher, self.trial = launcher, trial
        self.mark = uuid.uuid4().hex
        self.late = LATE if launcher.ours else LONGEST
        self.what = f"{launcher.name} " if launcher.ours and report else ""
        super().__init__(trial, folder, trial.ranks)

    def start(self, environment: Mapping[str, str], stream: int) -> subprocess.Popen[str]:
        """Start the launcher in a session of its own."""
        return subprocess.Popen(
            self.launcher.command(self.ranks, str(RANK_PROGRAM), self.folder, GRACE),
            cwd=self.folder, env={**environment, MARK: self.mark}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def living(self) -> list[int]:
        """Return the processes of the trial that have not ended."""
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, IndexError):
                mine = f"{MARK}={self.mark}".encode()
                if folder.name.isdigit() and mine in (folder / "environ").read_bytes():
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                    found += [int(folder.name)] * (state not in "ZX")
        return found

    def guards(self) -> dict[str, int]:
        """Return the keeper and the watcher by name."""
        found = {}
        for pid in self.living():
            with suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                found[name.removeprefix("hccl-")] = pid
        return found

    def break_job(self) -> None:
        """Send the trial's signals, the gap between the first and the last."""
        trial, early = self.trial, self.trial.fault in EARLY_SIGNALS
        if not (early or wait_until(self.all_up, LONGEST)) or not trial.from_launcher:
            return
        pids = {"launcher": self.process.pid, **({} if early else self.guards())}
        pause = trial.gap / max(1, len(trial.signals) - 1)
        time.sleep(trial.delay)
        for number, (name, signal_number) in enumerate(trial.signals):
            if number:
                time.sleep(pause)
            if name == "launcher":
                self.process.send_signal(signal_number)
            elif name in pids:
                kill(pids[name], signal_number)

    def wrong(self, code: int) -> dict[str, str]:
        """Return what is wrong with the exit code and the rank that is blamed."""
        trial, found = self.trial, {}
        if code not in trial.right_codes:
            found["wrong code"] = f"code {code} instead of {' or '.join(map(str, trial.right_codes))}"
        blamed = self.launcher.blames(self.folder)
        if not trial.from_launcher and blamed != trial.culprit:
            found["wrong cause"] = f"blamed {blamed} instead of {trial.culprit}"
        return found


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
    faults = tuple(fault for fault in asked_for(every, only) if only or disk or fault != "disk")
    try:
        for number in range(trials):
            trial = draw(generator, faults)
            folder, logs = base / str(number), base / "disk" / str(number)
            folder.mkdir()
            if trial.fault == "disk":
                logs.mkdir()
                (folder / "log").symlink_to(logs)
            LauncherExperiment(launcher, trial, folder).carry_out(trial, tally)
            shutil.rmtree(folder)
            shutil.rmtree(logs, ignore_errors=True)
    finally:
        if disk:
            subprocess.run(["umount", str(base / "disk")], check=False)
        shutil.rmtree(base, ignore_errors=True)
    return tally


def all_guards(trials: int) -> None:
    """Kill launcher, keeper and watcher, so often per gap, and print after which gaps something is left."""
    print("\nlauncher, keeper and watcher killed: ms from the first to the last, trials, with processes left")
    base = Path(mkdtemp(prefix="hccl-tools-faults-"))
    for gap in GAPS:
        tally = Tally()
        for number in range(trials):
            (folder := base / f"{gap}-{number}").mkdir()
            trial = Trial(next(iter(ALL_GUARDS)), 8, 0, 0, 0.0, gap / 1000)
            LauncherExperiment(LAUNCHERS[0], trial, folder, report=False).carry_out(trial, tally)
        print(f"{gap:>6} {trials:>6} {tally.problems['left over']:>6}", flush=True)
    shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    """Run the campaigns and print the table; 1 if ours failed a trial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=300, help="for hccl-tools (300)")
    parser.add_argument("--peer-trials", type=int, default=40, help="for each other launcher (40)")
    parser.add_argument("--engine-trials", type=int, default=40, help="for hccl-tools by mpirun (40)")
    parser.add_argument("--all-guards", type=int, default=0, metavar="N", help="per gap, see above (0)")
    parser.add_argument("--hosts", type=int, choices=(1, 3), default=1, help="of each job (1)")
    kinds = parser.add_mutually_exclusive_group()
    for name, module in OF_HOSTS.items():
        kinds.add_argument(
            f"--{name}", dest="of_hosts", action="store_const", const=module, help="with --hosts 3, see above"
        )
    options, only = arguments(parser, "launcher")
    if options.of_hosts and options.hosts == 1:
        parser.error(f"{', '.join(f'--{name}' for name in OF_HOSTS)} need --hosts 3")
    if options.hosts > 1:
        campaign_of_hosts = (options.of_hosts or host_faults).campaign
        return 0 if campaign_of_hosts(options.trials, options.seed, only) else 1
    good = True
    for launcher in LAUNCHERS:
        trials = options.engine_trials if launcher.ours else options.peer_trials
        trials = options.trials if launcher is LAUNCHERS[0] else trials
        if not launcher.is_here() or not trials:
            print(f"{launcher.name:<13} {'not asked for' if launcher.is_here() else 'is not installed'}")
            continue
        tally = campaign(launcher, trials, options.seed, only)
        tally.print_row(launcher.name)
        good = good and not (launcher.ours and tally.failed)
    if options.all_guards:
        all_guards(options.all_guards)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
