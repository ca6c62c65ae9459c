"""Disturb the start of jobs of three hosts, for ``benchmarks.faults --hosts 3 --starts``: only root can.

Each trial starts a job by ssh or by an mpirun that is installed. While it starts, or while it starts again
after a rank has failed, one of the hosts is cut off, refuses ssh, is slow, or never becomes ready. A slow
host must be waited for, and every other one must be named within the time that the guide states.
"""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.fault_experiment import GRACE, LEFT, LONGEST, wait_until
from benchmarks.host_faults import choose, kill_job, run
from tests.beds.three_hosts import isolate
from tests.support.late_host import held_back
from tests.support.three_by import BY_SSH, STARTS, Job, Start

if TYPE_CHECKING:
    import random

    from benchmarks.fault_experiment import Tally
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.late_host import LateHost

#: Fault: how likely it is, next to the others. "again": after a rank has failed.
FAULTS = {
    "cut": 3, "no ssh": 2, "slow": 2, "never ready": 2, "slow for a minute": 0.2,
    "cut again": 3, "no ssh again": 1, "slow again": 1,
}  # fmt: skip
_ENGINES = [start for start in STARTS if start.engine]
#: Seconds after which a host that answers ends the start, in these trials.
_JOIN_S = 4.0
#: Seconds within which the guide states that a lost host is noticed.
_NOTICE_S = 20.0
#: Each start writes that it runs; the ranks end once they may, and rank 1 fails if it is asked to.
_SCRIPT = """
echo $$ > "new_$RANK_ID"
mv "new_$RANK_ID" "up_$RANK_ID.$HCCL_TOOLS_RESTART"
until [ -e go ]; do
    [ "$RANK_ID.$HCCL_TOOLS_RESTART" != 1.0 ] || ! [ -e fail ] || exit 7
    sleep 0.05
done
"""


class Trial(NamedTuple):
    """What is broken: a fault of a host (1 or 2), so many seconds after the start or the failure.

    Attributes:
        pause: Seconds of ``--restart-delay``.
    """

    start: Start
    fault: str
    host: int
    delay: float
    pause: float

    @property
    def name(self) -> str:
        """The way to start."""
        return str(self.start)

    @property
    def kind(self) -> str:
        """The fault, at whichever start."""
        return "slow" if self.fault.startswith("slow") else self.fault.removesuffix(" again")

    @property
    def is_again(self) -> bool:
        """Whether the second start is disturbed."""
        return self.fault.endswith(" again")


def draw(generator: random.Random, only: tuple[str, ...]) -> Trial:
    """A random trial."""
    fault = choose(generator, FAULTS, only)
    latest = {"slow": 5.0, "slow again": 5.0, "slow for a minute": 60.0}.get(fault, 2.0)
    return Trial(
        generator.choice(_ENGINES),
        fault,
        generator.choice((1, 2)),
        latest if fault == "slow for a minute" else generator.uniform(0, latest),
        generator.choice((0, 1, 3)),
    )


class StartExperiment:
    """One trial in the current folder."""

    def __init__(self, bed: ThreeHosts, trial: Trial) -> None:
        self.bed, self.trial, self._stack = bed, trial, ExitStack()
        self.host = bed.hosts[trial.host]
        self._late = None if trial.is_again else self._hold_back()
        options = ["--start", "torch", "--grace", str(GRACE)]
        if trial.is_again:
            options += ["--max-restarts", "1", "--restart-delay", str(trial.pause)]
        if trial.kind == "never ready":
            options += ["--join-timeout", str(_JOIN_S)]
        if trial.fault == "no ssh":
            self._refuse()
        self.job = Job(bed, trial.start, options, ("--no-python", "sh", "-c", _SCRIPT))

    def _hold_back(self) -> LateHost | None:
        """Have the host wait at its next start, if the trial wants that."""
        if self.trial.kind not in {"slow", "never ready"}:
            return None
        return self._stack.enter_context(held_back(self.host))

    def _refuse(self) -> None:
        """Have the sshd of the host refuse every key."""
        keys = self.host.folder / "authorized_keys"
        text = keys.read_text()
        self._stack.callback(keys.write_text, text)
        keys.write_text("")

    def _are_up(self, restart: int) -> bool:
        return len(list(Path().glob(f"up_*.{restart}"))) == self.job.ranks

    @property
    def _has_ended(self) -> bool:
        return self.job.launchers[0].poll() is not None

    def break_job(self) -> None:
        """Do what the trial wants, and let the ranks end once all run."""
        trial = self.trial
        if trial.is_again:
            wait_until(lambda: self._are_up(0) or self._has_ended, LONGEST)
            self._late = self._hold_back()
            if trial.kind == "no ssh":
                self._refuse()
            Path("fail").touch()
        time.sleep(trial.delay)
        if trial.kind == "cut":
            self.bed.impair(*isolate(self.host))
        if trial.kind == "slow" and self._late is not None:
            self._late.goes_on()
            wait_until(lambda: self._are_up(int(trial.is_again)) or self._has_ended, LONGEST)
        if trial.kind != "slow":
            wait_until(lambda: self._has_ended, LONGEST)
        Path("go").touch()

    def judge(self, tally: Tally) -> dict[str, str]:
        """See the trial to its end; return what is wrong."""
        began = time.monotonic()
        self.break_job()
        try:
            (code,), (said,) = self.job.end(LONGEST)
        except subprocess.TimeoutExpired:
            return {"hung": "hung"}
        seconds = time.monotonic() - began
        tally.seconds.append(seconds)
        found = self._wrong(code, said)
        # A host that is cut off while a start ends is missed there, and again in the next start.
        notices = 2 if self.trial.is_again else 1
        if seconds > self.trial.delay + self.trial.pause + notices * _NOTICE_S + GRACE:
            found["late"] = f"ended after {seconds:.1f} s"
        if self._late is not None:
            self._late.goes_on()
        self.bed.impair()
        # What a host that was cut off still runs ends when it can connect, and sees that the job has ended.
        left = LEFT + (_NOTICE_S if self.trial.kind == "cut" else 0)
        if not wait_until(lambda: not self.job.living(), left):
            found["left over"] = f"left processes {self.job.living()}"
        return found

    def _wrong(self, code: int, said: str) -> dict[str, str]:
        """Check the exit code, the host that is named, and that the report has every rank."""
        trial, found = self.trial, {}
        # A host that is cut off once its ranks run is a lost host, and one before it does not start its part.
        right = {"slow": {0}, "cut": {125, 128 + signal.SIGKILL}}.get(trial.kind, {125})
        if trial.kind == "no ssh" and trial.start != BY_SSH:
            right = set(range(1, 256))  # mpirun's own
        if code not in right:
            found["wrong code"] = f"code {code} instead of one of {sorted(right)}\n{said}"
        if trial.kind != "slow" and self.host.address not in said:
            found["wrong cause"] = f"does not name {self.host.address}\n{said}"
        reports = self.job.reports()
        if not reports or sorted(end["rank"] for end in reports[0]["ranks"]) != [0, 1, 2]:
            found["wrong cause"] = f"the report is not complete: {reports}\n{said}"
        return found

    def clean_up(self) -> None:
        """Repair the hosts, and kill what is left."""
        self._stack.close()
        self.bed.impair()
        kill_job(self.job)


campaign = partial(run, names=_ENGINES, draw_one=draw, begin=StartExperiment)
