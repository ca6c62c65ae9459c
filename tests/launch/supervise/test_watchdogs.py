"""Silence is told: ranks that ended early, jobs in which nothing happens, disks without room."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.notation.number_list import rank_list
from hccl_tools.runs.log_files import free_bytes
from tests.support.jobs import LONG, eventually, python, sh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.jobs import Jobs

SLEEP = sh("exec sleep 300")
UP = sh("echo $$; exec sleep 300")


def test_a_rank_that_ended_while_others_run_is_told_once(jobs: Jobs, tmp_path: Path) -> None:
    running, said = sh("until [ -e go ]; do sleep 0.02; done"), tmp_path / "said"
    with said.open("w") as file:
        job = jobs.start(running, running, sh("true"), early_exit_warn=0.3, popen={"stderr": file})
    assert eventually(lambda: "they would wait forever" in said.read_text())
    (tmp_path / "go").touch()
    assert job.end() == 0
    assert said.read_text().count("in a collective they would wait forever") == 1
    assert "rank 2 exited with code 0, but ranks 0-1 are still running" in said.read_text()
    assert any("they would wait forever" in warning for warning in job.report["warnings"])


def test_ranks_that_end_together_are_not_told(jobs: Jobs) -> None:
    code, job = jobs.run(sh("true"), sh("true"), early_exit_warn=10 * LONG)
    assert code == 0
    assert job.err == ""


def hanging(jobs: Jobs, *programs: list[str]) -> Callable[[], str]:
    """Start a job in which nothing happens; return what says what the launcher has said so far."""
    said = jobs.folder / "said"
    with said.open("w") as file:
        jobs.start(*programs, hang_warn=0.4, popen={"stderr": file})
    return said.read_text


def test_a_job_in_which_nothing_happens_is_told_with_what_each_rank_waits_for(jobs: Jobs) -> None:
    said = hanging(jobs, UP, sh("echo $$; kill -STOP $$"))
    job = jobs.started[0]
    lines = [f"  rank 0 (pid {job.pid(0)}): sleeping", f"  rank 1 (pid {job.pid(1)}): stopped\n"]
    assert eventually(lambda: all(line in said() for line in lines))
    assert "no rank has written or computed anything for 0.40 s" in said()
    assert any("rank 1" in file.read_text() for file in job.run_dir.glob("hang_*.txt"))


def test_python_stacks_are_added_where_py_spy_is_installed(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "py-spy"
    tool.write_text('#!/bin/sh\necho "stacks by $*"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said = hanging(jobs, UP)
    job = jobs.started[0]
    stacks = f"stacks by dump --nonblocking --pid {job.pid(0)}"
    assert eventually(lambda: any(stacks in file.read_text() for file in job.run_dir.glob("hang_*.txt")))
    assert eventually(lambda: f"Python stacks: {job.run_dir}/hang_1.txt" in said())


def test_a_py_spy_that_hangs_does_not_outlive_the_job(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "py-spy"
    tool.write_text(f"#!/bin/sh\ntouch {tmp_path}/spies\nsleep 300\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    hanging(jobs, UP)
    job = jobs.started[0]
    assert eventually((tmp_path / "spies").exists)
    job.launcher.terminate()
    assert job.end() == 143
    assert job.is_gone()


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([0, 1, 2], "ranks 0-2"), ([5, 0, 1, 2], "ranks 0-2, 5"), ([7, 9], "ranks 7, 9")],
)
def test_ranks_are_listed_in_short(ranks: list[int], text: str) -> None:
    assert rank_list(ranks) == text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


FILLER = python(
    "import os, time\n"
    "try:\n"
    "    while True: os.write(1, b'x' * 4095 + b'\\n'); time.sleep(0.001)\n"
    "except OSError: pass\n"
    "time.sleep(2)"
)


def test_a_full_disk_is_told(jobs: Jobs, small_disk: Path) -> None:
    code, job = jobs.run(FILLER, run_dir=small_disk / "run", tail=[])
    assert code == 0
    assert f"the disk of {small_disk}/run is full" in job.err


def test_a_full_disk_ends_the_job_where_that_is_asked_for(jobs: Jobs, small_disk: Path) -> None:
    code, job = jobs.run(FILLER, SLEEP, run_dir=small_disk / "run", tail=[], on_log_error="stop")
    assert code == 125
    last = job.err.splitlines()[-1]
    assert last.startswith("hccl-tools: exit code 125 is the launcher's own: the disk of")
    assert not job.living()


WRITER = (
    "import os, time\nwhile os.environ['RANK_ID'] == '1': os.write(1, b'x' * 999 + b'\\n')\ntime.sleep(60)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(("--no-table", "--start", "table"), id="loop"),
        pytest.param(("--engine", "mpirun", "--cpu", "--start", "mpi"), id="mpirun", marks=pytest.mark.mpi),
    ],
)
@pytest.mark.parametrize(
    ("options", "code", "state"), [((), 1, "failed"), (("--on-log-error", "stop"), 125, "disk full")]
)
def test_the_disk_is_named_as_the_cause(
    small_disk: Path, options: tuple[str, ...], code: int, state: str, engine: tuple[str, ...]
) -> None:
    """A rank that fails for want of room ends before the launcher looks at the disk for the next time."""
    (small_disk.parent / "writer.py").write_text(WRITER)
    hccl_tools = [sys.executable, "-m", "hccl_tools"]
    launch = ["launch", *engine, "-n", "2", "--grace", "1", *options]
    here = ["--log-dir", str(small_disk)]

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*hccl_tools, *command, *here], capture_output=True, text=True, timeout=60, check=False
        )

    program = ["--tail", "none", *here, "--no-python", sys.executable, "writer.py"]
    done = subprocess.run([*hccl_tools, *launch, *program], capture_output=True, text=True, check=False)

    assert done.returncode == code, done.stderr
    assert f"the disk of {small_disk}/" in done.stderr
    assert "(without report.json: No space left on device)" in done.stderr
    assert "logs and report.json" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert ("the disk of" in last) if options else ("hint: the disk of the log is full" in done.stderr)
    name = (small_disk / "latest").resolve().name  # other tests have runs on this host as well
    (listed,) = [line for line in run("jobs").stdout.splitlines() if line.startswith(name[:20])]
    assert f"  {state}  " in listed
    assert f"  {code}  " in listed
    assert f"has already ended: exit code {code}" in run("stop", "latest").stderr


def test_a_report_that_cannot_be_written_is_said_and_printed(jobs: Jobs, small_disk: Path) -> None:
    failing = python(
        "import os, sys\n"
        "try:\n"
        "    while True: os.write(1, b'x' * 4095 + b'\\n')\n"
        "except OSError: sys.exit(9)\n"
    )
    code, job = jobs.run(failing, run_dir=small_disk / "run", tail=[], notify="wc -c")
    assert code == 9
    assert "report.json: No space left on device" in job.err
    assert "exit code 9, from rank 0" in job.err
    assert int(job.err.splitlines()[-2]) > 1000


def test_room_cannot_be_told_where_there_is_no_folder(tmp_path: Path) -> None:
    assert free_bytes(str(tmp_path / "nowhere")) is None
    assert (free_bytes(str(tmp_path)) or 0) > 0
