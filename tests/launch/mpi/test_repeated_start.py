"""A launcher that mpirun or srun has started several times on one host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.mpi import repeated_start
from tests.support.mpiruns import every_mpirun

if TYPE_CHECKING:
    from tests.support.mpiruns import Mpirun


def open_mpi(size: int, here: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": str(here),
    }  # fmt: skip


def mpich(size: int, here: int) -> dict[str, str]:
    return {
        "PMI_RANK": "0", "PMI_SIZE": str(size), "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": str(here),
    }  # fmt: skip


def slurm(tasks_per_node: str, step: str = "0", node: str = "0") -> dict[str, str]:
    return {
        "SLURM_JOB_ID": "7", "SLURM_STEP_ID": step, "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "16", "SLURM_STEP_TASKS_PER_NODE": tasks_per_node, "SLURM_NODEID": node,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        (open_mpi(2, 2), "mpirun has started `launch` 2 times on this host"),
        (open_mpi(16, 8), "mpirun has started `launch` 8 times on this host"),
        (mpich(4, 4), "mpiexec has started `launch` 4 times on this host"),
        (slurm("8(x2)"), "srun has started `launch` 8 times on this host"),
        (slurm("1,8", node="1"), "srun has started `launch` 8 times on this host"),
    ],
)
def test_several_on_this_host_are_refused(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        repeated_start.refuse(environ, "launch", ["train.py", "--lr", "3"])

    assert caught.value.message == f"{sentence}; each would start the whole job"
    assert "-m hccl_tools.launch.rank " in str(caught.value.hint)
    assert " train.py --lr 3`" in str(caught.value.hint)


def test_the_proposed_line_has_the_options_that_a_rank_takes() -> None:
    typed = ["--cpu", "-n", "2", "--log_dir=own", "--devices", "0-3", "--env", "A=1", "--bind", "numa", "--"]

    with pytest.raises(UsageError) as caught:
        repeated_start.refuse(open_mpi(2, 2), "launch", ["train.py"], typed)

    assert " --cpu --log_dir=own --env A=1 train.py`" in str(caught.value.hint)
    assert "with the other options of mpirun that you typed" in str(caught.value.hint)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        open_mpi(1, 1),
        open_mpi(4, 1),  # One launcher for each host, as on machines where it is typed.
        mpich(4, 1),
        slurm("1(x2)"),
        slurm("1,8", node="0"),
        slurm("8", step="4294967291"),  # The batch script itself.
        {**slurm("8"), "SLURM_PTY_PORT": "40000"},  # A terminal of srun --pty.
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"},  # Left over in a shell.
        {"SLURM_STEP_ID": "0"},
    ],
)
def test_one_on_this_host_may_start(environ: dict[str, str]) -> None:
    repeated_start.refuse(environ, "launch", ["train.py"])


@every_mpirun
def test_under_a_real_mpirun_nothing_is_started(mpirun: Mpirun, own_directory: Path) -> None:
    Path("train.py").write_text("print('trained')\n")
    argv = [sys.executable, "-m", "hccl_tools", "launch", "--cpu", "-n", "2", "--no-table", "train.py"]

    done = subprocess.run(mpirun.ranks(2, *argv), capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode != 0
    assert "has started `launch` 2 times on this host; each would start the whole job" in done.stderr
    assert "trained" not in done.stdout
    assert not Path("log").exists()


def test_spawn_in_several_processes_is_refused(own_directory: Path) -> None:
    Path("main.py").write_text(
        "import hccl_tools\n\n\ndef work():\n    pass\n\n\n"
        "if __name__ == '__main__':\n    hccl_tools.spawn(work, nprocs=2, cpu=True)\n"
    )

    done = subprocess.run(
        [sys.executable, "main.py"], capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), **open_mpi(2, 2)},
    )  # fmt: skip

    assert done.returncode == 1
    assert "mpirun has started `spawn` 2 times on this host" in done.stderr
    assert "leave mpirun out: `spawn` starts all ranks" in done.stderr
    assert not Path("log").exists()
