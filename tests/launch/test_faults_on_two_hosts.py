"""What goes wrong on the other host ends the job on both, in a stated time, and the right host is named."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.two_hosts import Host, TwoHosts

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

#: Seconds that the guide states: from a death to the end of the job, and from the loss of a host.
DEATH_S, LOSS_S = 10.0, 40.0
#: A rank that nothing but a signal ends.
PROGRAM = ["--no-python", "sleep", "6161"]


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def ranks_on(host: Host) -> dict[int, int]:
    """Return the ranks that run on a host, with their process ids."""
    found = {}
    for pid in host.pids():
        if command_of(pid) == PROGRAM[1:]:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            (rank,) = [word for word in environment if word.startswith(b"RANK_ID=")]
            found[int(rank.partition(b"=")[2])] = pid
    return found


def supervisor_on(host: Host) -> int:
    """Return the process id of a host's supervisor: the one whose parent is none of ours."""
    ours = [pid for pid in host.pids() if "hccl_tools.launch" in command_of(pid)]
    (supervisor,) = [pid for pid in ours if _parent(pid) not in ours]
    return supervisor


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass
class Running:
    """A job that runs on both hosts, started on the first with mpirun."""

    bed: TwoHosts
    launcher: subprocess.Popen[str]

    def end(self, within: float) -> str:
        """Wait for the launcher's end and that of all processes of the job; return what it said."""
        began = time.monotonic()
        _, said = self.launcher.communicate(timeout=within)
        hosts = (self.bed.first, self.bed.second)
        left = within - (time.monotonic() - began)
        assert eventually(lambda: not any(ranks_on(host) for host in hosts), left), said
        return said


@pytest.fixture(params=two_by_two.mpiruns(), ids=str)
def job(request: pytest.FixtureRequest, two_hosts: TwoHosts) -> Iterator[Running]:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    options = ("--engine", "mpirun", "--start", "torch", "--grace", "2")
    launcher = two_hosts.first.start(
        [*two_by_two.command(hosts, *options), *PROGRAM],
        env=two_by_two.environ(two_hosts, request.param),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    running = Running(two_hosts, launcher)
    seats = [{rank for rank, (host, _) in two_by_two.SEATS.items() if host == index} for index in (0, 1)]
    assert eventually(lambda: [set(ranks_on(host)) for host in (two_hosts.first, two_hosts.second)] == seats)
    time.sleep(0.5)
    yield running
    if launcher.poll() is None:
        launcher.terminate()
        launcher.communicate()


def test_killed_rank(job: Running) -> None:
    os.kill(ranks_on(job.bed.second)[3], signal.SIGKILL)

    said = job.end(DEATH_S)

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert "rank 3 failed first: killed by SIGKILL" in said
    assert f"host {job.bed.second.address}" in said


def test_killed_supervisor(job: Running) -> None:
    os.kill(supervisor_on(job.bed.second), signal.SIGKILL)

    said = job.end(DEATH_S)

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"supervisor on {job.bed.second.address} (ranks 0, 3) ended without a word" in said


def test_cut_link(job: Running) -> None:
    job.bed.second.cut_off()
    try:
        said = job.end(LOSS_S)
    finally:
        job.bed.second.reconnect()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"supervisor on {job.bed.second.address} (ranks 0, 3) ended without a word" in said
