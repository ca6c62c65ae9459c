"""Break jobs of three hosts at random, for ``benchmarks.faults --hosts 3``: only root can make the hosts.

Each trial starts a job by ssh, by an mpirun that is installed, or by hand on each host, with and without a
job key. It kills a process, cuts a host off (both ways or one way), or makes its link poor: 30 % loss with
300 ms delay for some seconds, or an interruption every 5 s for a minute. Hosts count as lost after 12 s, the
default.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from benchmarks.fault_experiment import GRACE, LEFT, LONGEST, Tally, asked_for, kill, wait_until
from tests.beds.three_hosts import drop, flapping, isolate, make_three_hosts, poor_link
from tests.support.processes import above
from tests.support.three_by import ORDER, STARTS, Job, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.beds.three_hosts import ThreeHosts

#: Fault: how likely it is, next to the others. Flapping takes a minute.
FAULTS = {
    "rank": 3, "supervisor": 3, "keeper": 3, "controller": 3, "daemon": 3,
    "cut": 2, "cut one way": 2, "poor link": 2, "flapping": 0.5,
}  # fmt: skip
#: Faults of the network that end no job, and how many seconds they last.
HARMLESS = {"poor link": 8.0, "flapping": 60.0}
_KILLED = 128 + signal.SIGKILL
#: Seconds that the guide states for the end of a job after a death, and the default of --host-timeout.
_DEATH_S, _HOST_TIMEOUT_S = 10.0, 12.0
#: The ranks run until they may end.
_PROGRAM = (
    *("--no-python", "sh", "-c"),
    'echo $$ > "new_$RANK_ID"; mv "new_$RANK_ID" "up_$RANK_ID"; until [ -e go ]; do sleep 0.1; done',
)


class Trial(NamedTuple):
    """What is broken: a fault on the host of a rank, so many seconds after all ranks run."""

    start: Start
    fault: str
    rank: int
    delay: float

    @property
    def name(self) -> str:
        """The way to start."""
        return str(self.start)

    @property
    def host(self) -> int:
        """The index of the faulty host."""
        return self.start.controller if self.fault == "controller" else ORDER[self.rank]

    @property
    def late(self) -> float:
        """Seconds in which all launchers have to end."""
        return GRACE + _DEATH_S + (_HOST_TIMEOUT_S if self.fault.startswith("cut") else 0.0)


def choose(generator: random.Random, likely: Mapping[str, float], only: tuple[str, ...]) -> str:
    """Return one of the faults, or one of those that are asked for."""
    faults = asked_for(likely, only)
    (fault,) = generator.choices(faults, [likely[one] for one in faults])
    return fault


def draw(generator: random.Random, only: tuple[str, ...]) -> Trial:
    """A random trial."""
    start = generator.choice(STARTS)
    likely = FAULTS
    if start.engine is None and only != ("daemon",):
        likely = {fault: FAULTS[fault] for fault in FAULTS if fault != "daemon"}
    fault = choose(generator, likely, only)
    # Of the launcher's own host, an engine has no daemon and a cut link nobody who reports it.
    elsewhere = start.engine is not None and (fault == "daemon" or fault in HARMLESS or "cut" in fault)
    ranks = [rank for rank in range(3) if not (elsewhere and ORDER[rank] == start.controller)]
    return Trial(start, fault, generator.choice(ranks), generator.uniform(0, 0.5))


class AnyTrial(Protocol):
    """What a campaign has to know of a trial."""

    @property
    def name(self) -> str:
        """The row of the table to which it belongs."""

    @property
    def fault(self) -> str:
        """What is broken."""


class OnHosts(Protocol):
    """One trial in the current folder, whose job has been started."""

    def judge(self, tally: Tally) -> dict[str, str]:
        """See the trial to its end; return what is wrong."""

    def clean_up(self) -> None:
        """Repair the network, and kill what is left."""


T = TypeVar("T", bound=AnyTrial)


class HostExperiment:
    """One trial in the current folder."""

    def __init__(self, bed: ThreeHosts, trial: Trial) -> None:
        self.bed, self.trial = bed, trial
        self.job = Job(bed, trial.start, ("--start", "torch", "--grace", str(GRACE)), _PROGRAM)

    def break_job(self) -> None:
        """Do what the trial wants."""
        trial = self.trial
        time.sleep(trial.delay)
        if trial.fault in {"rank", "keeper", "supervisor", "daemon"}:
            rank = self.job.pid(trial.rank)
            kill(rank if trial.fault == "rank" else above(rank)[trial.fault])
        elif trial.fault == "controller" and trial.start.engine:
            kill(self.job.launchers[0].pid)
        elif trial.fault == "controller":
            kill(above(self.job.pid(0))["supervisor"])
        else:
            self._impair()

    def _impair(self) -> None:
        """Impair the link of the faulty host: for some time, or until the end."""
        trial, host = self.trial, self.bed.hosts[self.trial.host]
        if trial.fault in HARMLESS:
            with self.bed.impaired(*(poor_link(host) if trial.fault == "poor link" else flapping(host))):
                wait_until(self.is_over, HARMLESS[trial.fault])
            Path("go").touch()
        elif trial.fault == "cut":
            self.bed.impair(*isolate(host))
        else:
            self.bed.impair(drop(source=host.address, target=self.bed.hosts[self._peer].address))

    @property
    def _peer(self) -> int:
        """The index of the host to which the faulty one cannot send: the controller, or another one."""
        trial = self.trial
        return ORDER[(trial.rank + 1) % 3] if trial.host == trial.start.controller else trial.start.controller

    def is_over(self) -> bool:
        """Whether a launcher has ended."""
        return any(launcher.poll() is not None for launcher in self.job.launchers)

    def judge(self, tally: Tally) -> dict[str, str]:
        """See the trial to its end; return what is wrong."""
        if not self.job.is_up():
            return {"hung": "the ranks did not start"}
        self.break_job()
        began = time.monotonic()
        try:
            codes, said = self.job.end(LONGEST)
        except subprocess.TimeoutExpired:
            return {"hung": "hung"}
        tally.seconds.append(time.monotonic() - began)
        found = self._wrong(codes, said)
        if tally.seconds[-1] > self.trial.late:
            found["late"] = f"ended after {tally.seconds[-1]:.1f} s"
        # A host that was cut off ends its ranks itself; nobody waits for it.
        left = LEFT + (_HOST_TIMEOUT_S if "cut" in self.trial.fault else 0.0)
        if not wait_until(lambda: not self.job.living(), left):
            found["left over"] = f"left processes {self.job.living()}"
        return found

    def _wrong(self, codes: list[int], said: list[str]) -> dict[str, str]:
        """Check what the launchers that still hear of the fault say."""
        trial, found = self.trial, {}
        if trial.fault == "controller" and trial.start.engine:
            return {}
        heard = list(range(len(codes)))
        if trial.start.engine is None and trial.fault in {"supervisor", "controller", "cut", "cut one way"}:
            heard = [index for index in heard if index != trial.host]
        right = 0 if trial.fault in HARMLESS else _KILLED
        if any(codes[index] != right for index in heard):
            found["wrong code"] = f"codes {codes} instead of {right}"
        if right and not all(self._names_cause(said[index]) for index in heard):
            found["wrong cause"] = "\n".join(said)
        return found

    def _names_cause(self, said: str) -> bool:
        trial, name = self.trial, self.job.names[self.trial.host]
        if trial.fault == "rank":
            return f"rank {trial.rank} failed first: killed by SIGKILL" in said
        if trial.fault == "keeper":
            return (
                f"keeper process on {name} was killed" in said
                or "the job's keeper process was killed" in said
            )
        if trial.fault == "daemon":
            return name in said
        # Of a link that is cut one way, both ends lose the other one.
        names = [name, self.job.names[self._peer]] if trial.fault == "cut one way" else [name]
        return any(f"lost contact with the {trial.start.supervisor} on {one} " in said for one in names)

    def clean_up(self) -> None:
        """Repair the network, and kill what is left."""
        self.bed.impair()
        kill_job(self.job)


def kill_job(job: Job) -> None:
    """Kill what is left of a job."""
    for launcher in job.launchers:
        launcher.kill()
        launcher.communicate()
    for pid in job.living():
        kill(pid)


def run(
    trials: int,
    seed: int,
    only: tuple[str, ...],
    *,
    names: Sequence[object],
    draw_one: Callable[[random.Random, tuple[str, ...]], T],
    begin: Callable[[ThreeHosts, T], OnHosts],
) -> bool:
    """Run so many random trials on three hosts; return whether all went well.

    A row is printed for each of ``names``, the ways to start. ``draw_one`` returns a trial with one of the
    faults ``only`` (all if there are none), and ``begin`` starts its job in the current folder.
    """
    generator = random.Random(seed)  # noqa: S311  (repeatable, not secret)
    # TMPDIR may be long, and the path of a socket has at most 108 bytes.
    base = Path(mkdtemp(prefix="hccl-tools-faults-", dir="/tmp"))
    base.chmod(0o755)
    tallies = {str(name): Tally() for name in names}
    try:
        (base / "bed").mkdir()
        with make_three_hosts(base / "bed") as bed:
            for number in range(trials):
                trial = draw_one(generator, only)
                (folder := base / str(number)).mkdir()
                os.chdir(folder)
                _carry_out(trial, begin(bed, trial), tallies[trial.name])
                os.chdir("/")
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    for name, tally in tallies.items():
        tally.print_row(name)
    return not any(tally.failed for tally in tallies.values())


def _carry_out(trial: AnyTrial, experiment: OnHosts, tally: Tally) -> None:
    tally.faults[trial.fault] += 1
    try:
        if problems := experiment.judge(tally):
            tally.problems.update(problems.keys())
            tally.failed[trial.fault] += 1
            print(f"  {trial}: {', '.join(problems.values())}", file=sys.stderr, flush=True)
    finally:
        experiment.clean_up()


campaign = partial(run, names=STARTS, draw_one=draw, begin=HostExperiment)
