"""The torch example adds up over real ranks (gloo) from the command line that starts everything else."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import published
from tests.support.torch_python import TORCH_PYTHON as PYTHON
from tests.support.torch_python import needs_torch

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "allreduce_torch.py"


def test_it_is_a_script_of_a_user_who_never_heard_of_us() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    imported = {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }

    assert "torch" in imported
    assert "import hccl_tools" not in text
    assert "from hccl_tools" not in text


def launch(folder: Path, *options: str) -> list[str]:
    """Launch the example on the CPU and return the ranks' logs."""
    options = ("--cpu", "--python", PYTHON, *options)
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *options, str(SCRIPT)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = sorted((folder / "log" / "latest").glob("rank_[0-9]*.log"))
    return [log.read_text() for log in found]


@needs_torch
@pytest.mark.slow
def test_ranks_of_a_table_add_up(tmp_path: Path) -> None:
    # Ranks against the devices' order: torch_npu counts LOCAL_RANK along ascending devices.
    devices = [
        {"device_id": str(device), "device_ip": f"192.168.0.{device}", "rank_id": str(rank)}
        for rank, device in enumerate((7, 6, 5, 4))
    ]
    server = {"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    (tmp_path / "table.json").write_text(json.dumps(table))
    logs = launch(tmp_path, "--rank-table", "table.json", "--start", "torch", "--tail", "all")

    for rank, log in enumerate(logs):
        assert f"rank {rank} of 4 (local rank {3 - rank}): sum 10, expected 10" in log


@pytest.mark.slow
@needs_torch
def test_alone_it_is_one_rank_of_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )

    assert "rank 0 of 1 (local rank 0): sum 1, expected 1" in done.stdout, done.stderr


@needs_torch
@pytest.mark.slow
@pytest.mark.skipif(sys.executable == PYTHON, reason="MindSpore may be beside torch in this Python")
def test_where_only_torch_is_found_it_is_started_as_torch(tmp_path: Path) -> None:
    logs = launch(tmp_path, "-n", "2")

    plan = published.read("plan", tmp_path / "log" / "latest" / "plan.json")
    assert plan["chosen"]["start"].startswith("torch (torch 2.")
    assert [log.count("sum 3, expected 3") for log in logs] == [1, 1]


WORK = """\
import hccl_tools
import torch
import torch.distributed as dist

def add(factor):
    dist.init_process_group("gloo")
    total = torch.tensor([factor * (dist.get_rank() + 1)])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return dist.is_initialized(), hccl_tools.current_rank().rank, total.item()

if __name__ == "__main__":
    print(hccl_tools.spawn(add, (0.5,), nprocs=2, cpu=True).results)
"""


@needs_torch
@pytest.mark.slow
def test_spawned_ranks_add_up(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)

    done = subprocess.run(
        [PYTHON, "work.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    # Before it torch may warn that this host's address has no name.
    assert done.stdout.splitlines()[-1:] == ["[(False, 0, 1.5), (False, 1, 1.5)]"], done.stderr
