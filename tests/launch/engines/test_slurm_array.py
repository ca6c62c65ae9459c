"""Tasks of a Slurm array that start the same table on the same nodes at once: one runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.launch.engines.test_slurm_engine import table
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from tests.beds.two_nodes import TwoNodes

__all__ = ["table"]

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--engine", "slurm"]
LAUNCH += ["--product", "a2", "--ignore", "HCC2,HCC5,HCC6", "--start", "table", "--no-preflight"]
PROGRAM = ["--no-python", "sh", "-c", "sleep 2; echo done $RANK_ID"]


@pytest.mark.bed
@pytest.mark.slow
def test_one_task_of_an_array_runs(two_nodes: TwoNodes, table: str) -> None:
    options = [*LAUNCH, "--rank-table", table, "--master-addr", "127.0.0.1"]
    command = " ".join(f"'{word}'" for word in [*options, *PROGRAM])
    Path("job.sbatch").write_text(f"#!/bin/sh\nexec {command}\n")

    two_nodes.run(["sbatch", "--array=0-3", "-N2", "-c1", "--output=out-%a", "job.sbatch"])
    assert eventually(lambda: not two_nodes.run(["squeue", "--noheader"]).stdout.strip())

    said = [Path(f"out-{task}").read_text() for task in range(4)]
    refused = [text for text in said if "a job with this table is already running on this host" in text]
    assert len(refused) == 3, said
    assert all("--array=...%1 runs its tasks one after another" in text for text in refused), said
    logs = sorted(path.read_text() for path in Path("log").glob("*-*/rank_*.log"))
    assert logs == [f"done {rank}\n" for rank in range(4)]
