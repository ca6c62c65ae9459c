"""Real MindSpore ranks on the CPU: a collective over the ranks of a table, however they are started."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.mindspore,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="MindSpore is not installed"),
]
PROGRAM = """\
import os
import time
from pathlib import Path
import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, ops

ms.set_device("CPU")
communication.init()
rank, size = communication.get_rank(), communication.get_group_size()
total = ops.AllReduce()(Tensor(np.array([rank + 1.0], dtype=np.float32)))
with open(f"result_{rank}", "w") as file:
    print(rank, size, os.environ["RANK_ID"], os.environ["DEVICE_ID"], total.asnumpy()[0], file=file)
Path(f"done_{rank}").touch()
while len(list(Path().glob("done_*"))) < size:
    time.sleep(0.02)
os._exit(0)  # MindSpore 2.10 may crash when it leaves its cluster (tests/test_launchers.py)
"""


@pytest.fixture(autouse=True)
def program(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (own_directory / "reduce.py").write_text(PROGRAM)
    devices = [
        {"device_id": str(4 + rank), "device_ip": f"192.168.0.{rank + 1}", "rank_id": str(rank)}
        for rank in range(2)
    ]
    value = {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip
    (own_directory / "table.json").write_text(json.dumps(value))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def results() -> list[list[str]]:
    return [Path(f"result_{rank}").read_text().split() for rank in range(2)]


@pytest.mark.mpi
def test_ranks_as_mpi_processes() -> None:
    run(sys.executable, "-m", "hccl_tools", "launch", "-n", "2", "--engine", "mpirun", "--cpu", "reduce.py")

    assert results() == [["0", "2", "0", "0", "3.0"], ["1", "2", "1", "1", "3.0"]]


@pytest.mark.mpi
def test_shim_by_hand_with_a_table() -> None:
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    shim = [
        sys.executable,
        "-m",
        "hccl_tools.launch.rank",
        "--cpu",
        "--rank-table",
        "table.json",
        "reduce.py",
    ]
    run("mpirun", *root, "--oversubscribe", "-n", "2", *shim)

    assert results() == [["0", "2", "0", "4", "3.0"], ["1", "2", "1", "5", "3.0"]]
