"""What goes wrong on the other host ends the job on both, and the right host is named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import REMOTE_ENGINES, every_remote_engine
from tests.support.processes import ancestors, name_of, parent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

#: The grace time of the job.
GRACE_S = 2.0
#: Ranks that nothing but a signal ends: such as are quiet, and such as always have output on its way.
QUIET = ["--no-python", "sleep", "6161"]
TALKING = ["--no-python", "sh", "-c", "while :; do echo 'always something to say'; sleep 0.01; done"]
#: Rank 3 fails when the others are up.
FAILS_AFTER_ALL = """\
[ $RANK_ID = 3 ] || { sleep 6363 & wait; }
until [ -e up_0 ] && [ -e up_1 ] && [ -e up_2 ]; do sleep 0.05; done
exit 4"""


def command_of(pid: int) -> tuple[str, ...]:
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1])
    except OSError:
        return ()


def ranks_on(host: Host) -> dict[int, int]:
    """Return the ranks that run on a host, with their process ids."""
    found = {}
    for pid in host.pids():
        if command_of(pid) in {tuple(QUIET[1:]), tuple(TALKING[1:])}:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            (rank,) = [word for word in environment if word.startswith(b"RANK_ID=")]
            found[int(rank.partition(b"=")[2])] = pid
    return found


def supervisor_on(host: Host) -> int:
    """Return the process id of a host's supervisor: the one whose parent is none of ours."""
    ours = [pid for pid in host.pids() if "hccl_tools.launch" in command_of(pid)]
    (supervisor,) = [pid for pid in ours if parent_of(pid) not in ours]
    return supervisor


@dataclass
class Running:
    """A job that runs on both hosts, started on the first with mpirun."""

    bed: TwoHosts
    launcher: subprocess.Popen[str]

    def end(self) -> str:
        """Wait for the launcher's end and that of all processes of the job; return what it said."""
        _, said = self.launcher.communicate(timeout=LONG)
        hosts = (self.bed.first, self.bed.second)
        assert eventually(lambda: not any(ranks_on(host) for host in hosts)), said
        return said


@pytest.fixture
def program() -> list[str]:
    return QUIET


@pytest.fixture(params=REMOTE_ENGINES, ids=str)
def job(request: pytest.FixtureRequest, two_hosts: TwoHosts, program: list[str]) -> Iterator[Running]:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    engine: Mpirun | Ssh = request.param
    options = (*engine.for_launch, "--start", "torch", "--grace", str(GRACE_S), *two_by_two.SHORT_LOSS)
    launcher = two_hosts.first.start(
        [*two_by_two.command(hosts, *options), *program],
        env=two_by_two.environ(two_hosts),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    running = Running(two_hosts, launcher)
    seats = [{rank for rank, (host, _) in two_by_two.SEATS.items() if host == index} for index in (0, 1)]
    assert eventually(lambda: [set(ranks_on(host)) for host in (two_hosts.first, two_hosts.second)] == seats)
    yield running
    if launcher.poll() is None:
        launcher.terminate()
        launcher.communicate()


def test_killed_rank(job: Running) -> None:
    os.kill(ranks_on(job.bed.second)[3], signal.SIGKILL)

    said = job.end()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert "rank 3 failed first: killed by SIGKILL" in said
    assert f"host {job.bed.second.address}" in said


@pytest.mark.rotates("job")
def test_killed_supervisor(job: Running) -> None:
    os.kill(supervisor_on(job.bed.second), signal.SIGKILL)

    said = job.end()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"lost contact with the supervisor on {job.bed.second.address} (ranks 0, 3): " in said


@pytest.mark.rotates("job")
def test_killed_daemon(job: Running) -> None:
    """The engine's own process there: mpirun of Open MPI 5 exits with 0 then, MPICH's mpiexec waits."""
    daemon = parent_of(supervisor_on(job.bed.second))
    name = Path(f"/proc/{daemon}/comm").read_text().strip()
    os.kill(daemon, signal.SIGKILL)

    said = job.end()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert name in {"prted", "orted", "hydra_pmi_proxy", "sshd"}
    assert f"exit code 137: {job.bed.second.address}: {name} (pid {daemon}) was killed" in said


@pytest.mark.rotates("job")
def test_killed_mpirun(job: Running) -> None:
    programs = {
        "mpirun.openmpi",
        "mpirun",
        "mpiexec.mpich",
        "prterun",
        "hccl_tools.launch.engines.remote_shell",
    }
    (engine,) = [
        pid for pid in job.bed.first.pids() if programs & {Path(word).name for word in command_of(pid)[:4]}
    ]
    os.kill(engine, signal.SIGKILL)

    said = job.end()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    here = job.bed.first.address  # Rank 0 has the other host.
    by_its_supervisor = rf"exit code 137: {here}: \S+ \(pid {engine}\) was killed"
    by_the_launcher = rf"(mpi\S+|ssh) failed first: killed by SIGKILL .*\(host {here}, pid "
    assert re.search(f"{by_the_launcher}|{by_its_supervisor}", said), said


@pytest.mark.rotates("job")
def test_killed_keeper(job: Running) -> None:
    supervisor = supervisor_on(job.bed.second)
    (keeper,) = [
        pid for pid in job.bed.second.pids() if name_of(pid) == "hccl-keeper" and supervisor in ancestors(pid)
    ]
    os.kill(keeper, signal.SIGKILL)

    said = job.end()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"the keeper process on {job.bed.second.address} was killed" in said


@pytest.mark.rotates("job")
@pytest.mark.parametrize("program", [QUIET, TALKING], ids=["quiet", "talking"])
def test_cut_link(job: Running) -> None:
    job.bed.second.cut_off()
    try:
        said = job.end()
    finally:
        job.bed.second.reconnect()

    assert job.launcher.returncode == 128 + signal.SIGKILL, said
    assert f"lost contact with the supervisor on {job.bed.second.address} (ranks 0, 3): " in said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_ranks_of_other_hosts_have_the_grace_time(two_hosts: TwoHosts, engine: Mpirun | Ssh) -> None:
    """Open MPI 4 would leave them 2 s, were it not for the supervisors' own word."""
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, *engine.for_launch, "--start", "torch", "--grace", "20")
    saves = 'trap "sleep 4; echo saved; exit" TERM; touch up_$RANK_ID; ' + FAILS_AFTER_ALL

    done = two_hosts.first.run(
        [*command, "--no-python", "sh", "-c", saves], env=two_by_two.environ(two_hosts)
    )

    assert done.returncode == 4, done.stderr
    assert [Path(f"log/latest/rank_{rank}.log").read_text() for rank in (0, 1, 2)] == ["saved\n"] * 3
