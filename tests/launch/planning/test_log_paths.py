"""Paths of logs outside the run directory: paddle's flat names, and ``--log-file``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs.names import generation
from tests.support.jobs import eventually
from tests.support.tables import table as made

if TYPE_CHECKING:
    from collections.abc import Iterator

LAUNCH = (sys.executable, "-m", "hccl_tools.launch", "--start", "table", "--cpu", "--no-python")
PLAIN = ("--no-table", "-n", "2")


def launch(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAUNCH, *args], capture_output=True, text=True, timeout=60, check=False)


def test_ranks_of_several_servers_have_flat_logs_of_their_own() -> None:
    Path("table.json").write_text(json.dumps(made(servers=2, devices=8)))

    done = launch("--rank-table", "table.json", "--all-here", "--flat-logs", "sh", "-c", "echo $RANK_ID")

    assert done.returncode == 0, done.stderr
    assert [Path(f"log/workerlog.{rank}").read_text() for rank in range(16)] == [f"{n}\n" for n in range(16)]


def test_flat_logs_after_a_restart() -> None:
    program = "[ -e failed ] || { touch failed; exit 3; }; echo again"

    done = launch("--no-table", "-n", "1", "--flat-logs", "--max-restarts", "1", "sh", "-c", program)

    assert done.returncode == 0, done.stderr
    assert Path("log/workerlog.0.restart_1").read_text() == "again\n"


def test_names_after_a_restart() -> None:
    assert generation("rank_0.log", 2) == "rank_0.restart_2.log"
    assert generation("/a/train", 1) == "/a/train.restart_1"
    assert generation("/a/workerlog.12", 1) == "/a/workerlog.12.restart_1"


@pytest.fixture
def running() -> Iterator[subprocess.Popen[bytes]]:
    """A job whose rank 0 has written, and goes on until it is ended."""
    options = (*PLAIN, "--flat-logs", "--log-file", "train.log")
    job = subprocess.Popen([*LAUNCH, *options, "sh", "-c", "echo first $RANK_ID; exec sleep 60"])
    logs = (Path("train.log"), Path("log/workerlog.1"))
    try:
        assert eventually(lambda: all(log.exists() and log.read_text() for log in logs), 30)
        yield job
    finally:
        job.terminate()
        job.wait(30)


@pytest.mark.slow
@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("options", [("--log-file", "train.log"), ("--flat-logs", "--log-dir", "log")])
def test_two_runs_do_not_write_one_log(options: tuple[str, ...]) -> None:
    done = launch(*PLAIN, *options, "true")

    assert done.returncode == 125
    assert "another run is writing the log" in done.stderr
    assert Path("train.log").read_text() == "first 0\n"
    assert Path("log/workerlog.1").read_text() == "first 1\n"
    assert not Path("log/workerlog.0").exists() or options[0] == "--flat-logs"


def test_log_file_is_not_the_launchers_own_output() -> None:
    with Path("all.txt").open("w") as file:
        file.write("before\n")
        file.flush()
        command = [*LAUNCH, *PLAIN, "--log-file", "/dev/stdout", "true"]
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )

    assert (done.returncode, Path("all.txt").read_text()) == (2, "before\n")
    assert "--log-file /dev/stdout is the launcher's own standard output" in done.stderr


def test_log_file_that_is_a_pipe() -> None:
    os.mkfifo("pipe")

    done = launch(*PLAIN, "--log-file", "pipe", "true")

    assert done.returncode == 2
    assert "--log-file pipe is not a regular file" in done.stderr


@pytest.mark.parametrize("option", ["--log-dir", "--log-file"])
def test_empty_names(option: str) -> None:
    before = sorted(Path().iterdir())
    done = launch(*PLAIN, option, "", "true")

    assert done.returncode == 2
    assert f"{option} is empty" in done.stderr
    assert sorted(Path().iterdir()) == before


def test_log_file_may_be_nowhere() -> None:
    """Even if the launcher's own output goes there."""
    assert launch(*PLAIN, "--log-file", "/dev/null", "true").returncode == 0
    command = [*LAUNCH, *PLAIN, "--log-file", "/dev/null", "true"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60, check=False).returncode == 0


def test_a_log_file_of_an_earlier_job_is_written_again() -> None:
    Path("train.log").write_text("before\n")

    done = launch(*PLAIN, "--log-file", "train.log", "sh", "-c", "echo $RANK_ID")

    assert done.returncode == 0, done.stderr
    assert Path("train.log").read_text() == "0\n"
