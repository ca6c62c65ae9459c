"""One job on the two nodes of a Slurm allocation, started once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch import engines
from hccl_tools.programs.lookup import ProgramMissingError

if TYPE_CHECKING:
    import subprocess

    from tests.beds.slurm_cluster import SlurmCluster

SHOW = """\
import json, os
names = ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "SERVER_ID", "SLURMD_NODENAME")
print(json.dumps({name: os.environ.get(name) for name in names}))
"""


@pytest.fixture
def table(own_directory: Path) -> str:
    """Write a 2 x 2 table whose ranks begin on the second node."""
    servers = [
        {
            "server_id": node,
            "device": [
                {
                    "device_id": str(device),
                    "device_ip": f"192.168.{first}.{device}",
                    "rank_id": str(first + device),
                }
                for device in range(2)
            ],
            "host_nic_ip": "reserve",
        }
        for node, first in (("n1", 2), ("n2", 0))
    ]
    value = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (own_directory / "table.json").write_text(json.dumps(value))
    (own_directory / "show.py").write_text(SHOW)
    return "table.json"


def launch(slurm_cluster: SlurmCluster, table: str, *program: str) -> subprocess.CompletedProcess[str]:
    options = [
        "--rank-table",
        table,
        "--product",
        "a2",
        "--ignore",
        "HCC2,HCC5,HCC6",
        "--cpu",
        "--start",
        "torch",
    ]
    options += ["--python", sys.executable, "--engine", "slurm"]
    command = [sys.executable, "-m", "hccl_tools", "launch", *options, *program]
    return slurm_cluster.run(["salloc", "-N2", "--ntasks-per-node=1", *command])


@pytest.mark.bed
def test_each_node_starts_its_own_ranks(slurm_cluster: SlurmCluster, table: str) -> None:
    done = launch(slurm_cluster, table, "show.py")

    assert done.returncode == 0, done.stdout + done.stderr
    for rank, (node, device) in enumerate((("n2", "0"), ("n2", "1"), ("n1", "0"), ("n1", "1"))):
        found = json.loads(Path("log/latest", f"rank_{rank}.log").read_text())
        assert (found["RANK_ID"], found["DEVICE_ID"], found["SLURMD_NODENAME"]) == (str(rank), device, node)


@pytest.mark.bed
def test_a_job_of_one_node(slurm_cluster: SlurmCluster, table: str) -> None:
    value = json.loads(Path(table).read_text())
    (server,) = value["server_list"] = [value["server_list"][1]]
    assert (server["server_id"], value.update(server_count="1")) == ("n2", None)
    Path(table).write_text(json.dumps(value))

    done = launch(slurm_cluster, table, "show.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(Path("log/latest/rank_1.log").read_text())["SLURMD_NODENAME"] == "n2"


@pytest.mark.bed
def test_failed_rank_ends_the_job_with_its_code(slurm_cluster: SlurmCluster, table: str) -> None:
    program = ["--no-python", "sh", "-c", "test $RANK_ID = 3 && exit 7; exec sleep 60"]

    done = launch(slurm_cluster, table, *program)

    assert done.returncode == 7, done.stdout + done.stderr
    assert "rank 3 failed first: exit code 7" in done.stderr


@pytest.mark.bed
def test_killed_supervisor_ends_the_job_and_its_node_is_named(
    slurm_cluster: SlurmCluster, table: str
) -> None:
    # A rank of n2 kills its supervisor, the parent of its keeper's watcher, as something from outside might.
    kill = "kill -9 $(ps -o ppid= $(ps -o ppid= $PPID))"
    program = ["--no-python", "sh", "-c", f"test $RANK_ID = 0 && {kill}; exec sleep 6363"]

    done = launch(slurm_cluster, table, *program)

    assert done.returncode == 137, done.stdout + done.stderr
    assert "lost contact with the supervisor on n2 (ranks 0, 1): " in done.stderr
    assert [
        words for node in slurm_cluster.nodes for words in node.commands().values() if "6363" in words
    ] == []


def test_srun_is_asked_inside_an_allocation_only(own_directory: Path) -> None:
    engine = engines.get("slurm")
    with pytest.raises(ProgramMissingError, match="no srun on PATH"):
        engine.locate({"PATH": str(own_directory)}, None, ["n1"])
    program = own_directory / "srun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {"PATH": f"{own_directory}:{os.environ['PATH']}"}
    with pytest.raises(LaunchError, match="not in a Slurm allocation"):
        engine.locate(environ, None, ["n1"])
    assert engine.locate({**environ, "SLURM_JOB_ID": "1"}, None, ["n1"]).program == str(program)
