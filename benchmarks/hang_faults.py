"""Let jobs of three hosts hang at random, for ``benchmarks.faults --hosts 3 --hangs``: root only.

Each trial starts a job by ssh, by an mpirun that is installed, or by hand on each host. Its ranks write three
lines such as "step 1", and then hang in one of four ways: all ranks sleep; one rank reads an empty FIFO; one
rank is stopped; all ranks use 100 % of a CPU, like ranks that poll an NPU (``--progress``). The job must end
as hung, and the right rank must be named first. Two more kinds of jobs do not hang and must end with 0: the
other ranks wait for one that computes, or use their CPUs while one rank writes further lines.
"""

from __future__ import annotations

import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.fault_experiment import GRACE, LEFT, LONGEST, wait_until
from benchmarks.host_faults import choose, kill_job, run
from tests.support.three_by import ORDER, STARTS, Job, Start

if TYPE_CHECKING:
    import random

    from benchmarks.fault_experiment import Tally
    from tests.beds.three_hosts import ThreeHosts

#: Fault: how likely it is, next to the others. Ranks use 100 % of a CPU in those with "poll".
FAULTS = {"sleep": 2, "read": 3, "stopped": 3, "polls": 4, "evaluation": 2, "slow steps, polls": 2}
#: The faults that end no job.
HARMLESS = {"evaluation", "slow steps, polls"}
_HUNG = 124
#: The time that a job may do nothing, in seconds.
_TIMEOUT_S = 2.0
#: ``$1`` is the fault and ``$2`` the rank that is different.
_SCRIPT = r"""
spin() { while [ ! -e done ]; do :; done; exit 0; }
touch "up_$RANK"
until [ -e up_0 ] && [ -e up_1 ] && [ -e up_2 ]; do sleep 0.05; done
for step in 1 2 3; do echo "step $step"; sleep 0.1; done
case "$1" in
    sleep) exec sleep 600 ;;
    read) [ "$RANK" != "$2" ] || { mkfifo pipe; read -r line < pipe; }; exec sleep 600 ;;
    stopped) [ "$RANK" != "$2" ] || kill -STOP $$; exec sleep 600 ;;
    polls) spin ;;
    evaluation) [ "$RANK" != "$2" ] || timeout 6 sh -c 'while :; do :; done'
        [ "$RANK" != "$2" ] || touch done
        until [ -e done ]; do sleep 0.2; done ;;
    slow*) [ "$RANK" = "$2" ] || spin
        for step in 4 5 6 7 8; do echo "step $step"; sleep 1; done; touch done ;;
esac
"""


class Trial(NamedTuple):
    """How a job hangs, and which rank is different."""

    start: Start
    fault: str
    rank: int

    @property
    def name(self) -> str:
        """The way to start."""
        return str(self.start)


def draw(generator: random.Random, only: tuple[str, ...]) -> Trial:
    """A random trial."""
    fault = choose(generator, FAULTS, only)
    return Trial(generator.choice(STARTS), fault, generator.randrange(len(ORDER)))


class HangExperiment:
    """One trial in the current folder."""

    def __init__(self, bed: ThreeHosts, trial: Trial) -> None:
        self.trial = trial
        options = ["--start", "torch", "--grace", str(GRACE), "--hang-timeout", str(_TIMEOUT_S)]
        if "polls" in trial.fault:
            options += ["--progress", r"step \d+"]
        program = ("--no-python", "sh", "-c", _SCRIPT, "rank", trial.fault, str(trial.rank))
        self.job = Job(bed, trial.start, options, program)

    def judge(self, tally: Tally) -> dict[str, str]:
        """See the trial to its end; return what is wrong."""
        began = time.monotonic()
        try:
            codes, said = self.job.end(LONGEST)
        except subprocess.TimeoutExpired:
            return {"hung": "hung"}
        tally.seconds.append(time.monotonic() - began)
        found = {}
        right = 0 if self.trial.fault in HARMLESS else _HUNG
        if any(code != right for code in codes):
            found["wrong code"] = f"codes {codes} instead of {right}\n" + "\n".join(said)
        elif right and (problem := self._wrong_report()):
            found["wrong cause"] = f"{problem}\n" + "\n".join(said)
        if not wait_until(lambda: not self.job.living(), LEFT):
            found["left over"] = f"left processes {self.job.living()}"
        return found

    def _wrong_report(self) -> str:
        """Say what is wrong with the ranks that the reports call hung; "" for nothing."""
        for report in self.job.reports():
            hung = {one["rank"]: one["is_first"] for one in report["hung"]}
            first = sorted(rank for rank, is_first in hung.items() if is_first)
            if report["reason"] != "hang" or sorted(hung) != [0, 1, 2]:
                return f"reason {report['reason']}, hung ranks {sorted(hung)}"
            if self.trial.fault in {"read", "stopped"} and first != [self.trial.rank]:
                return f"ranks {first} are first instead of {self.trial.rank}"
        return "" if self.job.reports() else "no report"

    def clean_up(self) -> None:
        """Kill what is left."""
        kill_job(self.job)


campaign = partial(run, names=STARTS, draw_one=draw, begin=HangExperiment)
