"""The bed of two Slurm nodes really runs jobs on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster

pytestmark = pytest.mark.bed


def test_srun_starts_tasks_on_both_nodes(slurm_cluster: SlurmCluster) -> None:
    task = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME"

    job = slurm_cluster.run(["srun", "-N2", "--ntasks-per-node=2", "sh", "-c", task])

    assert sorted(job.stdout.splitlines()) == ["0 0 0 n1", "1 1 0 n1", "2 0 1 n2", "3 1 1 n2"], job.stderr


def test_a_failing_task_gives_its_exit_code_to_srun(slurm_cluster: SlurmCluster) -> None:
    assert slurm_cluster.run(["srun", "-N2", "--ntasks-per-node=1", "sh", "-c", "exit 7"]).returncode == 7
