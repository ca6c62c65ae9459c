"""A fault on one of three hosts ends the job on all, and each launcher names the right host."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.three_hosts import drop, flapping, isolate
from tests.support.jobs import LONG, eventually
from tests.support.processes import above, kill_all
from tests.support.three_by import BY_HAND, BY_SSH, ORDER, STARTS, Job, Start, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.beds.three_hosts import ThreeHosts

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow]

#: The faults are on this host, which has rank 2 and is no controller.
FAULTY = 1
KILLED = 128 + signal.SIGKILL
GRACE_S, HOST_TIMEOUT_S = 1.0, 3.0
OPTIONS = ("--start", "torch", "--grace", str(GRACE_S), "--host-timeout", str(HOST_TIMEOUT_S))
#: Shorter waits of the launcher for an engine that it has signalled.
TIMING = {"HCCL_TOOLS_TIMING": "engine.end=0.5"}

every_start = pytest.mark.parametrize("start", STARTS, ids=str)
by_hand = pytest.mark.parametrize("start", BY_HAND, ids=str)


@pytest.fixture
def begin(three_hosts: ThreeHosts, own_directory: Path) -> Iterator[Callable[..., Job]]:
    """Start jobs whose processes are killed when a test has failed."""
    started: list[Job] = []

    def start(*args: Any, **options: Any) -> Job:
        started.append(Job(three_hosts, *args, variables=TIMING, **options))
        return started[-1]

    yield start
    three_hosts.impair()
    for job in started:
        for launcher in job.launchers:
            launcher.kill()
            launcher.communicate()
        kill_all(job.living())


def ended(job: Job) -> tuple[list[int], list[str]]:
    """Wait for the end of a job, of which nothing may be left on any host."""
    codes, said = job.end(LONG)
    assert eventually(lambda: not job.living()), (job.living(), said)
    return codes, said


def lost(job: Job, index: int) -> str:
    """Return what the launchers say of the loss of a host."""
    rank = ORDER.index(index)
    return f"lost contact with the {job.start.supervisor} on {job.names[index]} (rank {rank}): "


def check_loss(job: Job, codes: list[int], said: list[str], *, of: int) -> None:
    """Check that all launchers but that of the lost host name it, on the terminal and in the report."""
    others = [index for index in range(len(codes)) if index != of]
    assert [codes[index] for index in others] == [KILLED] * len(others), said
    for index in others:
        assert lost(job, of) in said[index]
    reports = [report["detail"] for report in job.reports()]
    assert sum(lost(job, of) in detail for detail in reports) >= len(others), reports


@every_start
def test_killed_rank(begin: Callable[..., Job], start: Start) -> None:
    job = begin(start, OPTIONS)
    assert job.is_up()
    os.kill(job.pid(ORDER.index(FAULTY)), signal.SIGKILL)
    codes, said = ended(job)

    assert set(codes) == {KILLED}, said
    for text, report in zip(said, job.reports(), strict=True):
        assert f"rank {ORDER.index(FAULTY)} failed first: killed by SIGKILL" in text
        assert f"host {job.names[FAULTY]}" in text
        assert report["first_failure"]["host"] == job.names[FAULTY]


@every_start
@pytest.mark.rotates("start")
def test_killed_supervisor(begin: Callable[..., Job], start: Start) -> None:
    job = begin(start, OPTIONS)
    assert job.is_up()
    os.kill(above(job.pid(ORDER.index(FAULTY)))["supervisor"], signal.SIGKILL)
    codes, said = ended(job)

    check_loss(job, codes, said, of=FAULTY)


@every_start
@pytest.mark.rotates("start")
def test_killed_controller(begin: Callable[..., Job], start: Start) -> None:
    job = begin(start, OPTIONS)
    assert job.is_up()
    if start.engine:
        job.launchers[0].kill()
        codes, _ = ended(job)
        assert codes == [-signal.SIGKILL]
        return
    os.kill(above(job.pid(0))["supervisor"], signal.SIGKILL)
    codes, said = ended(job)

    check_loss(job, codes, said, of=start.controller)


@every_start
@pytest.mark.rotates("start")
@pytest.mark.parametrize("ways", ["both", "one"])
def test_cut_link(begin: Callable[..., Job], start: Start, ways: str) -> None:
    job = begin(start, OPTIONS)
    assert job.is_up()
    faulty, controller = (job.bed.hosts[index] for index in (FAULTY, start.controller))
    one_way = (drop(source=faulty.address, target=controller.address),)
    with job.bed.impaired(*(isolate(faulty) if ways == "both" else one_way)):
        # The cut-off host ends its ranks by itself.
        codes, said = ended(job)

    check_loss(job, codes, said, of=FAULTY)
    if not start.engine:
        assert codes[FAULTY] == KILLED
        assert lost(job, start.controller) in said[FAULTY]


@pytest.mark.parametrize("start", [BY_SSH, BY_HAND[1]], ids=str)
def test_link_that_flaps_for_less_than_the_host_timeout_ends_nothing(
    begin: Callable[..., Job], start: Start
) -> None:
    waits = 'echo $$ > "up_$RANK_ID"; until [ -e go ]; do sleep 0.1; done'
    job = begin(start, (*OPTIONS, "--host-timeout", "20"), ("--no-python", "sh", "-c", waits))
    assert job.is_up()
    before = job.bed.lost(socket.IPPROTO_TCP)
    with job.bed.impaired(*flapping(job.bed.hosts[FAULTY], period=0.5)):
        assert eventually(lambda: job.bed.lost(socket.IPPROTO_TCP) > before + 3)
    Path("go").touch()
    codes, said = ended(job)

    assert set(codes) == {0}, said


@by_hand
def test_another_table_on_one_host(three_hosts: ThreeHosts, begin: Callable[..., Job], start: Start) -> None:
    other = table([host.address for host in three_hosts.hosts], 3)
    other["server_list"][0]["device"][0]["device_ip"] = "192.168.9.9"
    job = begin(start, OPTIONS, own_tables={FAULTY: other})
    codes, said = ended(job)

    assert codes == [125] * 3, said
    for text in said:
        assert "fingerprint of the rank table: " in text
        assert f"{job.names[FAULTY]} has " in text
    assert not list(Path().glob("up_*"))
