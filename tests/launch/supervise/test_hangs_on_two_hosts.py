"""A job of two hosts that hangs: the report combines what both hosts know of their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.mpiruns import every_remote_engine
from tests.support.spare_jobs import OnThreeHosts, SpareJob

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

#: Both ranks write a line and stop; a host under load may start its rank late.
DEADLOCK = """\
touch "up$RANK"
until [ -e up0 ] && [ -e up1 ]; do sleep 0.02; done
echo "step 5"
exec sleep 300
"""
HANG = ["--hang-timeout", "1", "--start", "torch", "--no-python", "sh", "-c"]


def report_of(bed: ThreeHosts, engine: Mpirun | Ssh, program: str) -> tuple[str, dict[str, Any]]:
    job = SpareJob(OnThreeHosts(bed, engine, reserve=()), *HANG, program)
    code, said, report = job.end()
    assert (code, report["reason"]) == (124, "hang"), said
    return said, report


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_deadlock_names_the_ranks_of_both_hosts(three_hosts: ThreeHosts, engine: Mpirun | Ssh) -> None:
    said, report = report_of(three_hosts, engine, DEADLOCK)

    first, second = (host.address for host in three_hosts.hosts[:2])
    hung = {(one["rank"], one["host"], one["doing"], one["last_line"]) for one in report["hung"]}
    sleeping = "sleeping in clock_nanosleep()"
    assert hung == {(0, first, sleeping, "step 5"), (1, second, sleeping, "step 5")}
    assert [one["idle"] for one in report["hung"] if not one["is_first"]] == [], report["hung"]
    assert "the job hung: ranks 0-1 stopped at the same time: sleeping in clock_nanosleep()" in said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_stopped_rank_is_first_and_what_the_other_host_waits_for_is_listed(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh
) -> None:
    program = "[ $RANK = 1 ] && kill -STOP $$; exec sleep 300"

    said, report = report_of(three_hosts, engine, program)

    assert [(one["rank"], one["is_first"]) for one in report["hung"]] == [(1, True), (0, False)]
    assert report["hung"][1]["doing"].startswith("sleeping in clock_nanosleep()")
    assert "rank 1 stopped first" in said
    assert "  rank 0: sleeping in clock_nanosleep()" in said
