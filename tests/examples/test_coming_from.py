"""The lines in docs/en/howto/coming_from.md: both of a pair start the same ranks; ours are accepted."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpiruns import MPIRUNS
from tests.support.paddle_python import PADDLE_LAUNCH, PADDLE_PYTHON, needs_paddle
from tests.support.torch_python import TORCH_PYTHON, TORCHRUN, needs_torch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "en" / "howto" / "coming_from.md").read_text(encoding="utf-8")
#: Writes the place of a rank and its arguments into a file, under each launcher.
PROGRAM = """
import json, os, sys
import hccl_tools
rank = hccl_tools.current_rank()
if rank.launched:
    with open(f"{os.environ['OUT']}/{rank.rank}", "w") as file:
        json.dump([rank.rank, rank.world_size, sys.argv[1:]], file)
"""


def pairs(section: str) -> list[tuple[str, str]]:
    """Return the lines of a section's table: theirs and ours."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [re.findall(r"`([^`]+)`", row) for row in text.splitlines() if row.startswith("| ")]
    return [(row[0], row[1]) for row in rows if len(row) >= 2]


HERE, THERE = pairs("One machine"), pairs("Several machines")


def command(line: str, python: str, *, cpu: bool) -> list[str]:
    """Return a line of the page as it is run here."""
    words = shlex.split(line)
    if line.startswith("hccl-tools launch"):
        options = ["--cpu", "--python", python] if cpu else []
        rest = [word for word in words[2:] if word != "python"]
        return [sys.executable, "-m", "hccl_tools", "launch", *options, *rest]
    if line.startswith("python -m paddle"):
        return [*PADDLE_LAUNCH, *words[3:]]
    if line.startswith("mpirun"):
        rank = [sys.executable, *words[4:]]
        return MPIRUNS[0].ranks(int(words[2]), *rank)
    beside = {"fleetrun": PADDLE_PYTHON, "msrun": sys.executable, "torchrun": TORCHRUN or TORCH_PYTHON}
    return [str(Path(beside[words[0]]).with_name(words[0])), *words[1:]]


def ranks(folder: Path, line: str, python: str) -> list[object]:
    """Run a line and return what its ranks have written."""
    out = folder / "out"
    out.mkdir()
    environ = {
        **os.environ, "OUT": str(out), "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "0,1",
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",  # msrun starts `python`
    }  # fmt: skip
    done = subprocess.run(
        command(line, python, cpu=True), cwd=folder, env=environ, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = [json.loads(file.read_text()) for file in sorted(out.iterdir())]
    shutil.rmtree(out)
    return found


def compare(folder: Path, launcher: str, python: str) -> None:
    (folder / "train.py").write_text(PROGRAM)
    chosen = [pair for pair in HERE if launcher in pair[0]]
    assert chosen
    seen: dict[str, list[object]] = {}
    for theirs, ours in chosen:
        # A launcher of a framework takes seconds: each line is run once.
        expected = seen.get(theirs) or ranks(folder, theirs, python)
        seen[theirs] = expected
        assert len(expected) == 2, theirs
        assert ranks(folder, ours, python) == expected, ours


@needs_paddle
@pytest.mark.parametrize("launcher", ["paddle.distributed.launch", "fleetrun"])
def test_lines_of_paddle(tmp_path: Path, launcher: str) -> None:
    compare(tmp_path, launcher, PADDLE_PYTHON)


@needs_torch
@pytest.mark.slow
def test_lines_of_torchrun(tmp_path: Path) -> None:
    compare(tmp_path, "torchrun", TORCH_PYTHON)


@pytest.mark.mindspore
@pytest.mark.slow
def test_lines_of_msrun(tmp_path: Path) -> None:
    compare(tmp_path, "msrun", sys.executable)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_lines_of_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without MindSpore's scheduler, which the program does not need.
    monkeypatch.setenv("PATH", f"{MPIRUNS[0].path.parent}:{os.environ['PATH']}")
    compare(tmp_path, "mpirun", TORCH_PYTHON)


def test_all_pairs_of_one_machine_are_run() -> None:
    launchers = ("paddle.distributed.launch", "fleetrun", "torchrun", "msrun", "mpirun")

    assert all(any(launcher in theirs for launcher in launchers) for theirs, _ in HERE)


@pytest.mark.parametrize("ours", [ours for _, ours in THERE if "--" in ours])
def test_our_lines_for_several_machines_are_accepted(tmp_path: Path, ours: str) -> None:
    (tmp_path / "train.py").write_text("")
    place = () if "rank" in ours.partition(" train.py")[0] else ("--node-rank", "0")
    words = command(ours, sys.executable, cpu=True)

    done = subprocess.run(
        [*words[:4], "--dry-run", *place, *words[4:]],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "plan: 4 ranks on 2 hosts" in done.stdout


def test_our_line_for_a_table_is_accepted(tmp_path: Path) -> None:
    (_, ours), *_ = pairs("The rank table")
    words = shlex.split(ours)

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", *words[1:], "--simulate", "910a"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hccl_8p_01234567_127.0.0.1.json").exists() or list(tmp_path.glob("hccl_8p_*.json"))
