"""A node of a Slurm cluster that is lost or slow while a job starts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.daemons import program
from tests.support.jobs import LONG, eventually
from tests.support.late_host import held_back
from tests.support.spares import OPTIONS, write_table
from tests.support.three_by import STAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.slurm_cluster import SlurmCluster
    from tests.support.late_host import LateHost

pytestmark = [pytest.mark.bed, pytest.mark.slow]

LAUNCH = [
    *(sys.executable, "-m", "hccl_tools", "launch", "--engine", "slurm", "--product", "a2", "--cpu"),
    *("--start", "torch", "--rank-table", "table.json", *OPTIONS, *STAYS),
]


@pytest.fixture
def late(slurm_cluster: SlurmCluster, own_directory: Path) -> Iterator[LateHost]:
    """The second node, with rank 1 of the table."""
    host = slurm_cluster.second
    write_table(slurm_cluster.first.address, host.address)
    with held_back(host, host.folder / "disk" / "python") as found:
        yield found
        slurm_cluster.run([program("scancel"), "--user=root", "--signal=KILL"])
        assert eventually(lambda: slurm_cluster.is_idle)


@pytest.fixture
def job(slurm_cluster: SlurmCluster, late: LateHost) -> Iterator[subprocess.Popen[str]]:
    """A job that starts on both nodes."""
    variables = {"PYTHONPATH": f"{slurm_cluster.login.disk}/python", "HCCL_TOOLS_TIMING": "start.notice=0.5"}
    started = slurm_cluster.login.start(
        [program("salloc"), "-N2", "--ntasks-per-node=1", *LAUNCH],
        env=slurm_cluster.env | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    yield started
    started.kill()
    started.communicate()


def test_a_node_that_is_cut_off_while_the_job_starts_is_named(
    slurm_cluster: SlurmCluster, late: LateHost, job: subprocess.Popen[str]
) -> None:
    assert late.has_begun()
    late.host.cut_off()
    try:
        said = job.communicate(timeout=LONG)[0]
    finally:
        late.host.reconnect()

    assert job.returncode in {125, 128 + signal.SIGKILL}, said
    assert late.host.address in said
    # Slurm finds out by itself that the node is back.
    assert eventually(lambda: slurm_cluster.is_idle)


def test_a_node_that_is_slow_to_start_is_named_and_awaited(
    late: LateHost, job: subprocess.Popen[str]
) -> None:
    said, stdout = "", job.stdout
    assert stdout is not None
    while "still waiting for" not in said:
        assert select.select([stdout], [], [], LONG)[0], said
        said += os.read(stdout.fileno(), 1 << 16).decode()
    late.goes_on()

    assert eventually(lambda: all(Path(f"up_{rank}").exists() for rank in (0, 1)))
    assert f"{late.host.address} (rank 1)" in said
    job.terminate()
    job.communicate(timeout=LONG)
