"""The end of a job is told first where nobody has to be waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.runs import index
from tests.support.jobs import LONG, eventually, sh

if TYPE_CHECKING:
    from tests.support.jobs import Jobs

#: More than any pipe holds.
CHATTER = "seq 100000"


def test_a_reader_that_does_not_read_delays_neither_report_nor_notify(jobs: Jobs, tmp_path: Path) -> None:
    told = tmp_path / "told"
    ranks = [sh(f"{CHATTER}; exec sleep 300"), sh("sleep 0.5; exit 3")]

    job = jobs.start(*ranks, notify=f"cat > {told}", popen={"stderr": subprocess.STDOUT})

    assert eventually((job.run_dir / "report.json").exists)
    assert eventually(lambda: told.exists() and told.stat().st_size)
    assert job.ranks_are_gone()
    assert job.launcher.poll() is None
    assert job.end() == 3
    lines = job.out.splitlines()
    assert lines[:100_000] == [str(number) for number in range(1, 100_001)]
    assert lines[100_000].startswith("hccl-tools: rank 1 failed first: exit code 3")
    assert lines[-1] == "hccl-tools: exit code 3, from rank 1"


def test_a_reader_that_does_not_read_keeps_no_job_running() -> None:
    command = [sys.executable, "-m", "hccl_tools", "launch", "--no-table", "-n", "1", "--no-python"]
    reading, writing = os.pipe()
    with subprocess.Popen([*command, "sh", "-c", CHATTER], stdout=writing, stderr=writing) as launcher:
        os.close(writing)
        latest = Path("log/latest")

        assert eventually(lambda: latest.exists() and index.read(str(latest.resolve())).state == "ended")
        assert launcher.poll() is None

        with os.fdopen(reading) as file:
            assert file.read().endswith("\n100000\n")
        assert launcher.wait(LONG) == 0


def test_a_reader_that_does_not_read_delays_no_restart(jobs: Jobs) -> None:
    rank = sh(f"{CHATTER}; [ -e again ] || {{ touch again; exit 3; }}")

    job = jobs.start(rank, max_restarts=1, popen={"stderr": subprocess.STDOUT})

    assert eventually((job.run_dir / "report.json").exists)
    assert job.end() == 0
    assert job.out.count("\n100000\n") == 2
    assert "restart 1 of 1" in job.out
