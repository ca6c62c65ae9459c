"""Real training over hosts by each engine; ranks meet by IPv4 and IPv6 addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.three_by import BY_HAND, BY_SSH, STARTS, Job, Start, host_of
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.three_hosts import ThreeHosts

pytestmark = [*MARKS, pytest.mark.mpi, pytest.mark.usefixtures("own_directory")]
TRAINING = [sys.executable, str(SCRIPT), "--epochs", "1", "--batch_size", "96"]
#: Each rank says first where it is (a node of Slurm, else a host) and becomes the training then.
WHERE = 'echo "on ${SLURMD_NODENAME:-$(hostname)} $DEVICE_ID"; exec "$@"'
PROGRAM = ["--no-python", "sh", "-c", WHERE, "sh", *TRAINING]
#: Several ranks import MindSpore on as few as two cores.
PATIENCE_S = 300
CHECKSUM = re.compile(r"^rank \d of (\d): checksum of the parameters ([0-9a-f]{8})$", re.MULTILINE)


def check(logs: dict[int, Path], seats: dict[int, tuple[str, int]]) -> None:
    """Check that each rank trained at its place and has the parameters that the others have."""
    assert two_by_two.seats_as_seen(logs) == seats
    found = {rank: CHECKSUM.findall(log.read_text()) for rank, log in logs.items()}
    ((size, _),) = found[0]
    assert int(size) == len(seats)
    assert all(each == found[0] for each in found.values())


@pytest.mark.parametrize("start", [start for start in STARTS if not start.has_key], ids=str)
def test_training(three_hosts: ThreeHosts, start: Start) -> None:
    job = Job(three_hosts, start, ["--start", "auto"], PROGRAM)

    codes, said = job.end(PATIENCE_S)

    assert set(codes) == {0}, "\n".join(text[-3000:] for text in said)
    check(job.logs(), {rank: (three_hosts.hosts[host_of(rank)].name, 4) for rank in range(3)})
    assert not job.living()


def test_training_in_a_slurm_allocation(slurm_cluster: SlurmCluster) -> None:
    hosts = ("n1", "n2")
    command = [*two_by_two.command(hosts, "--start", "auto", "--engine", "slurm"), *PROGRAM]

    done = slurm_cluster.run(["salloc", "-N2", "--ntasks-per-node=1", *command], timeout=PATIENCE_S)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    logs = {int(log.stem[-1]): log for log in Path("log/latest").glob("rank_?.log")}
    check(logs, {rank: (hosts[host], device) for rank, (host, device) in two_by_two.SEATS.items()})


@pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("start", [BY_SSH, BY_HAND[1]], ids=str)
def test_ranks_meet(three_hosts: ThreeHosts, start: Start, ipv6: bool) -> None:
    program = ["--no-python", "sh", "-c", 'echo "on $(hostname)"; echo "$MASTER_ADDR"']

    job = Job(three_hosts, start, ["--start", "torch"], program, ipv6=ipv6)
    codes, said = job.end(PATIENCE_S)

    assert set(codes) == {0}, said
    assert {log.read_text().split()[2] for log in job.logs().values()} == {job.names[host_of(0)]}
