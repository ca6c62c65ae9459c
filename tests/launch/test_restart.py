"""``--max-restarts`` from the command line: on this host, as MPI processes, and over two hosts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import published, two_by_two
from tests.support.mpiruns import every_remote_engine

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun, Ssh

#: Rank 1 fails, once all ranks are up, until it has been started for the second time.
ONCE = """echo up $HCCL_TOOLS_RESTART; touch up.$RANK_ID; [ "$RANK_ID" != 1 ] || [ -e been.here ] || {
    while [ "$(ls up.* | wc -l)" -lt "$RANK_SIZE" ]; do sleep 0.01; done; touch been.here; exit 7; }"""
LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--max-restarts", "2", "--grace", "2")


def mpiruns() -> list[Any]:
    found = [path for folder in (str(Path(sys.executable).parent), "/usr/bin")
             if (path := shutil.which("mpirun", path=folder))]  # fmt: skip
    return found or [pytest.param("", marks=pytest.mark.skip("no mpirun"))]


def launch(*args: str, mpirun: str = "") -> subprocess.CompletedProcess[str]:
    path = f"{Path(mpirun).parent}:{os.environ['PATH']}" if mpirun else os.environ["PATH"]
    command = [*LAUNCH, *args, "--no-python", "sh", "-c"]
    return subprocess.run(
        [*command, ONCE], capture_output=True, text=True, timeout=180, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip


def check(run_dir: Path) -> None:
    """Both starts have logs of their own, and the report tells of the second."""
    for rank in (0, 1):
        assert (run_dir / f"rank_{rank}.log").read_text() == "up 0\n"
        assert (run_dir / f"rank_{rank}.restart_1.log").read_text() == "up 1\n"
    report = published.read("report", run_dir / "report.json")
    assert (report["exit_code"], report["restarts"]) == (0, 1)


def write_table(address: str = "192.168.0.1") -> None:
    device = {"device_id": "0", "device_ip": address, "rank_id": "0"}
    server = {"server_id": "127.0.0.1", "device": [device], "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    Path("table.json").write_text(json.dumps(table))


def failing(*options: str) -> subprocess.CompletedProcess[str]:
    """A job on this host whose ranks always fail, with two restarts allowed."""
    command = [*LAUNCH, *options, "--no-table", "-n", "1", "--no-python", "sh", "-c", "exit 7"]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(("causes", "restarts"), [("rank-failed", 2), ("hang,rank_failed", 2), ("hang", 0)])
def test_a_restart_follows_only_the_causes_that_were_named(causes: str, restarts: int) -> None:
    done = failing("--restart-on", causes)

    assert done.returncode == 7
    assert done.stderr.count("starting all ranks again") == restarts
    assert json.loads(Path("log/latest/report.json").read_text())["restarts"] == restarts


def test_restarts_are_limited_per_hour() -> None:
    done = failing("--max-restarts-per-hour", "1")

    assert done.returncode == 7
    assert done.stderr.count("starting all ranks again") == 1
    assert "no restart: --max-restarts-per-hour 1: 1 in the last 0." in done.stderr


def test_a_delay_precedes_a_restart() -> None:
    done = failing("--restart-delay", "0.5")

    assert done.stderr.count("the ranks are started again in 0.5 s") == 2
    assert json.loads(Path("log/latest/report.json").read_text())["duration"] >= 1.0


def test_an_interrupt_ends_the_delay_and_the_job() -> None:
    command = [*LAUNCH, "--restart-delay", "1h", "--no-table", "-n", "1", "--no-python", "sh", "-c", "exit 7"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr is not None
        while "again in 1 h" not in job.stderr.readline():
            assert job.poll() is None
        job.send_signal(signal.SIGINT)
        said = job.stderr.read()

    assert job.returncode == 130
    assert "exit code 130: the launcher received SIGINT" in said


def test_all_ranks_of_this_host_start_again() -> None:
    done = launch("--no-table", "-n", "2")

    assert done.returncode == 0, done.stderr
    check(Path("log/latest").resolve())


@pytest.mark.mpi
@pytest.mark.parametrize("mpirun", mpiruns())
def test_mpi_processes_start_again(mpirun: str) -> None:
    done = launch("-n", "2", "--engine", "mpirun", mpirun=mpirun)

    assert done.returncode == 0, done.stderr
    check(Path("log/latest").resolve())


def test_a_table_that_has_changed_is_not_started_again() -> None:
    write_table()
    Path("other.json").write_text(Path("table.json").read_text().replace("192.168.0.1", "192.168.0.9"))
    program = ["--no-python", "sh", "-c", "cp other.json table.json; exit 3"]

    done = subprocess.run(
        [*LAUNCH, "--rank-table", "table.json", "--cpu", "--start", "table", *program],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip

    assert done.returncode == 3
    assert "has changed since the job started" in done.stderr
    assert not Path("log/latest/rank_0.restart_1.log").exists()


def test_why_a_table_cannot_be_used_any_more_is_readable_and_the_failure_told_once() -> None:
    write_table()
    program = ["--no-python", "sh", "-c", "echo {} > table.json; exit 3"]

    done = subprocess.run(
        [*LAUNCH, "--rank-table", "table.json", "--cpu", "--start", "table", *program],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip

    assert done.returncode == 3
    assert len(json.loads(Path("log/latest/report.json").read_text())["attempts"]) == 1
    assert done.stderr.count("failed first") == 1
    assert "restart 1 of" not in done.stderr
    said = done.stderr.splitlines()
    assert "  1 | {}" in said
    assert all(line.startswith(("  ", "hccl-tools: ")) for line in said)
    assert "hccl-tools: " not in said
    assert any(line.startswith("hccl-tools: no restart: the table has changed") for line in said)
    assert said[-1] == "hccl-tools: exit code 3, from rank 0"


@pytest.mark.bed
@pytest.mark.mpi
@every_remote_engine
def test_all_ranks_of_all_hosts_start_again(two_hosts: TwoHosts, engine: Mpirun | Ssh) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    options = [*engine.for_launch, "--start", "table", "--max-restarts", "1", "--grace", "2"]
    command = [*two_by_two.command(hosts, *options), "--no-python", "sh", "-c", ONCE]

    done = two_hosts.first.run(command, env=two_by_two.environ(two_hosts))

    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = Path("log/latest").resolve()
    check(run_dir)
    assert (run_dir / "rank_3.restart_1.log").read_text() == "up 1\n"
