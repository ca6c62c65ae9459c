"""What ``launch --emit`` prints: the stand-alone scripts filled in, and the commands of other tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = """\
import json, os
print(json.dumps({name: os.environ.get(name) for name in ('RANK_ID', 'DEVICE_ID', 'RANK_SIZE', 'WORDS')}))
"""


@pytest.fixture(autouse=True)
def files(own_directory: Path) -> None:
    (own_directory / "show.py").write_text(SHOW)
    for name, order in (("table.json", (5, 4)), ("ascending.json", (4, 5))):
        devices = [
            {"device_id": str(device), "device_ip": f"192.168.0.{device}", "rank_id": str(rank)}
            for rank, device in enumerate(order)
        ]
        value = {
            "version": "1.0", "server_count": "1", "status": "completed",
            "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
        }  # fmt: skip
        (own_directory / name).write_text(json.dumps(value))


def emit(target: str, *options: str, table: str, start: str = "table") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--rank-table", table, "--cpu", "--start", start,
         "--emit", target, *options, "show.py", "-c", "a b.yml"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def emitted(target: str, *options: str, start: str = "table") -> str:
    # The other tools place ranks along the devices; the scripts know any order.
    table = "ascending.json" if target in {"msrun", "torchrun"} else "table.json"
    done = emit(target, *options, table=table, start=start)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(rank: int) -> dict[str, str]:
    found: dict[str, str] = json.loads(Path("own logs", f"rank_{rank}.log").read_text())
    return found


@pytest.mark.parametrize("target", ["rank_loop", pytest.param("mpirun", marks=pytest.mark.mpi)])
def test_emitted_scripts_run_as_they_are(target: str) -> None:
    Path("job.sh").write_text(emitted(target, "--env", "WORDS=a 'b'", "--log-dir", "own logs"))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    done = subprocess.run(
        ["bash", "job.sh"], capture_output=True, text=True, timeout=60, check=False, env=environ
    )

    assert done.returncode == 0, done.stderr
    assert said(0) == {"RANK_ID": "0", "DEVICE_ID": "5", "RANK_SIZE": "2", "WORDS": "a 'b'"}
    assert said(1) == {"RANK_ID": "1", "DEVICE_ID": "4", "RANK_SIZE": "2", "WORDS": "a 'b'"}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("rank_loop", ['"127.0.0.1 0,1 5,4"', "SERVER=${SERVER:-0}", "show.py -c 'a b.yml')"]),
        ("slurm", ["#SBATCH --ntasks-per-node=2", "#SBATCH --nodes=1", '"127.0.0.1 0,1 5,4"']),
        ("msrun", ["=4,5 msrun --worker_num=2 --local_worker_num=2", "show.py -c 'a b.yml'"]),
        ("torchrun", ["=4,5 torchrun --nproc-per-node=2 --nnodes=1", "show.py -c 'a b.yml'"]),
    ],
)
def test_emitted_text(target: str, words: list[str]) -> None:
    text = emitted(target)

    assert not [word for word in words if word not in text], text


def test_cluster_start_has_its_port_in_the_loop() -> None:
    assert "SCHED_PORT=${SCHED_PORT:-1" in emitted("rank_loop", start="cluster")
    assert "--master_port=" in emitted("msrun", start="cluster")


def test_other_tools_start_python_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--no-table", "-n", "2", "--emit", "msrun", "--no-python",
         "sh"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 125
    assert "msrun starts Python scripts only" in done.stderr


@pytest.mark.parametrize("target", ["rank_loop", "mpirun", "slurm", "msrun"])
def test_on_a_host_that_is_none_of_the_jobs(target: str) -> None:
    for name in ("table.json", "ascending.json"):
        table = Path(name)
        table.write_text(table.read_text().replace("127.0.0.1", "203.0.113.1"))

    assert emitted(target).strip()


@pytest.mark.parametrize(
    ("target", "options", "word"),
    [
        ("rank_loop", ("--grace", "2.5"), "GRACE=${GRACE:-3}\n"),
        ("slurm", ("--env", "A=1", "--env", "B=x y"), "ENVIRONMENT=(A=1 'B=x y')\n"),
        ("slurm", ("--log-dir", "out/%j"), "LOG_DIR=${LOG_DIR:-out/${SLURM_JOB_ID:-nojob}"),
        ("msrun", ("--env", "B=x y", "--log-dir", "out"), "=4,5 B='x y' msrun "),
        ("msrun", ("--log-dir", "out"), "--log_dir=out "),
        ("torchrun", ("--max-restarts", "2"), " --max-restarts=2 "),
        ("torchrun", ("--log-dir", "out"), " --log-dir=out "),
    ],
)
def test_options_are_taken_over(target: str, options: tuple[str, ...], word: str) -> None:
    assert word in emitted(target, *options)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("mpirun", ("--grace", "3")), ("msrun", ("--max-restarts", "2")), ("rank_loop", ("--timeout", "60")),
        ("slurm", ("--tail", "all")), ("torchrun", ("--log-file", "train.log")), ("mpirun", ("--no-export",)),
        ("msrun", ("--engine", "mpirun")),
    ],
)  # fmt: skip
def test_options_that_would_be_lost_are_refused(target: str, options: tuple[str, ...]) -> None:
    done = emit(target, *options, table="ascending.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"--emit {target} cannot take {options[0]} over" in done.stderr


@pytest.mark.parametrize("tool", ["msrun", "torchrun"])
def test_other_tools_cannot_have_ranks_in_any_order(tool: str) -> None:
    done = emit(tool, table="table.json")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"{tool} would put rank 0 on device 4 of 127.0.0.1, which is rank 1's" in done.stderr
