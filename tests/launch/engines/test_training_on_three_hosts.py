"""Real training over three hosts by what does not train over two; ranks meet by IPv4 and IPv6 addresses."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.three_by import BY_HAND, BY_SSH, STARTS, Job, Start, host_of
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts

pytestmark = [*MARKS, pytest.mark.mpi]
TRAINING = [sys.executable, str(SCRIPT), "--epochs", "1", "--batch_size", "96"]
PROGRAM = ["--no-python", "sh", "-c", 'echo "on $(hostname)"; exec "$@"', "sh", *TRAINING]
PATIENCE_S = 300
CHECKSUM = re.compile(r"^rank \d of 3: checksum of the parameters ([0-9a-f]{8})$", re.MULTILINE)


def check(job: Job) -> None:
    """Check that each rank trained on its host and has the parameters that the others have."""
    codes, said = job.end(PATIENCE_S)
    assert set(codes) == {0}, "\n".join(text[-3000:] for text in said)
    texts = {rank: log.read_text() for rank, log in job.logs().items()}
    hosts = job.bed.hosts
    assert {rank: text.split("\n", 1)[0] for rank, text in texts.items()} == {
        rank: f"on {hosts[host_of(rank)].name}" for rank in range(3)
    }
    assert len({CHECKSUM.findall(text)[0] for text in texts.values()}) == 1
    assert not job.living()


@pytest.mark.usefixtures("own_directory")
@pytest.mark.parametrize("start", [start for start in STARTS if str(start) in {"system", "mpich"}], ids=str)
def test_training(three_hosts: ThreeHosts, start: Start) -> None:
    check(Job(three_hosts, start, program=PROGRAM))


@pytest.mark.usefixtures("own_directory")
@pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("start", [BY_SSH, BY_HAND[1]], ids=str)
def test_ranks_meet(three_hosts: ThreeHosts, start: Start, ipv6: bool) -> None:
    program = ["--no-python", "sh", "-c", 'echo "on $(hostname)"; echo "$MASTER_ADDR"']

    job = Job(three_hosts, start, ["--start", "torch"], program, ipv6=ipv6)
    codes, said = job.end(PATIENCE_S)

    assert set(codes) == {0}, said
    assert {log.read_text().split()[2] for log in job.logs().values()} == {job.names[host_of(0)]}
