"""What the shim reads: its command line, and what launchers have told it. No mpirun is run here."""

from __future__ import annotations

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.mpi import options as rank_options
from hccl_tools.launch.mpi import world


def test_places_that_launchers_tell() -> None:
    slurm = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_PROCID": "3", "SLURM_NTASKS": "5",
             "SLURM_LOCALID": "0", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1"}  # fmt: skip
    assert world.from_environment(slurm)[:4] == (3, 5, 0, 1)
    mpich = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    assert world.from_environment(mpich)[:4] == (1, 2, 1, 2)
    with pytest.raises(UsageError, match="not started by mpirun"):
        world.from_environment({})


def test_options_of_the_shim() -> None:
    options = rank_options.parse(
        ["--rank_table=t.json", "--devices", "4,5", "--cpu", "-m", "package", "--cpu", "x"]
    )

    assert options.rank_table == "t.json"
    assert options.devices == [4, 5]
    assert (options.kind, options.program) == ("module", ("package", "--cpu", "x"))
    with_python = rank_options.parse(["python3", "-u", "train.py", "-u"])
    assert (with_python.python, with_python.program) == ("python3", ("train.py", "-u"))
    with pytest.raises(UsageError, match="--rank-tabel") as caught:
        rank_options.parse(["--rank-tabel", "x"])
    assert caught.value.hint == "did you mean --rank-table?"
