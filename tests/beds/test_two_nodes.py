"""The bed of two Slurm nodes really runs jobs on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.beds.two_nodes import TwoNodes

pytestmark = pytest.mark.bed


def test_srun_starts_tasks_on_both_nodes(two_nodes: TwoNodes) -> None:
    task = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME"

    job = two_nodes.run(["srun", "-N2", "--ntasks-per-node=2", "sh", "-c", task])

    assert sorted(job.stdout.splitlines()) == ["0 0 0 n1", "1 1 0 n1", "2 0 1 n2", "3 1 1 n2"], job.stderr


def test_a_failing_task_gives_its_exit_code_to_srun(two_nodes: TwoNodes) -> None:
    assert two_nodes.run(["srun", "-N2", "--ntasks-per-node=1", "sh", "-c", "exit 7"]).returncode == 7
