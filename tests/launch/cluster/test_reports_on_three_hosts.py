"""What report.json says of a job on three hosts that share a run directory."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import every_remote_engine
from tests.support.processes import above, ancestors, has_ended, name_of, parent_of
from tests.support.three_by import BY_HAND, Job, Start, environ, host_of

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

OPTIONS = ("--start", "torch", "--grace", "1", "--host-timeout", "3")
#: A rank writes its process id; once it may go, rank 2 fails.
FAILS = """\
echo $$ > "new_$RANK_ID"; mv "new_$RANK_ID" "up_$RANK_ID"
until [ -e go ]; do sleep 0.05; done
[ $RANK_ID = 2 ] && exit 7
exec sleep 6464
"""
#: The rank that fails leaves a child that only SIGKILL ends.
LEAVES_A_CHILD = """\
[ $RANK_ID = 1 ] || exec sleep 6464
(trap "" TERM; : > ignores; while :; do sleep 1; done) &
until [ -e ignores ]; do sleep 0.05; done
exit 7
"""


def started(bed: ThreeHosts, engine: Mpirun | Ssh, script: str) -> Job:
    timing = {"HCCL_TOOLS_TIMING": "engine.end=0.5"}
    return Job(bed, Start("", engine), OPTIONS, ("--no-python", "sh", "-c", script), variables=timing)


def report_of(job: Job) -> dict[str, Any]:
    (report,) = job.reports()
    return report


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_supervisor_that_ends_after_the_launcher_changes_nothing(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh
) -> None:
    """It is stopped, and goes on when its parent has ended; its ranks then end with it."""
    job = started(three_hosts, engine, FAILS)
    assert job.is_up()
    stopped = above(job.pid(0))["supervisor"]
    os.kill(stopped, signal.SIGSTOP)
    Path("go").touch()

    (code,), (said,) = job.end(LONG)

    silent = job.names[host_of(0)]
    assert code == 7, said
    assert eventually(lambda: not job.living()), said
    assert has_ended(stopped)
    report = report_of(job)
    assert (report["exit_code"], report["first_failure"]["rank"]) == (7, 2)
    others = {name for name in job.names if name != silent}
    assert others <= {note["host"] for note in report["evidence"]}, report["evidence"]
    # Where the engine ends its processes there in time, the supervisor still reports.
    has_reported = {end["rank"]: end["how"] for end in report["ranks"]}[0] != "not reported"
    assert (
        f"no report from {silent}: stopped or unreachable; ranks may still run there" in said
    ) != has_reported


@every_remote_engine
@pytest.mark.rotates("engine")
def test_every_rank_is_in_the_report_although_a_process_needs_sigkill(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh
) -> None:
    job = started(three_hosts, engine, LEAVES_A_CHILD)

    (code,), (said,) = job.end(LONG)

    report = report_of(job)
    assert code == 7, said
    assert {end["rank"]: end["how"] for end in report["ranks"]} == {
        0: "killed by SIGTERM",
        1: "exit code 7",
        2: "killed by SIGTERM",
    }
    assert (report["first_failure"]["rank"], report["first_failure"]["host"]) == (1, job.names[0])
    assert [end["rank"] for end in report["consequences"]] == [0, 2]
    assert eventually(lambda: not job.living()), said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_the_engine_is_not_a_rank(three_hosts: ThreeHosts, engine: Mpirun | Ssh) -> None:
    job = started(three_hosts, engine, FAILS)
    assert job.is_up()
    daemon = above(job.pid(1))["daemon"]
    os.kill(
        next(pid for pid in ancestors(daemon) if name_of(parent_of(pid)) == "hccl-keeper"), signal.SIGKILL
    )

    (code,), (said,) = job.end(LONG)

    report = report_of(job)
    assert code == 137, said
    assert sorted(end["rank"] for end in report["ranks"]) == [0, 1, 2]
    assert report["first_failure"]["rank"] == -1
    assert report["first_failure"]["name"] not in {"rank 0", "scheduler"}
    assert eventually(lambda: not job.living()), said


@pytest.mark.parametrize("start", BY_HAND, ids=str)
def test_the_reports_of_all_launchers_are_explained_as_one_job(three_hosts: ThreeHosts, start: Start) -> None:
    job = Job(three_hosts, start, OPTIONS, ("--no-python", "sh", "-c", FAILS))
    assert job.is_up()
    Path("go").touch()
    codes, said = job.end(LONG)

    assert set(codes) == {7}, said
    explain = [sys.executable, "-m", "hccl_tools", "explain", *map(str, job.run_dirs())]
    text = job.hosts[0].run(explain, env=environ(three_hosts)).stdout
    assert text.startswith(f"Rank 2 (device 4 of {job.names[host_of(2)]}, address 192.168.1.4): "), text
    assert "exit code 7" in text.partition("\n")[0]
    done = job.hosts[0].run([*explain, "-f", "json"], env=environ(three_hosts))
    (cause,) = json.loads(done.stdout)["causes"]
    assert (cause["message"], cause["ranks"]) == ("HCM821", [2])
