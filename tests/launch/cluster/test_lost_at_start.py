"""Hosts that are lost, slow or never ready while a job starts on three hosts."""

from __future__ import annotations

import os
import re
import select
import signal
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import isolate
from tests.support.jobs import LONG, eventually
from tests.support.late_host import held_back
from tests.support.mpiruns import every_remote_engine
from tests.support.three_by import Job, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.three_hosts import ThreeHosts
    from tests.support.late_host import LateHost
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

OPTIONS = ("--start", "torch", "--grace", "1", "--host-timeout", "3")
TIMING = {"HCCL_TOOLS_TIMING": "start.notice=0.5,engine.end=0.5"}
#: This host has rank 2.
LATE = 1


@pytest.fixture
def late(three_hosts: ThreeHosts) -> Iterator[LateHost]:
    with held_back(three_hosts.hosts[LATE]) as found:
        yield found
        three_hosts.impair()


@pytest.fixture
def also_late(three_hosts: ThreeHosts) -> Iterator[LateHost]:
    """The host of rank 0."""
    with held_back(three_hosts.hosts[2]) as found:
        yield found


def start(bed: ThreeHosts, engine: Mpirun | Ssh, *options: str) -> Job:
    return Job(bed, Start("", engine), (*OPTIONS, *options), variables=TIMING)


@every_remote_engine
def test_a_host_that_is_cut_off_while_it_starts_is_named(
    three_hosts: ThreeHosts, late: LateHost, engine: Mpirun | Ssh
) -> None:
    job = start(three_hosts, engine)
    assert late.has_begun()
    three_hosts.impair(*isolate(late.host))

    (code,), (said,) = job.end(LONG)
    late.goes_on()
    three_hosts.impair()

    assert code in {125, 137}, said
    assert late.host.address in said
    assert eventually(lambda: not job.living()), said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_host_that_is_slow_to_start_is_named_and_awaited(
    three_hosts: ThreeHosts, late: LateHost, engine: Mpirun | Ssh
) -> None:
    job = start(three_hosts, engine)
    said, stdout = "", job.launchers[0].stdout
    assert stdout is not None
    while "still waiting for" not in said:
        assert select.select([stdout], [], [], LONG)[0], said
        said += os.read(stdout.fileno(), 1 << 16).decode()
    late.goes_on()

    assert job.is_up()
    # On a loaded machine the other hosts may be as late.
    named = rf"{late.host.address} \(rank 2\).* to start; the job ends after 300 s \(--join-timeout\)"
    assert re.search(named, said), said
    job.launchers[0].terminate()
    (code,), _ = job.end(LONG)
    assert code == 128 + signal.SIGTERM


@every_remote_engine
@pytest.mark.rotates("engine")
def test_hosts_that_are_never_ready_end_the_start(
    three_hosts: ThreeHosts, late: LateHost, also_late: LateHost, engine: Mpirun | Ssh
) -> None:
    job = start(three_hosts, engine, "--join-timeout", "2")

    (code,), (said,) = job.end(LONG)
    for one in (late, also_late):
        one.goes_on()

    assert code == 125, said
    why = "it was not ready within 2 s (--join-timeout)"
    # On a loaded machine the launcher's own host may be as late.
    assert (
        f"{late.host.address} does not start its part: {why}; the same for {also_late.host.address}" in said
    )
    (report,) = job.reports()
    assert sorted(end["rank"] for end in report["ranks"]) == [0, 1, 2]
    assert eventually(lambda: not job.living()), said
