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
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks import engine_trials
from benchmarks.engine_places import BothHosts, OneHost, Slurm
from benchmarks.engine_trials import BOTH, SIGNALS, draw, names_cause, right_codes
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
from tests.beds.slurm_cluster import make_slurm_cluster
from tests.beds.two_hosts import make_two_hosts
from tests.support.mpiruns import MPIRUNS
from tests.support.processes import ancestors, name_of, parent_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from benchmarks.engine_places import Place
    from benchmarks.engine_trials import Trial

#: Seconds that the guide states for the end of a job after a death, beyond the grace time.
LATE = 10.0
_ENGINES = ("mpirun", "mpiexec", "prterun", "srun")
_RANKS_ON_ONE_HOST = 4


class EngineExperiment(Experiment):
    """A trial of one place, in a folder of its own which is the current one."""

    late = GRACE + LATE

    def __init__(self, place: Place, trial: Trial, folder: Path) -> None:
        self.place, self.trial, self.what = place, trial, f"{place.name} "
        self.broken: dict[int, str] = {}
        super().__init__(trial, folder, place.ranks)

    def start(self, environment: Mapping[str, str], stream: int) -> subprocess.Popen[str]:
        """Start the job in its place; the rank program sees a fault of its own only."""
        fault = self.trial.fault if self.trial.is_ranks else "launcher-external"
        options = ["--grace", str(GRACE), "--log-dir", str(self.folder / "log"), "--no-python"]
        program = [sys.executable, "-I", "-S", str(RANK_PROGRAM)]
        return self.place.start([*options, *program], {**environment, "FAULT": fault}, stream)

    def living(self) -> list[int]:
        """Return the processes of the job that have not ended."""
        return self.place.pids()

    def find(self, role: str) -> int:
        """Return the process of a role: the launcher, the engine, or what is above the rank; 0 for none."""
        rank = int((self.folder / f"up_{self.trial.culprit}").read_text())
        above = ancestors(rank)
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

    def break_job(self) -> None:
        """Signal what the trial names, once all ranks run."""
        trial = self.trial
        if not wait_until(self.all_up, LONGEST) or trial.is_ranks:
            return
        time.sleep(trial.delay)
        if trial.fault == "scancel" and isinstance(self.place, Slurm):
            self.place.cancel()
            return
        if trial.fault == BOTH:
            pids = [self.find("launcher"), self.find("launcher-keeper")]
            order = pids if trial.code % 2 else pids[::-1]
            for number, pid in enumerate(order):
                time.sleep(number * trial.delay / 25)
                kill(pid)
            return
        role, number = SIGNALS[trial.fault]
        # Where there is no ssh any more (Open MPI's ends after the start), its daemon is what is left of it.
        if pid := self.find(role) or self.find("daemon"):
            self.broken[pid] = name_of(pid)
            os.kill(pid, number)

    def wrong(self, code: int) -> dict[str, str]:
        """Return what is wrong with the exit code and the cause that is named."""
        trial, found = self.trial, {}
        if trial.launcher_is_killed:
            return {}
        if code not in right_codes(trial):
            found["wrong code"] = f"code {code} instead of {' or '.join(map(str, right_codes(trial)))}"
        host = self.place.host_of(trial.culprit)
        if not names_cause(trial, self.output, host=host, broken=self.broken):
            found["wrong cause"] = f"does not name {self.broken or f'rank {trial.culprit}'}"
        return found

    def clean_up(self) -> None:
        """Kill what is left."""
        if isinstance(self.place, Slurm):
            self.place.cancel()
        super().clean_up()


def run(place: Place, trial: Trial, folder: Path, tally: Tally) -> None:
    """Carry out one trial and count what came of it."""
    folder.mkdir()
    os.chdir(folder)
    place.make_ready()
    try:
        EngineExperiment(place, trial, folder).carry_out(trial, tally)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def campaign(
    places: list[Place], trials: int, generator: random.Random, only: tuple[str, ...], base: Path
) -> bool:
    """Run so many trials, the places taking turns, and print a row for each; whether all went well."""
    tallies = {place.name: Tally() for place in places if trials}
    for number in range(trials):
        place = places[number % len(places)]
        faults = asked_for(place.faults, only)
        run(place, draw(generator, faults, place.ranks), base / str(number), tallies[place.name])
    for name, tally in tallies.items():
        tally.print_row(name)
    return not any(tally.failed for tally in tallies.values())


def main() -> int:
    """Run the campaigns and print the table; 1 if a trial failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=60, help="over two hosts with mpirun (60)")
    parser.add_argument("--one-host-trials", type=int, default=30, help="MPI ranks on one host (30)")
    parser.add_argument("--slurm-trials", type=int, default=20, help="on Slurm (20)")
    if os.geteuid() != 0:
        parser.error("only root can make the hosts that the trials need")
    options, only = arguments(parser, "hosts, engine")
    generator = random.Random(options.seed)  # noqa: S311  (repeatable, not secret)
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
