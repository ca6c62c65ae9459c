"""``jobs``, ``logs`` and ``stop`` on real runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LAUNCH = ("launch", "--no-table", "-n", "2", "--start", "table", "--tail", "0", "--no-python", "sh", "-c")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args], capture_output=True, text=True, timeout=60, check=False
    )


def listed(*args: str) -> list[dict[str, object]]:
    runs: list[dict[str, object]] = json.loads(run("jobs", "-f", "json", *args).stdout)["runs"]
    here = str(Path.cwd())
    return [one for one in runs if str(one["path"]).startswith(here)]


@contextmanager
def running(program: str = "echo up $RANK_ID; exec sleep 60") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", *LAUNCH, program], stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        job.stdout.readline()
        try:
            yield job
        finally:
            job.terminate()
            job.stdout.read()


def test_runs_and_how_they_ended() -> None:
    assert run(*LAUNCH, "true").returncode == 0
    assert run(*LAUNCH, "exit 7").returncode == 7
    with running() as job:
        found = listed()
        text = run("jobs").stdout

        assert [(one["state"], one["exit_code"], one["ranks"]) for one in found] == [
            ("ended", 0, 2), ("ended", 7, 2), ("running", None, 2),
        ]  # fmt: skip
        assert found[2]["pid"] == job.pid
        assert [one["state"] for one in listed("--running")] == ["running"]
    assert "exit code 7" in text
    assert f"{job.pid}@{os.uname().nodename}" in text
    assert listed("--running") == []


def test_run_elsewhere_on_this_host_is_found() -> None:
    with running():
        assert [one["state"] for one in listed("--log-dir", "empty")] == ["running"]


def test_no_runs() -> None:
    assert listed("--log-dir", "absent") == []


def test_stop_ends_a_run() -> None:
    with running() as job:
        done = run("stop", "latest")

        assert done.returncode == 0, done.stderr
        assert job.wait(10) == 143
    assert run("stop", "latest").returncode == 1


def test_stop_ends_what_a_killed_launcher_has_left() -> None:
    program = "env HCCL_TOOLS_RUN_DIR=$HCCL_TOOLS_RUN_DIR setsid sleep 60 > /dev/null 2>&1 & echo up; wait"
    with running(program) as job:
        job.send_signal(signal.SIGKILL)
        job.wait()
    deadline = time.monotonic() + 10
    while listed("--running") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [one["state"] for one in listed()] == ["killed"]


def test_logs_of_ranks() -> None:
    run(*LAUNCH, "echo one; echo two; echo rank $RANK_ID")

    assert run("logs").stdout == "one\ntwo\nrank 0\n"
    assert run("logs", "latest", "--rank", "1", "-n", "1").stdout == "rank 1\n"
    both = run("logs", "latest", "--rank", "0", "--rank", "1", "-n", "1").stdout
    assert sorted(both.splitlines()) == ["[rank 0] rank 0", "[rank 1] rank 1"]
    name = Path("log/latest").resolve().name
    assert run("logs", name[:15], "-n", "0").returncode == 0
    assert "no log of rank 5" in run("logs", "latest", "--rank", "5").stderr
    assert "no run" in run("logs", "19990101").stderr


def test_logs_follow_to_the_end() -> None:
    with running("echo up; sleep 1; echo over"):
        assert run("logs", "latest", "-f").stdout == "up\nover\n"
