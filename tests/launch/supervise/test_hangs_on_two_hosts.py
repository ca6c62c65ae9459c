"""A job of two hosts that hangs: the report combines what both hosts know of their ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import LONG
from tests.support.mpiruns import every_remote_engine
from tests.support.spare_jobs import OnThreeHosts, SpareJob
from tests.support.three_by import BY_SSH, STARTS, Job, Start, host_of
from tests.support.torch_python import TORCH_PYTHON, needs_torch

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


#: Rank 1 computes for much longer than the others may do nothing; they go on some time after its end.
EVALUATION = """\
touch "up$RANK"
until [ -e up0 ] && [ -e up1 ] && [ -e up2 ]; do sleep 0.02; done
[ $RANK = 1 ] || { until [ -e done ]; do sleep 0.7; done; exit 0; }
timeout 5 sh -c 'while :; do :; done'
touch done
"""
#: The same with torch: the others wait in a collective of gloo.
TORCH_EVALUATION = """\
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(3):
    print("step", step, flush=True)
    dist.all_reduce(torch.ones(1))
end = time.monotonic() + 4
while dist.get_rank() == 1 and time.monotonic() < end:
    pass
dist.barrier()
dist.destroy_process_group()
"""
#: The ranks differ in nothing but where their Python sleeps.
ODD_ONE = """\
import os, time
def reduce(): time.sleep(1000)
def load(): time.sleep(1000)
load() if os.environ["RANK"] == "1" else reduce()
"""


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


@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_hosts_whose_ranks_wait_for_one_that_computes_do_not_hang(
    three_hosts: ThreeHosts, start: Start
) -> None:
    options = ("--hang-timeout", "2", "--start", "torch", "--grace", "1")
    job = Job(three_hosts, start, options, ("--no-python", "sh", "-c", EVALUATION))

    codes, said = job.end(LONG)

    assert set(codes) == {0}, said


@needs_torch
def test_torch_ranks_that_wait_for_one_that_computes_do_not_hang(three_hosts: ThreeHosts) -> None:
    Path("train.py").write_text(TORCH_EVALUATION)
    options = ("--hang-timeout", "2", "--start", "torch", "--python", TORCH_PYTHON)
    job = Job(three_hosts, BY_SSH, options, (str(Path("train.py").resolve()),))

    codes, said = job.end(LONG)

    assert codes == [0], said


@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_the_rank_whose_stack_differs_is_first_with_its_host(three_hosts: ThreeHosts, start: Start) -> None:
    Path("train.py").write_text(ODD_ONE)
    options = ("--hang-timeout", "1", "--start", "torch", "--grace", "1")
    job = Job(three_hosts, start, options, (str(Path("train.py").resolve()),))

    codes, said = job.end(LONG)

    assert set(codes) == {124}, said
    host = job.names[host_of(1)]
    assert f"  rank 1 stopped first (host {host}, pid " in said[0]
    report = job.reports()[0]
    assert (report["hung"][0]["rank"], report["hung"][0]["is_first"]) == (1, True)
    assert any("in load" in line for line in report["hung"][0]["stack"])
