"""Lose hosts of jobs with a spare at random, for ``benchmarks.faults --hosts 3 --spares``: root only.

Each trial starts a job of two hosts by ssh or by an mpirun that is installed, with the third host in reserve
and two restarts. It kills everything on the second host (once all ranks run, or while they start), cuts it
off (both ways or one way), kills its supervisor, its engine's daemon or its rank, lets it refuse its part of
a restart, or kills the launcher; "twice" also kills everything on the spare. The job must continue on the
spare, continue where it was, or end, as the guide states, and nothing may be left on any host.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.fault_experiment import LEFT, LONGEST, kill, wait_until
from benchmarks.host_faults import choose, run
from tests.beds.three_hosts import drop, isolate
from tests.support.mpiruns import REMOTE_ENGINES
from tests.support.processes import above
from tests.support.spare_jobs import OnThreeHosts, SpareJob

if TYPE_CHECKING:
    import random
    from typing import Any

    from benchmarks.fault_experiment import Tally
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

#: Fault: how likely it is, next to the others.
FAULTS = {
    "killed": 4, "killed early": 3, "cut": 2, "cut one way": 2, "supervisor": 2, "daemon": 2, "rank": 2,
    "refuses": 2, "twice": 2, "launcher": 1,
}  # fmt: skip
#: The faults after which the spare has the place of the second host.
_REPLACES = {"killed", "cut", "cut one way", "supervisor", "daemon", "refuses", "twice"}
_KILLED = 128 + signal.SIGKILL
#: Seconds for a rank to end after the launcher has lost contact with its host: --host-timeout is 3 here.
_CUT_S = 6.0
#: Ranks run until they may end.
_SCRIPT = """#!/bin/sh
echo $$ > "new_$RANK_ID"; mv "new_$RANK_ID" "up_$RANK_ID.$HCCL_TOOLS_RESTART"
until [ -e go ]; do sleep 0.1; done
"""


class Trial(NamedTuple):
    """What is broken, and how many seconds after all ranks run (or after the start)."""

    engine: Mpirun | Ssh
    fault: str
    delay: float

    def __str__(self) -> str:
        return f"{self.engine}: {self.fault} after {self.delay:.2f} s"

    @property
    def name(self) -> str:
        """The engine."""
        return str(self.engine)


def draw(generator: random.Random, only: tuple[str, ...]) -> Trial:
    """A random trial."""
    fault = choose(generator, FAULTS, only)
    longest = 2.0 if fault == "killed early" else 0.5
    return Trial(generator.choice(REMOTE_ENGINES), fault, generator.uniform(0, longest))


class SpareExperiment:
    """One trial in the current folder."""

    def __init__(self, bed: ThreeHosts, trial: Trial) -> None:
        self.bed, self.trial = bed, trial
        for host in bed.hosts:
            (script := host.folder / "disk" / "job").write_text(_SCRIPT)
            script.chmod(0o755)
        program = ["--start", "torch", "--no-python", str(bed.hosts[0].disk / "job")]
        self.job = SpareJob(OnThreeHosts(bed, trial.engine), "--max-restarts", "2", *program)

    def pid(self, rank: int) -> int:
        """Return the process of a rank in the last start in which all ranks were up; 0 before."""
        starts = [{path.suffix for path in Path().glob(f"up_{one}.*")} for one in (0, 1)]
        both = sorted(starts[0] & starts[1])
        return int(Path(f"up_{rank}{both[-1]}").read_text()) if both else 0

    def wait_for_start(self, after: int) -> bool:
        """Wait until all ranks run in a start after the one in which rank 0 had this process."""
        wait_until(lambda: self.pid(0) not in {0, after} or self.job.has_ended, LONGEST)
        return self.pid(0) not in {0, after}

    def break_job(self) -> None:
        """Do what the trial wants, and let the ranks end once all run again."""
        fault, before = self.trial.fault, 0
        if fault != "killed early" and self.wait_for_start(0):
            before = self.pid(0)
        time.sleep(self.trial.delay)
        self._break(fault)
        if fault == "killed early":
            wait_until(lambda: self.pid(0) or self.job.has_ended, LONGEST)
        elif fault != "launcher" and self.wait_for_start(before) and fault == "twice":
            before = self.pid(0)
            for pid in self.job.on(self.bed.hosts[2]):
                kill(pid)
            self.wait_for_start(before)
        Path("go").touch()

    def _break(self, fault: str) -> None:
        first, second, _ = self.bed.hosts
        if fault in {"supervisor", "daemon", "rank"}:
            rank = self.pid(1)
            kill(rank if fault == "rank" else above(rank)[fault])
        elif fault == "refuses":
            (second.folder / "disk" / "job").unlink()
            kill(self.pid(1))
        elif fault == "launcher":
            kill(self.job.launcher.pid)
        elif fault == "cut":
            self.bed.impair(*isolate(second))
        elif fault == "cut one way":
            self.bed.impair(drop(source=second.address, target=first.address))
        else:
            for pid in self.job.on(second):
                kill(pid)

    def judge(self, tally: Tally) -> dict[str, str]:
        """See the trial to its end; return what is wrong."""
        began = time.monotonic()
        self.break_job()
        try:
            said = self.job.launcher.communicate(timeout=LONGEST)[0]
        except subprocess.TimeoutExpired:
            return {"hung": "hung"}
        tally.seconds.append(time.monotonic() - began)
        found = self._wrong(said) if self.trial.fault != "launcher" else {}
        # A host that was cut off ends its ranks itself; the launcher does not wait for it.
        if not wait_until(lambda: not self.job.left(), LEFT + (_CUT_S if "cut" in self.trial.fault else 0)):
            found["left over"] = f"left processes {self.job.left()}"
        return found

    def _wrong(self, said: str) -> dict[str, str]:
        """Check the exit code, and who took whose place."""
        fault, code, found = self.trial.fault, self.job.launcher.returncode, {}
        right = _KILLED if fault == "twice" else 0
        if code != right:
            found["wrong code"] = f"code {code} instead of {right}\n{said}"
        if not (path := Path("log/latest/report.json")).exists():
            return {"wrong code": f"refused\n{said}"}
        report: dict[str, Any] = json.loads(path.read_text())
        replaced = [(one["host"], one["spare"]) for one in report["replaced"]]
        _, second, spare = (host.address for host in self.bed.hosts)
        right_ones = [[(second, spare)]] if fault in _REPLACES else [[]]
        if fault in {
            "daemon",
            "killed early",
        }:  # Whether the host itself counts as lost depends on the moment.
            right_ones = [[(second, spare)], []]
        if replaced not in right_ones:
            found["wrong cause"] = f"replaced {replaced}\n{said}"
        if fault == "twice" and f"{spare} must be replaced, and no spare is left" not in said:
            found["wrong cause"] = f"does not say that no spare is left\n{said}"
        return found

    def clean_up(self) -> None:
        """Repair the network, and kill what is left."""
        self.bed.impair()
        self.job.launcher.kill()
        self.job.launcher.communicate()
        for pid in self.job.left():
            kill(pid)


campaign = partial(run, names=REMOTE_ENGINES, draw_one=draw, begin=SpareExperiment)
