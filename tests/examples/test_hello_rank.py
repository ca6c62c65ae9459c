"""The smallest example runs plainly and under the launcher."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "hello_rank.py"


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_alone(tmp_path: Path) -> None:
    assert "rank 0 of 1 on " in run(sys.executable, str(SCRIPT), folder=tmp_path)


def test_ranks_of_a_table(tmp_path: Path) -> None:
    tools = [sys.executable, "-m", "hccl_tools"]
    run(*tools, "gen", "--simulate", "910a", "--device_num", "[4,8)", "-o", "table.json", folder=tmp_path)
    options = ["--rank-table", "table.json", "--cpu", "--start", "table", "--tail", "all"]

    said = run(*tools, "launch", *options, "--python", sys.executable, str(SCRIPT), folder=tmp_path)

    for rank, device in enumerate((4, 5, 6, 7)):
        assert f"rank {rank} of 4 on " in said
        assert f", device {device}, pid " in said
