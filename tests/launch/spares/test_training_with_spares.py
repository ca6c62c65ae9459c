"""Real training that outlives a host: a spare takes its place, and the ranks resume from their checkpoint."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import LONG
from tests.support.mpiruns import MPIRUNS, Ssh
from tests.support.spare_jobs import InSlurm, OnThreeHosts, SpareJob
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.spare_jobs import Place

pytestmark = [*MARKS, pytest.mark.usefixtures("own_directory")]
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


@contextmanager
def scripts(place: Place) -> Iterator[None]:
    """Put the script on each host's own disk, and make the hosts what they were in the end."""
    everywhere = {host.folder / "disk" / SCRIPT.name for host in (*place.hosts, place.launching)}
    for path in everywhere:
        shutil.copyfile(SCRIPT, path)
    try:
        yield
    finally:
        place.restore()
        for path in everywhere:
            path.unlink(missing_ok=True)


def test_by_ssh(three_hosts: ThreeHosts, undisturbed: float) -> None:
    continues_on_a_spare(OnThreeHosts(three_hosts, Ssh()), SpareJob.kill, undisturbed)


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_by_mpirun(three_hosts: ThreeHosts, undisturbed: float) -> None:
    continues_on_a_spare(OnThreeHosts(three_hosts, MPIRUNS[0]), SpareJob.cut, undisturbed)


def test_in_slurm(slurm_cluster: SlurmCluster, undisturbed: float) -> None:
    continues_on_a_spare(InSlurm(slurm_cluster), SpareJob.kill, undisturbed)


def continues_on_a_spare(place: Place, lose: Callable[[SpareJob], None], undisturbed: float) -> None:
    """Train, lose the second host after a checkpoint, and check what the spare has made of it."""
    with scripts(place):
        program = [str(place.launching.disk / SCRIPT.name), *TRAINING]
        job = SpareJob(place, "--python", sys.executable, "--max-restarts", "1", *program)
        assert job.waits_for(CHECKPOINT), job.launcher.communicate(timeout=LONG)[0]

        lose(job)

        code, said, report = job.end()
        assert (code, report["restarts"]) == (0, 1), said
        check(place, report, said)
        assert abs(accuracy() - undisturbed) <= 0.02


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


def accuracy() -> float:
    """Return the accuracy after the restart, having checked that both ranks have resumed."""
    logs = [Path(f"log/latest/rank_{rank}.restart_1.log").read_text() for rank in (0, 1)]
    for log in logs:
        (step,) = re.findall(r"^resumed from step (\d+)$", log, re.MULTILINE)
        assert 0 < int(step) < EPOCHS * 11
    (found,) = ACCURACY.findall(logs[0])
    return float(found)
