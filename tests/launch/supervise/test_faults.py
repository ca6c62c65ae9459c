"""The fault trials of benchmarks/faults.py and benchmarks/engine_faults.py in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.beds.daemons import need

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_random_faults_leave_nothing_and_blame_the_right_rank() -> None:
    trials = ["--trials", "30", "--engine-trials", "0", "--peer-trials", "0"]
    campaign = [sys.executable, "-m", "benchmarks.faults", *trials]
    done = subprocess.run(campaign, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.bed
@pytest.mark.mpi
def test_random_faults_of_engines_leave_nothing_and_are_named() -> None:
    need("two_hosts, slurm_cluster", ["ip", "nsenter", "sshd", "munged", "slurmctld", "slurmd", "srun"])
    trials = ["--trials", "6", "--one-host-trials", "6", "--slurm-trials", "3"]
    campaign = [sys.executable, "-m", "benchmarks.engine_faults", *trials]
    done = subprocess.run(campaign, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
