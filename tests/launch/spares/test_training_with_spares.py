"""Real training that outlives a host: a spare takes its place, and the ranks resume from their checkpoint."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.mpiruns import MPIRUNS, Ssh
from tests.support.spare_jobs import InSlurm, OnThreeHosts, SpareJob
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.spare_jobs import Place

pytestmark = [*MARKS, pytest.mark.mpi]
#: Enough that a host is lost long before the end.
EPOCHS = 20
CHECKPOINT = "digits.ckpt"
TRAINING = ["--epochs", str(EPOCHS), "--checkpoint", CHECKPOINT]
ACCURACY = re.compile(r"^held-out accuracy: ([0-9.]+) ", re.MULTILINE)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The accuracy of the same training without a loss."""
    command = [sys.executable, str(SCRIPT), *TRAINING[:2]]
    done = subprocess.run(
        command, cwd=tmp_path_factory.mktemp("undisturbed"), capture_output=True, text=True, check=True
    )
    (accuracy,) = ACCURACY.findall(done.stdout)
    return float(accuracy)


@pytest.fixture(params=["ssh", "mpirun", "srun"])
def place(request: pytest.FixtureRequest, own_directory: Path) -> Iterator[Place]:
    assert own_directory
    found: Place
    if request.param == "srun":
        found = InSlurm(request.getfixturevalue("slurm_cluster"))
    elif request.param == "mpirun" and not MPIRUNS:
        pytest.skip("no mpirun")
    else:
        engine = MPIRUNS[0] if request.param == "mpirun" else Ssh()
        found = OnThreeHosts(request.getfixturevalue("three_hosts"), engine)
    yield found
    found.restore()


@pytest.fixture
def scripts(place: Place) -> Iterator[list[Path]]:
    """Put the script on each host's own disk."""
    own = [host.folder / "disk" / SCRIPT.name for host in place.hosts]
    everywhere = {*own, place.launching.folder / "disk" / SCRIPT.name}
    for path in everywhere:
        shutil.copyfile(SCRIPT, path)
    yield own
    for path in everywhere:
        path.unlink(missing_ok=True)


def kill_all(job: SpareJob, _script: Path) -> None:
    job.kill()


def cut(job: SpareJob, _script: Path) -> None:
    job.place.cut()


def fail_preflight(job: SpareJob, script: Path) -> None:
    """Have a rank fail on a host that then lacks the script: the host refuses its part of the restart."""
    host = job.place.hosts[1]
    ranks = [pid for pid, words in host.commands().items() if words[1:2] == [str(host.disk / SCRIPT.name)]]
    script.unlink()
    for rank in ranks:
        os.kill(rank, signal.SIGKILL)


@pytest.mark.parametrize(
    ("lose", "restarts"),
    [
        pytest.param(kill_all, 1, id="all is killed"),
        pytest.param(cut, 1, id="link is cut"),
        pytest.param(fail_preflight, 2, id="preflight fails"),
    ],
)
def test_training_continues_on_a_spare(
    place: Place,
    scripts: list[Path],
    lose: Callable[[SpareJob, Path], None],
    restarts: int,
    undisturbed: float,
) -> None:
    program = [str(place.launching.disk / SCRIPT.name), *TRAINING]
    job = SpareJob(place, "--python", sys.executable, "--max-restarts", "1", *program)
    assert job.waits_for(CHECKPOINT), job.launcher.communicate(timeout=60)[0]

    lose(job, scripts[1])

    code, said, report = job.end()
    assert (code, report["restarts"]) == (0, restarts), said
    check(place, report, said)
    assert abs(accuracy(restarts) - undisturbed) <= 0.02


def check(place: Place, report: dict[str, Any], said: str) -> None:
    """Check that terminal and report name the host, the spare and both fingerprints."""
    (replaced,) = report["replaced"]
    lost = place.hosts[1].address
    assert (replaced["host"], replaced["spare"], replaced["ranks"]) == (lost, place.spare, [1])
    before, after = replaced["table_before"], replaced["table_after"]
    assert before != after
    news = (
        f"{place.spare} takes the place of {lost} (rank 1); the table's fingerprint {before} becomes {after}"
    )
    assert f"{news}\n" in said


def accuracy(restarts: int) -> float:
    """Return the accuracy after so many restarts, having checked that both ranks have resumed."""
    logs = [Path(f"log/latest/rank_{rank}.restart_{restarts}.log").read_text() for rank in (0, 1)]
    for log in logs:
        (step,) = re.findall(r"^resumed from step (\d+)$", log, re.MULTILINE)
        assert 0 < int(step) < EPOCHS * 11
    (found,) = ACCURACY.findall(logs[0])
    return float(found)
