"""Tasks of a Slurm array that start the same table on the same nodes at once: one runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.launch.engines.test_slurm_engine import table
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster

__all__ = ["table"]

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--engine", "slurm"]
LAUNCH += ["--product", "a2", "--ignore", "HCC2,HCC5,HCC6", "--start", "table", "--no-preflight"]
#: The ranks of the task that runs wait until the three others have been refused.
REFUSED = "a job with this table is already running on this host"
WAIT = f"until [ $(grep -l '{REFUSED}' out-* | wc -l) = 3 ]; do sleep 0.05; done"
PROGRAM = ["--no-python", "sh", "-c", f"{WAIT}; echo done $RANK_ID"]


@pytest.mark.bed
@pytest.mark.slow
def test_one_task_of_an_array_runs(slurm_cluster: SlurmCluster, table: str) -> None:
    command = shlex.join([*LAUNCH, "--rank-table", table, *PROGRAM])
    Path("job.sbatch").write_text(f"#!/bin/sh\nexec {command}\n")

    slurm_cluster.run(["sbatch", "--array=0-3", "-N2", "-w", "n1,n2", "-c1", "--output=out-%a", "job.sbatch"])
    assert eventually(lambda: not slurm_cluster.run(["squeue", "--noheader"]).stdout.strip())

    said = [Path(f"out-{task}").read_text() for task in range(4)]
    refused = [text for text in said if REFUSED in text]
    assert len(refused) == 3, said
    assert all("--array=...%1 runs its tasks one after another" in text for text in refused), said
    logs = sorted(path.read_text() for path in Path("log").glob("*-*/rank_*.log"))
    assert logs == [f"done {rank}\n" for rank in range(4)]
