"""A Slurm job that is requeued runs again on another node, and the logs of both runs are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.bed, pytest.mark.slow]

#: The first run waits for its end, which is the requeue's; the second one ends well.
PROGRAM = (
    'echo "$RANK_ID $DEVICE_ID $SLURMD_NODENAME"; [ "${SLURM_RESTART_COUNT:-0}" != 0 ] || exec sleep 600'
)


@pytest.fixture
def spare_node(slurm_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """The two nodes; n1 is back in service afterwards."""
    yield slurm_cluster
    slurm_cluster.run(["scontrol", "update", "NodeName=n1", "State=resume"])


def emitted() -> str:
    """Return the batch script of a job of two ranks on one node."""
    devices = [
        {"device_id": str(device), "device_ip": f"192.168.0.{device}", "rank_id": str(rank)}
        for rank, device in enumerate((5, 4))
    ]
    server = {"server_id": "n1", "device": devices, "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    Path("table.json").write_text(json.dumps(table))
    options = ["--rank-table", "table.json", "--product", "a2", "--ignore", "HCC205", "--server", "n1"]
    emit = [*options, "--cpu", "--start", "table", "--emit", "slurm", "--no-python", "sh", "-c", PROGRAM]
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", *emit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def log(name: str) -> str:
    path = Path("log", name)
    return path.read_text() if path.exists() else ""


def state(bed: SlurmCluster, job: str) -> str:
    return bed.run(["scontrol", "--oneliner", "show", "job", job]).stdout


def test_requeue_on_another_node(spare_node: SlurmCluster) -> None:
    bed = spare_node
    Path("job.sbatch").write_text(emitted())
    submit = ["sbatch", "--parsable", "--requeue", "--nodelist=n1", "--output=out", "--open-mode=append"]
    job = bed.run([*submit, "job.sbatch"], env={"LOG_DIR": "log"}).stdout.strip()
    assert eventually(lambda: log("rank_0.log") == "0 5 n1\n" and log("rank_1.log") == "1 4 n1\n")

    bed.run(["scontrol", "update", "NodeName=n1", "State=drain", "Reason=broken"])
    bed.run(["scontrol", "requeue", job])
    assert eventually(lambda: "JobState=PENDING" in state(bed, job)), state(bed, job)
    # Slurm waits two minutes before it starts a requeued job; and the node was only named to begin there.
    bed.run(["scontrol", "update", f"JobId={job}", "ReqNodeList=", "StartTime=now"])

    assert eventually(lambda: "JobState=COMPLETED" in state(bed, job)), state(bed, job) + log("../out")
    assert (log("restart_1/rank_0.log"), log("restart_1/rank_1.log")) == ("0 5 n2\n", "1 4 n2\n")
    assert log("rank_0.log") == "0 5 n1\n"
