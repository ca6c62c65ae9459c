"""``launch`` in a Slurm allocation that names no table: one command makes the table of all its nodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.slurm_cluster import run_batch_job
from tests.support.hosts import described_910a, make_host

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.beds.slurm_cluster import SlurmCluster

pytestmark = pytest.mark.bed

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--start", "table", "--product", "a2"]
LAUNCH += ["--no-local-check", "--no-preflight"]
PROGRAM = ["--no-python", "sh", "-c", 'echo "$RANK_ID $DEVICE_ID $(hostname) $RANK_SIZE"']
#: What the ranks of both nodes say, of 8 devices each.
ALL = {f"{rank} {rank % 8} n{rank // 8 + 1} 16" for rank in range(16)}


def described(machine: int) -> dict[str, Any]:
    ips = [f"192.168.{100 + device % 4}.{10 * machine + device // 4}" for device in range(8)]
    return {**described_910a(), "devices": {str(device): {"ip": ip} for device, ip in enumerate(ips)}}


@pytest.fixture
def npu_nodes(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[SlurmCluster]:
    """The cluster, whose nodes have eight devices each; what a test writes lies on a disk that all share."""
    folder = slurm_cluster.config.parent
    for number, node in enumerate(("n1", "n2"), 1):
        machine = make_host(tmp_path / node, described(number), nodes=range(8))
        path = f"{machine.bin}:{Path(sys.executable).parent}:/usr/bin:/bin"
        variables = {"PATH": path, "HCCL_TOOLS_ROOT": machine.root, "HOST_IP": f"10.79.0.{number}"}
        text = "".join(f"export {name}={value}\n" for name, value in variables.items())
        (folder / f"{node}.env").write_text(text)
    yield slurm_cluster
    for node in ("n1", "n2"):
        (folder / f"{node}.env").unlink()


def batch(bed: SlurmCluster, *options: str) -> str:
    """Run ``launch`` in a batch script to its end; return what it said."""
    script = Path("job.sbatch")
    command = " ".join(f"'{word}'" for word in [*LAUNCH, *PROGRAM])
    script.write_text(f"#!/bin/sh\nexec {command}\n")
    run_batch_job(bed, ["--output=out", *options, str(script)])
    return Path("out").read_text()


def shown() -> set[str]:
    return {path.read_text().strip() for path in Path("log/latest").resolve().glob("rank_*.log")}


@pytest.mark.parametrize(
    "options",
    [["-N2"], ["-N2", "--ntasks-per-node=4"], ["-N2", "--export=NONE"], ["--nodelist=n[1-2]"]],
    ids=" ".join,
)
def test_a_batch_script_of_two_nodes(npu_nodes: SlurmCluster, options: list[str]) -> None:
    said = batch(npu_nodes, *options)

    assert "made the rank table of 2 hosts" in said
    assert shown() == ALL, said


def test_a_batch_script_of_one_node(npu_nodes: SlurmCluster) -> None:
    said = batch(npu_nodes, "--nodelist=n2")

    assert shown() == {f"{rank} {rank} n2 8" for rank in range(8)}, said


def run_in_step(bed: SlurmCluster, srun: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    return bed.run(["salloc", "-N2", "--ntasks-per-node=1", "-c8", *srun, *LAUNCH, *options, *PROGRAM])


def test_a_step_that_holds_all_cores_does_not_keep_the_job_waiting(npu_nodes: SlurmCluster) -> None:
    # What `srun --pty bash` gives to somebody who then types the command.
    done = run_in_step(npu_nodes, ["srun", "-N1", "-n1", "-w", "n1", "-c8"], "--engine", "slurm")

    assert done.returncode == 0, done.stderr
    assert shown() == ALL


def test_launchers_that_srun_has_started_do_not_each_make_a_job(npu_nodes: SlurmCluster) -> None:
    done = run_in_step(npu_nodes, ["srun"])

    assert done.returncode == 2
    assert "srun has started `launch` 2 times" in done.stderr
    assert not Path("log").exists()
