"""Jobs that really failed are explained from their run, with the cause that was made."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import isolate
from tests.support.processes import above, kill_all
from tests.support.three_by import BY_HAND, BY_SSH, ORDER, Job, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.three_hosts import ThreeHosts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

FAULTY = 1
OPTIONS = ("--start", "torch", "--grace", "1", "--host-timeout", "3")
PYTHON = ("--python", sys.executable)
GROUPS = Path("/sys/fs/cgroup/memory")
MIB = 1 << 20
#: Rank 1 needs more and more memory.
HUNGRY = f"""\
import os, time
kept = []
while os.environ["RANK_ID"] == "1":
    kept.append(bytearray({16 * MIB}))
time.sleep(60)
"""
#: The ranks look for the scheduler where none is; it does not give up before them.
LOST = """\
import os
os.environ.update(MS_SCHED_HOST="127.0.0.1", MS_SCHED_PORT="9", MS_TOPO_TIMEOUT="4")
from mindspore.communication import init
init()
"""


@pytest.fixture
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group with 256 MiB."""
    group = GROUPS / f"hccl-tools-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(256 * MIB))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    group.rmdir()


def run(*args: str, **options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args],
        text=True, capture_output=True, check=False, timeout=120, env={**os.environ, **options},
    )  # fmt: skip


def explained(log_dir: Path = Path("log")) -> str:
    done = run("explain", "--log-dir", str(log_dir))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def test_out_of_memory(small_memory: Path) -> None:
    Path("train.py").write_text(HUNGRY)
    enter = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
    launch = [
        sys.executable,
        "-m",
        "hccl_tools",
        "launch",
        "-n",
        "2",
        "--cpu",
        "--start",
        "table",
        "train.py",
    ]
    done = subprocess.run(["sh", "-c", enter, str(small_memory), *launch], check=False, timeout=120)

    assert done.returncode == 128 + signal.SIGKILL
    first = explained().splitlines()[0]
    assert first.startswith("Rank 1 (device 1 of ")
    assert "the kernel's out-of-memory killer ended the rank" in first


@pytest.mark.mindspore
@pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="mindspore is not installed")
def test_mindspores_scheduler_is_not_reached() -> None:
    Path("train.py").write_text(LOST)
    done = run("launch", "-n", "2", "--cpu", "--start", "cluster", *PYTHON, "train.py")

    assert done.returncode == 1, done.stderr
    text = explained()
    assert "could not reach MindSpore's scheduler: the other end is address 127.0.0.1:9" in text
    assert "rank -1" not in text


@pytest.fixture
def begun(three_hosts: ThreeHosts, request: pytest.FixtureRequest) -> Iterator[Job]:
    """A job of three hosts, all of whose ranks run."""
    job = Job(three_hosts, request.param, OPTIONS)
    try:
        assert job.is_up()
        yield job
    finally:
        three_hosts.impair()
        for launcher in job.launchers:
            launcher.kill()
            launcher.communicate()
        kill_all(job.living())


def names_the_faulty_host(job: Job, log_dir: Path) -> bool:
    return explained(log_dir).startswith(f"Host {job.names[FAULTY]}: the launcher lost a host of the job: ")


@pytest.mark.bed
@pytest.mark.parametrize("begun", [BY_SSH, BY_HAND[1]], ids=str, indirect=True)
def test_a_host_was_cut_off(begun: Job) -> None:
    with begun.bed.impaired(*isolate(begun.bed.hosts[FAULTY])):
        begun.end(60)

    start: Start = begun.start
    for index in range(1 if start.engine else 3):
        if index != FAULTY:
            assert names_the_faulty_host(begun, begun.log_dir(begun.hosts[index]))


@pytest.mark.bed
@pytest.mark.parametrize("begun", [BY_SSH, BY_HAND[1]], ids=str, indirect=True)
def test_a_supervisor_was_killed(begun: Job) -> None:
    os.kill(above(begun.pid(ORDER.index(FAULTY)))["supervisor"], signal.SIGKILL)
    begun.end(60)

    assert names_the_faulty_host(begun, begun.log_dir(begun.hosts[0]))
