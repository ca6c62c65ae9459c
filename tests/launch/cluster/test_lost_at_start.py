"""Hosts that are lost, slow or never ready while a job starts on three hosts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import isolate
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import every_remote_engine
from tests.support.processes import is_supervisor
from tests.support.three_by import Job, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

OPTIONS = ("--start", "torch", "--grace", "1", "--host-timeout", "3")
TIMING = {"HCCL_TOOLS_TIMING": "start.notice=0.5,engine.end=0.5"}
#: This host has rank 2.
LATE = 1


@pytest.fixture
def bed(three_hosts: ThreeHosts) -> Iterator[ThreeHosts]:
    yield three_hosts
    three_hosts.impair()


def starting(bed: ThreeHosts, engine: Mpirun | Ssh, *options: str) -> tuple[Job, int]:
    """Start a job; return it with the supervisor of the late host, which has just appeared."""
    job = Job(bed, Start("", engine), (*OPTIONS, *options), variables=TIMING)
    found: list[int] = []

    def has_appeared() -> bool:
        found.extend(filter(is_supervisor, bed.hosts[LATE].pids()))
        return bool(found)

    assert eventually(has_appeared)
    return job, found[0]


@every_remote_engine
def test_a_host_that_is_cut_off_while_it_starts_is_named(bed: ThreeHosts, engine: Mpirun | Ssh) -> None:
    job, _ = starting(bed, engine)
    bed.impair(*isolate(bed.hosts[LATE]))

    (code,), (said,) = job.end(LONG)
    bed.impair()

    assert code in {125, 137}, said
    assert bed.hosts[LATE].address in said
    assert eventually(lambda: not job.living()), said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_host_that_is_slow_to_start_is_named_and_awaited(bed: ThreeHosts, engine: Mpirun | Ssh) -> None:
    job, supervisor = starting(bed, engine)
    os.kill(supervisor, signal.SIGSTOP)
    said = ""
    stdout = job.launchers[0].stdout
    assert stdout is not None
    while "still waiting for" not in said:
        said = stdout.readline()
        assert said, job.end(LONG)
    os.kill(supervisor, signal.SIGCONT)

    assert job.is_up()
    assert f"{bed.hosts[LATE].address} (rank 2) to start; the job ends after 300 s (--join-timeout)" in said
    job.launchers[0].terminate()
    (code,), _ = job.end(LONG)
    assert code == 128 + signal.SIGTERM


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_host_that_is_never_ready_ends_the_start(bed: ThreeHosts, engine: Mpirun | Ssh) -> None:
    job, supervisor = starting(bed, engine, "--join-timeout", "2")
    os.kill(supervisor, signal.SIGSTOP)

    (code,), (said,) = job.end(LONG)

    late = bed.hosts[LATE].address
    assert code == 125, said
    assert f"{late} does not start its part: it was not ready within 2 s (--join-timeout)" in said
    (report,) = job.reports()
    assert sorted(end["rank"] for end in report["ranks"]) == [0, 1, 2]
    with suppress(ProcessLookupError):  # Where its parent has ended, it has been continued, and has ended.
        os.kill(supervisor, signal.SIGCONT)
    assert eventually(lambda: not job.living()), said
