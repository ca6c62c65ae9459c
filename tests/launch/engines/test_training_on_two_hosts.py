"""Real training over two hosts: rank r on its host and device, and as good as on one host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.mpiruns import MPIRUNS, Mpirun, Ssh
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.two_hosts import TwoHosts

pytestmark = MARKS
TRAINING = [sys.executable, str(SCRIPT), "--epochs", "4"]
#: Each rank says first where it is (a node of Slurm, else an address) and becomes the training then.
WHERE = 'echo "on ${SLURMD_NODENAME:-$(hostname -I)} $DEVICE_ID"; exec "$@"'
PROGRAM = ["--no-python", "sh", "-c", WHERE, "sh", *TRAINING]
START = ("--start", "auto")
#: Four ranks import MindSpore on as few as two cores.
PATIENCE_S = 300
ACCURACY = re.compile(r"^held-out accuracy: ([0-9.]+) ", re.MULTILINE)
CHECKSUM = re.compile(r"^rank \d of 4: checksum of the parameters ([0-9a-f]{8})$", re.MULTILINE)


@pytest.fixture(scope="module")
def accuracy_on_one_host(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What one process on one host reaches."""
    folder = tmp_path_factory.mktemp("one_host")
    done = subprocess.run(
        TRAINING, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = ACCURACY.findall(done.stdout)
    return float(found)


def check(logs: dict[int, Path], hosts: tuple[str, str], accuracy_on_one_host: float) -> None:
    seats = {rank: (hosts[host], device) for rank, (host, device) in two_by_two.SEATS.items()}
    assert two_by_two.seats_as_seen(logs) == seats
    texts = {rank: log.read_text() for rank, log in logs.items()}
    assert len({CHECKSUM.findall(text)[0] for text in texts.values()}) == 1
    (accuracy,) = ACCURACY.findall("".join(texts.values()))
    assert float(accuracy) >= 0.85
    assert abs(float(accuracy) - accuracy_on_one_host) <= 0.03


def logs_in(folder: Path) -> dict[int, Path]:
    found = (folder / "latest").resolve().glob("rank_?.log")
    return {int(log.stem.removeprefix("rank_")): log for log in found}


@pytest.mark.mpi
@pytest.mark.parametrize("engine", [*MPIRUNS[:1], Ssh()], ids=str)
def test_typed_once(two_hosts: TwoHosts, accuracy_on_one_host: float, engine: Mpirun | Ssh) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = [*two_by_two.command(hosts, *START, *engine.for_launch), *PROGRAM]

    done = two_hosts.first.run(command, env=two_by_two.environ(two_hosts), timeout=PATIENCE_S)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    check(logs_in(Path("log")), hosts, accuracy_on_one_host)


def test_typed_on_both_without_ssh(two_hosts: TwoHosts, accuracy_on_one_host: float) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, *START)
    started = [
        host.start(
            [*command, "--log-dir", host.namespace, *PROGRAM],
            env=two_by_two.environ(two_hosts),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for host in (two_hosts.first, two_hosts.second)
    ]
    said = [process.communicate(timeout=PATIENCE_S)[0] for process in started]

    assert [process.returncode for process in started] == [0, 0], "\n".join(said)[-6000:]
    logs = {**logs_in(Path(two_hosts.first.namespace)), **logs_in(Path(two_hosts.second.namespace))}
    check(logs, hosts, accuracy_on_one_host)


def test_typed_once_in_a_slurm_allocation(slurm_cluster: SlurmCluster, accuracy_on_one_host: float) -> None:
    hosts = ("n1", "n2")
    command = [*two_by_two.command(hosts, *START, "--engine", "slurm"), *PROGRAM]

    done = slurm_cluster.run(["salloc", "-N2", "--ntasks-per-node=1", *command], timeout=PATIENCE_S)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    check(logs_in(Path("log")), hosts, accuracy_on_one_host)
