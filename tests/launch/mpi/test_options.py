"""What the shim reads: its command line, and what launchers have told it. No mpirun is run here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.engines import mpirun
from hccl_tools.launch.mpi import options as rank_options
from hccl_tools.launch.mpi import world

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", "openmpi-4"),
        ("mpirun (Open MPI) 5.0.11\n", "openmpi-5"),
        ("mpirun.real (OpenRTE) 4.1.2\n", "openmpi-4"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", "mpich-4"),
    ],
)
def test_flavours_of_mpirun(text: str, flavour: str, own_directory: Path) -> None:
    program = own_directory / "bin" / "mpirun"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
    program.chmod(0o755)

    assert mpirun.find({"PATH": f"{program.parent}:/usr/bin:/bin"}) == (str(program), flavour)
