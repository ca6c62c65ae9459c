"""Break jobs of mpirun and Slurm at random: ``python -m benchmarks.engine_faults [--trials N] [--seed S]``.

As benchmarks/faults.py does for one host, and with its questions: is a process of the job left 2 s after the
launcher's end, did that come in time, is the exit code the right one, is what was broken named? Besides ranks
and launchers it kills what the engines have started: mpirun, prted, orted, hydra_pmi_proxy, ssh, srun,
slurmstepd, shims, supervisors and keepers, on the launcher's host and on the other. Two hosts (network
namespaces with an sshd in each) and a Slurm cluster are made for it: only root can do that.
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
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks import engine_trials
from benchmarks.engine_places import BothHosts, OneHost, Slurm, name_of, parent_of
from benchmarks.engine_trials import BOTH, SIGNALS, draw, names_cause, right_codes
from benchmarks.faults import GRACE, LEFT, LONGEST, RANK_PROGRAM, Tally, line, wait_until
from benchmarks.measuring import plain_environment
from tests.beds.slurm_cluster import make_slurm_cluster
from tests.beds.two_hosts import make_two_hosts
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from benchmarks.engine_places import Place
    from benchmarks.engine_trials import Trial

#: Seconds that the guide states for the end of a job after a death, beyond the grace time.
LATE = 10.0
_ENGINES = ("mpirun", "mpiexec", "prterun", "srun")
_RANKS_ON_ONE_HOST = 4


class Experiment:
    """One trial, in a folder of its own which is the current one."""

    def __init__(self, place: Place, trial: Trial, folder: Path) -> None:
        self.place, self.trial, self.folder = place, trial, folder
        self.broken: dict[int, str] = {}
        fault = trial.fault if trial.is_ranks else "launcher-external"
        environment = {
            **plain_environment(),
            "FAULT": fault,
            "FAULT_RANK": str(trial.culprit),
            "FAULT_CODE": str(trial.code),
            "FAULT_DELAY": str(trial.delay),
            "FAULT_FOLDER": str(folder),
            "FAULT_RANKS": str(place.ranks),
        }
        options = ["--grace", str(GRACE), "--log-dir", str(folder / "log"), "--no-python"]
        with (folder / "output").open("wb") as stream:
            self.process = place.start(
                [*options, sys.executable, "-I", "-S", str(RANK_PROGRAM)], environment, stream.fileno()
            )

    def all_up(self) -> bool:
        """Whether every rank runs, or the launcher has ended."""
        return len(list(self.folder.glob("up_*"))) >= self.place.ranks or self.process.poll() is not None

    def find(self, role: str) -> int:
        """Return the process of a role: the launcher, the engine, or what is above the rank; 0 for none."""
        rank = int((self.folder / f"up_{self.trial.culprit}").read_text())
        above = [rank]
        while above[-1] > 1:
            above.append(parent_of(above[-1]))
        names = [name_of(pid) for pid in above]
        # A rank's parent is a shim, or its host's keeper; the keeper's is the watcher.
        supervisor = 1 if names[1] != "hccl-keeper" else names.index("hccl-watcher") + 1
        if role in {"engine", "launcher-keeper"}:
            found = [pid for pid in self.place.pids() if name_of(pid).startswith(_ENGINES)]
            engine = next(pid for pid in found if name_of(parent_of(pid)) == "hccl-keeper")
            return engine if role == "engine" else parent_of(engine)
        if role == "ssh":
            return next((pid for pid in self.place.pids() if name_of(pid) == "ssh"), 0)
        if role == "launcher":
            return self.place.launcher(self.process.pid)
        return above[{"rank": 0, "keeper": 1, "daemon": supervisor + 1}.get(role, supervisor)]

    def break_it(self) -> None:
        """Signal what the trial says."""
        trial = self.trial
        time.sleep(trial.delay)
        if trial.fault == "scancel" and isinstance(self.place, Slurm):
            self.place.cancel()
            return
        if trial.fault == BOTH:
            pids = [self.find("launcher"), self.find("launcher-keeper")]
            order = pids if trial.code % 2 else pids[::-1]
            for number, pid in enumerate(order):
                time.sleep(number * trial.delay / 25)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        role, number = SIGNALS[trial.fault]
        # Where there is no ssh any more (Open MPI's ends after the start), its daemon is what is left of it.
        if pid := self.find(role) or self.find("daemon"):
            self.broken[pid] = name_of(pid)
            os.kill(pid, number)

    def judge(self, tally: Tally) -> list[str]:
        """Wait for the end and count what is wrong with it."""
        trial = self.trial
        if not wait_until(self.all_up, LONGEST):
            tally.hung += 1
            return ["never up"]
        if not trial.is_ranks:
            self.break_it()
        began = time.monotonic()
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            tally.hung += 1
            return ["hung"]
        tally.seconds.append(time.monotonic() - began)
        problems = []
        if tally.seconds[-1] > GRACE + LATE:
            tally.late += 1
            problems.append(f"ended after {tally.seconds[-1]:.1f} s")
        if not wait_until(lambda: not self.place.pids(), LEFT):
            tally.left += 1
            problems.append(f"left {[(pid, name_of(pid)) for pid in self.place.pids()]}")
        if trial.launcher_is_killed:
            return problems
        if code not in right_codes(trial):
            tally.wrong_code += 1
            problems.append(f"code {code} instead of {' or '.join(map(str, right_codes(trial)))}")
        said = (self.folder / "output").read_text(errors="replace")
        if not names_cause(trial, said, host=self.place.host_of(trial.culprit), broken=self.broken):
            tally.wrong_cause += 1
            problems.append(f"does not name {self.broken or f'rank {trial.culprit}'}")
        return problems

    def clean_up(self) -> None:
        """Kill what is left."""
        self.process.kill()
        self.process.wait()
        if isinstance(self.place, Slurm):
            self.place.cancel()
        while found := self.place.pids():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def run(place: Place, trial: Trial, folder: Path, tally: Tally) -> None:
    """Carry out one trial and count what came of it."""
    folder.mkdir()
    os.chdir(folder)
    place.make_ready()
    experiment = Experiment(place, trial, folder)
    tally.trials += 1
    tally.faults[trial.fault] += 1
    try:
        if problems := experiment.judge(tally):
            tally.failed[trial.fault] += 1
            said = (folder / "output").read_text(errors="replace")
            print(f"  {place.name} {trial}: {', '.join(problems)}\n{said}", file=sys.stderr)
    finally:
        experiment.clean_up()
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def campaign(places: list[Place], trials: int, generator: random.Random, only: set[str], base: Path) -> bool:
    """Run so many trials, the places taking turns, and print a row for each; whether all went well."""
    tallies = {place.name: Tally() for place in places if trials}
    for number in range(trials):
        place = places[number % len(places)]
        faults = [fault for fault in place.faults if not only or fault in only]
        run(place, draw(generator, faults, place.ranks), base / str(number), tallies[place.name])
    for name, tally in tallies.items():
        print(line(name, tally), dict(tally.failed) or "", flush=True)
        print("  " + ", ".join(f"{fault} {count}" for fault, count in sorted(tally.faults.items())))
    return not any(tally.failed for tally in tallies.values())


def main() -> int:
    """Run the campaigns and print the table; 1 if a trial failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=60, help="over two hosts with mpirun (60)")
    parser.add_argument("--one-host-trials", type=int, default=30, help="MPI ranks on one host (30)")
    parser.add_argument("--slurm-trials", type=int, default=20, help="on Slurm (20)")
    parser.add_argument("--faults", default="", metavar="LIST", help="only these, comma-separated")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="to repeat a campaign")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("only root can make the hosts that the trials need")
    generator = random.Random(options.seed)  # noqa: S311  (repeatable, not secret)
    only = set(filter(None, options.faults.split(",")))
    print(f"seed {options.seed}; grace {GRACE:g} s; worst: seconds from the fault to the launcher's end")
    heads = f"{'left over':>10} {'wrong code':>11} {'wrong cause':>12} {'hung':>6} {'late':>6} {'worst':>9}"
    print(f"{'hosts, engine':<12} trials {heads}")
    # TMPDIR may be long, and the path of a socket has at most 108 bytes.
    base = Path(mkdtemp(prefix="hccl-tools-faults-", dir="/tmp"))
    base.chmod(0o755)
    good = True
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        if options.trials or options.one_host_trials:
            bed = stack.enter_context(make_two_hosts(folder_in(base, "two_hosts")))
            one = [OneHost(bed, mpirun, engine_trials.ONE_HOST, _RANKS_ON_ONE_HOST) for mpirun in MPIRUNS]
            two = [BothHosts(bed, mpirun, engine_trials.TWO_HOSTS) for mpirun in MPIRUNS]
            good &= campaign([*one], options.one_host_trials, generator, only, folder_in(base, "one"))
            good &= campaign([*two], options.trials, generator, only, folder_in(base, "two"))
        if options.slurm_trials:
            cluster = stack.enter_context(make_slurm_cluster(folder_in(base, "slurm_cluster")))
            slurm: list[Place] = [Slurm(cluster, engine_trials.SLURM)]
            good &= campaign(slurm, options.slurm_trials, generator, only, folder_in(base, "slurm"))
    return 0 if good else 1


def folder_in(base: Path, name: str) -> Path:
    """Make a folder."""
    (base / name).mkdir()
    return base / name


if __name__ == "__main__":
    sys.exit(main())
