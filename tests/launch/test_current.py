"""Who a script is: from the variables alone, and under every launcher that is here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.current import CurrentRank, current_rank
from tests.support.mpiruns import every_mpirun
from tests.support.torch_python import TORCHRUN, needs_torch

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.support.mpiruns import Mpirun

WHO = """\
import json, os, sys
sys.path.insert(0, ROOT)
from hccl_tools import current_rank

os.write(1, (json.dumps(current_rank()) + "\\n").encode())
"""
#: What the scripts for a single card leave in a shell.
LEFT = {"RANK_ID": "0", "RANK_SIZE": "1"}


@pytest.fixture(autouse=True)
def _script(own_directory: Path) -> None:
    root = str(Path(__file__).parents[2])
    (own_directory / "who.py").write_text(WHO.replace("ROOT", repr(root)))


def told(argv: list[str], **environ: str) -> list[CurrentRank]:
    """Run a command whose ranks say who they are; sorted by rank."""
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read(done.stdout)


def read(text: str) -> list[CurrentRank]:
    lines = [line[line.rindex("[") :] for line in text.splitlines() if line.endswith("]")]
    return sorted(CurrentRank(*json.loads(line)) for line in lines)


def ranks(source: str, local: bool = True, device: bool = False) -> list[CurrentRank]:
    return [
        CurrentRank(rank, 2, rank if device else None, rank if local else None, True, source)
        for rank in range(2)
    ]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, CurrentRank()),
        ({"RANK_ID": "0"}, CurrentRank()),
        ({"RANK_ID": "1", "RANK_SIZE": "4", "DEVICE_ID": "5"}, CurrentRank(1, 4, 5, None, True, "RANK_ID")),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "3"}, CurrentRank(3, 8, None, 3, True, "RANK")),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
            CurrentRank(1, 2, None, 0, True, "OMPI_COMM_WORLD_RANK"),
        ),
        (
            {"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "2"},
            CurrentRank(0, 2, None, None, True, "PADDLE_TRAINER_ID"),
        ),
        (
            {
                "PADDLE_TRAINER_ID": "3",
                "PADDLE_TRAINERS_NUM": "4",
                "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:6071",
                "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071",
            },
            CurrentRank(3, 4, None, 1, True, "PADDLE_TRAINER_ID"),
        ),
        (
            {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "1"},
            CurrentRank(1, 2, None, 1, True, "SLURM_PROCID"),
        ),
        (
            {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1", "MS_WORKER_NUM": "2"},
            CurrentRank(1, 2, None, None, True, "MS_NODE_ID"),
        ),
        ({"MS_ROLE": "MS_SCHED", "RANK_ID": "0", "RANK_SIZE": "2"}, CurrentRank()),
        ({"MS_NODE_ID": "host-1", "MS_WORKER_NUM": "2"}, CurrentRank()),
        (
            {"RANK_ID": "0", "RANK_SIZE": "1", "RANK_TABLE_FILE": "/t.json"},
            CurrentRank(0, 1, None, None, True, "RANK_ID", "/t.json"),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, CurrentRank()),
        (
            {
                "RANK_ID": "1",
                "RANK_SIZE": "2",
                "PADDLE_TRAINER_ID": "1",
                "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_RANK_IN_NODE": "1",
                "LOCAL_RANK": "7",
            },
            CurrentRank(1, 2, None, 1, True, "RANK_ID"),
        ),
    ],
)
def test_current_rank(environ: dict[str, str], expected: CurrentRank) -> None:
    assert current_rank(environ) == expected


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"RANK_ID": "1"}, "RANK_ID is 1, but RANK_SIZE is not set"),
        ({"RANK_ID": "4", "RANK_SIZE": "4"}, "RANK_ID is 4, but RANK_SIZE is 4"),
        ({"RANK_ID": "1", "RANK_SIZE": ""}, "RANK_ID is 1, but RANK_SIZE is empty"),
    ],
)
def test_half_a_place_is_told(environ: dict[str, str], words: str) -> None:
    with pytest.warns(RuntimeWarning, match=words):
        assert current_rank(environ) == CurrentRank()
    others = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert current_rank({**environ, **others}).rank == 1


@pytest.mark.mpi
@pytest.mark.parametrize("left", [{}, LEFT], ids=["clean", "left over"])
@every_mpirun
def test_plain_mpirun(mpirun: Mpirun, left: dict[str, str]) -> None:
    expected = ranks("PMI_RANK" if mpirun.is_mpich else "OMPI_COMM_WORLD_RANK")

    assert told(mpirun.ranks(2, sys.executable, "who.py"), **left) == expected
    # A script between mpirun and the rank hides nothing.
    assert told(mpirun.ranks(2, "sh", "-c", f"{sys.executable} who.py; true"), **left) == expected


@pytest.mark.mpi
@every_mpirun
def test_shim_by_hand(mpirun: Mpirun) -> None:
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--cpu", "--python", sys.executable]

    told(mpirun.ranks(2, *shim, "who.py"), **LEFT)

    logs = [path.read_text() for path in Path("log/latest").glob("rank_[01].log")]
    assert read("".join(logs)) == ranks("RANK_ID", device=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["table", "cluster", "torch"])
def test_launch(start: str) -> None:
    options = ["--no-table", "-n", "2", "--cpu", "--start", start, "--tail", "all", "--no-python"]
    launch = [sys.executable, "-m", "hccl_tools.launch", *options, sys.executable, "who.py"]
    left = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "7", "WORLD_SIZE": "8"}

    assert told(launch, **LEFT, **left, LOCAL_RANK="7") == ranks("RANK_ID", device=True)


def test_spawn_inside_mpi_variables() -> None:
    Path("main.py").write_text(
        "import json, hccl_tools\n"
        "if __name__ == '__main__':\n"
        "    job = hccl_tools.spawn(hccl_tools.current_rank, nprocs=2, cpu=True, start='table')\n"
        "    print(*map(json.dumps, job.results), sep='\\n')\n"
    )
    left = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}

    assert told([sys.executable, "main.py"], **left) == ranks("RANK_ID", device=True)


def test_loop_in_a_shell_under_mpi_variables() -> None:
    loop = f"for i in 0 1; do RANK_ID=$i RANK_SIZE=2 DEVICE_ID=$i {sys.executable} who.py & done; wait"
    left = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2"}

    assert told(["bash", "-c", loop], **left) == ranks("RANK_ID", local=False, device=True)


@needs_torch
@pytest.mark.slow
def test_torchrun() -> None:
    assert TORCHRUN is not None
    assert told([TORCHRUN, "--nproc-per-node", "2", "who.py"], **LEFT) == ranks("RANK")


@pytest.mark.slow
@pytest.mark.mindspore
def test_msrun() -> None:
    msrun = shutil.which(Path(sys.executable).with_name("msrun"))
    if msrun is None:
        pytest.skip("msrun is not installed")
    command = [msrun, "--worker_num=2", "--local_worker_num=2", "--join=True", "--log_dir=logs", "who.py"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    subprocess.run(command, env={**os.environ, **LEFT, "PATH": path}, capture_output=True, check=True)

    logs = [path.read_text() for path in Path("logs").glob("worker_[01].log")]
    assert read("".join(logs)) == ranks("RANK_ID", local=False, device=True)
    assert read(Path("logs/scheduler.log").read_text()) == [CurrentRank()]


@pytest.mark.bed
def test_srun(slurm_cluster: SlurmCluster) -> None:
    done = slurm_cluster.run(["srun", "-N2", "--ntasks-per-node=1", sys.executable, "who.py"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert read(done.stdout) == [CurrentRank(rank, 2, None, 0, True, "SLURM_PROCID") for rank in range(2)]


def test_outside_any_launcher() -> None:
    assert told([sys.executable, "who.py"]) == [CurrentRank()]


def test_a_heartbeat_touches_the_file_of_the_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "heartbeat_0"
    monkeypatch.setenv("HCCL_TOOLS_HEARTBEAT", str(file))
    here = current_rank()

    here.heartbeat()
    os.utime(file, (0, 0))
    here.heartbeat()

    assert file.stat().st_mtime > 0


def test_a_heartbeat_goes_through_no_link_and_to_no_other_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, victim = tmp_path / "run", tmp_path / "victim"
    run.mkdir()
    victim.touch()
    os.utime(victim, (1, 1))
    monkeypatch.setenv("HCCL_TOOLS_HEARTBEAT", str(run / "heartbeat_0"))
    for target in (victim, tmp_path / "new"):
        (run / "heartbeat_0").symlink_to(target)
        current_rank().heartbeat()
        (run / "heartbeat_0").unlink()
    run.rename(tmp_path / "moved")
    run.mkdir()
    current_rank().heartbeat()

    assert victim.stat().st_mtime == 1
    assert not (tmp_path / "new").exists()
    assert list(run.iterdir()) == []


@pytest.mark.parametrize("path", ["", "/no/such/folder/heartbeat"])
def test_a_heartbeat_that_nobody_reads_does_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_HEARTBEAT", path)
    current_rank().heartbeat()
