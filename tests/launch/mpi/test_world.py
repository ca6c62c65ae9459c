"""The rank and the world of a process, from variables that may have any value."""

from __future__ import annotations

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.mpi import world

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip
SLURM = {
    "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "77", "SLURM_PROCID": "3", "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "7", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "1",
}  # fmt: skip


def test_ranks_of_open_mpi_and_of_slurm() -> None:
    assert world.from_environment(OPEN_MPI)[:4] == (1, 4, 1, 2)
    assert world.from_environment(SLURM)[:5] == (3, 7, 1, 2, "77.0")
    assert world.from_environment({**SLURM, "SLURM_NODEID": "3", "SLURM_LOCALID": "0"}).local_size == 1


@pytest.mark.parametrize(
    ("base", "variables", "said"),
    [
        (OPEN_MPI, {"OMPI_COMM_WORLD_LOCAL_RANK": "7"}, "rank 1 of 4, on this host 7 of 2"),
        (OPEN_MPI, {"OMPI_COMM_WORLD_LOCAL_SIZE": "0"}, "on this host 1 of 0"),
        (OPEN_MPI, {"OMPI_COMM_WORLD_SIZE": "1"}, "rank 1 of 1"),
        (SLURM, {"SLURM_NODEID": "x"}, 'SLURM_NODEID="x" is not a number'),
        (SLURM, {"SLURM_NODEID": "-5"}, 'SLURM_NODEID="-5" is not a number'),
        (SLURM, {"SLURM_STEP_TASKS_PER_NODE": "2(x1),x"}, 'TASKS_PER_NODE="x" is not a number'),
        (SLURM, {"SLURM_STEP_TASKS_PER_NODE": "2(x\nhelp: 1)"}, 'TASKS_PER_NODE="2(xhelp: 1)" is not'),
        (SLURM, {"SLURM_STEP_TASKS_PER_NODE": "1(x999999999)"}, "on this host 1 of 1"),
    ],
)
def test_what_does_not_fit_is_refused(base: dict[str, str], variables: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        world.from_environment({**base, **variables})

    assert said in refused.value.message


def test_the_name_of_a_job_has_no_line_break() -> None:
    assert world.from_environment({**SLURM, "SLURM_JOB_ID": "7\nhelp: rm"}).job == "7help: rm.0"
