"""Ranks that are MPI processes on this host: whatever is killed is named, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import LONG, MARK, eventually, living
from tests.support.mpiruns import MPIRUNS
from tests.support.processes import kill_all, name_of, parent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.mpiruns import Mpirun

pytestmark = pytest.mark.mpi

#: Seconds that the guide states from a death to the end of the job, beyond the grace time; what load may add.
DEATH_S, LOAD_S, GRACE_S = 10.0, 15.0, 2.0


class Running:
    """A job of three ranks under one mpirun."""

    def __init__(self, mpirun: Mpirun, folder: Path) -> None:
        self.mark = folder.name
        self.launcher = subprocess.Popen(
            [sys.executable, "-m", "hccl_tools.launch", "-n", "3", "--cpu", "--start", "torch",
             *mpirun.for_launch,
             "--grace", str(GRACE_S), "--no-python", "sh", "-c", "echo up; exec sleep 6262"],
            env={**os.environ, MARK: self.mark}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ranks(self) -> dict[int, int]:
        """Return the processes of the ranks, by rank."""
        pids = [pid for pid, command in living(self.mark).items() if command == "sleep 6262 "]
        return {int(variable(pid, "RANK_ID")): pid for pid in pids}

    def named(self, *names: str) -> list[int]:
        """Return the processes whose name begins so."""
        return [pid for pid in living(self.mark) if name_of(pid).startswith(names)]

    def report(self) -> dict[str, Any]:
        """Return the report of the launcher."""
        found: dict[str, Any] = json.loads(Path("log/latest/report.json").read_text())
        return found

    def ends(self) -> dict[int, str]:
        """Return how each rank has ended, as the report says."""
        found = {end["rank"]: end["how"] for end in self.report()["ranks"] if end["rank"] >= 0}
        assert found.keys() == {0, 1, 2}
        return found

    def kill(self, *pids: int) -> str:
        """Kill processes at once, and return what the launcher says; nothing of the job is left then."""
        kill_all(pids)
        _, said = self.launcher.communicate(timeout=GRACE_S + DEATH_S + LOAD_S)
        assert eventually(lambda: not living(self.mark), 2 + LOAD_S), living(self.mark)
        return said


def variable(pid: int, name: str) -> str:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), "")


@pytest.fixture(params=MPIRUNS, ids=str)
def job(request: pytest.FixtureRequest, own_directory: Path) -> Iterator[Running]:
    running = Running(request.param, own_directory)
    try:
        assert eventually(lambda: len(running.ranks()) == 3)
        yield running
    finally:
        kill_all(living(running.mark))
        running.launcher.wait()
        if running.launcher.stderr is not None:
            running.launcher.stderr.close()


def test_killed_mpirun(job: Running) -> None:
    (mpirun,) = job.named("mpirun", "mpiexec", "prterun")

    said = job.kill(mpirun)

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert re.search(r"mpi\S+ failed first: killed by SIGKILL", said), said
    assert job.report()["first_failure"]["rank"] == -1
    assert job.ends()


def test_killed_shim(job: Running) -> None:
    shim = parent_of(job.ranks()[1])

    said = job.kill(shim)

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"exit code 137: the shim of rank 1 (hccl_tools.launch.rank, pid {shim}) was killed" in said
    assert job.ends()[1] == "killed by SIGKILL"


def test_killed_daemon(job: Running) -> None:
    """MPICH's mpiexec has one on its own host; Open MPI's mpirun is one itself."""
    daemon = parent_of(parent_of(job.ranks()[1]))
    name = name_of(daemon)

    said = job.kill(daemon)

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"{name} (pid {daemon}) was killed" in said or "failed first: killed by SIGKILL" in said


def test_killed_rank(job: Running) -> None:
    said = job.kill(job.ranks()[2])

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert "rank 2 failed first: killed by SIGKILL" in said


def test_killed_keeper(job: Running) -> None:
    (keeper,) = job.named("hccl-keeper")

    job.kill(keeper)

    assert set(job.ends().values()) == {"killed by SIGKILL"}


@pytest.mark.parametrize("mpirun", MPIRUNS, ids=str)
def test_a_rank_that_only_sigkill_ends_is_in_the_report(own_directory: Path, mpirun: Mpirun) -> None:
    stubborn = 'trap "" TERM; : > ignores; while :; do sleep 1; done'
    failing = "until [ -e ignores ]; do sleep 0.05; done; exit 3"
    script = f"case $RANK_ID in 0) {stubborn};; 1) {failing};; esac; exec sleep 6262"
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "-n", "3", "--cpu", "--start", "torch",
         *mpirun.for_launch, "--grace", "1", "--no-python", "sh", "-c", script],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip

    report = json.loads((own_directory / "log" / "latest" / "report.json").read_text())
    assert done.returncode == 3, done.stderr
    ends = {end["rank"]: end["how"] for end in report["ranks"] if end["rank"] >= 0}
    assert ends.keys() == {0, 1, 2}
    assert (ends[0], ends[1]) == ("killed by SIGKILL", "exit code 3")


def test_launcher_and_all_that_guards_it_killed(job: Running) -> None:
    guards = job.named("hccl-keeper", "hccl-watcher")
    assert guards

    job.kill(job.launcher.pid, *guards)
