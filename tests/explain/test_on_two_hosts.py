"""Jobs of two hosts that really fail: ``explain`` names the host and the rank that were at fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import LONG
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

#: Every rank says its process id and waits; rank 3 fails as its argument says.
SCRIPT = 'echo "pid $$"; [ "$RANK_ID" != 3 ] || eval "$0"; exec sleep 6171'


@pytest.fixture
def bed(two_hosts: TwoHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoHosts:
    monkeypatch.chdir(tmp_path)
    if not MPIRUNS:
        pytest.skip("no mpirun")
    return two_hosts


def started(bed: TwoHosts, action: str) -> subprocess.Popen[str]:
    """Start a job of two ranks on each host; rank 3, which is on the second, runs ``action``."""
    hosts = (bed.first.address, bed.second.address)
    options = (*MPIRUNS[0].for_launch, "--start", "torch", "--grace", "2", *two_by_two.SHORT_LOSS)
    command = [*two_by_two.command(hosts, *options), "--no-python", "sh", "-c", SCRIPT, action]
    return bed.first.start(
        command, env=two_by_two.environ(bed), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def first_line(bed: TwoHosts) -> str:
    done = bed.first.run([sys.executable, "-m", "hccl_tools", "explain"], env=two_by_two.environ(bed))
    assert done.returncode == 0, Path("log/latest/report.json").read_text()
    line: str = done.stdout.splitlines()[0]
    return line


def test_a_port_that_is_taken_on_the_other_host(bed: TwoHosts) -> None:
    said = "host nic listen start failed, port[60000], return[11]"
    job = started(bed, f'echo "{said}"; exit 1')
    job.communicate(timeout=LONG)
    line = first_line(bed)

    assert line.startswith("Rank 3 (device 5 of ")
    assert "table.json:" not in line  # That is the run's own copy, not the file to correct.
    assert "port 60000" in line


def test_a_rank_that_is_killed_on_the_other_host(bed: TwoHosts) -> None:
    job = started(bed, "kill -9 $$")
    job.communicate(timeout=LONG)
    line = first_line(bed)
    assert line.startswith("Rank 3 (device 5 of ")
    assert "killed by SIGKILL" in line
