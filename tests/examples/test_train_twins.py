"""The examples for Paddle and torch train on real ranks, whose parameters stay equal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paddle_python import PADDLE_PYTHON, needs_paddle
from tests.support.torch_python import TORCH_PYTHON, TORCHRUN, needs_torch

EXAMPLES = Path(__file__).parents[2] / "examples"
LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--cpu", "-n", "2", "--tail", "all")


def checksums(folder: Path, *command: str) -> set[tuple[str, str]]:
    """Run a training of two ranks; return what each has printed at its end: rank and checksum."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return set(re.findall(r"rank (\d) of 2: checksum of the parameters ([0-9a-f]{8})", done.stdout))


@needs_paddle
def test_both_levels_of_paddles_api_train_alike(tmp_path: Path) -> None:
    script = str(EXAMPLES / "train_paddle.py")
    base = checksums(tmp_path, *LAUNCH, "--python", PADDLE_PYTHON, script)
    high = checksums(tmp_path, *LAUNCH, "--python", PADDLE_PYTHON, script, "--api", "high")

    assert base == high
    assert {rank for rank, _ in base} == {"0", "1"}
    assert len({checksum for _, checksum in base}) == 1


@needs_torch
@pytest.mark.slow
def test_the_twin_for_torch_trains_as_under_torchrun(tmp_path: Path) -> None:
    script = str(EXAMPLES / "train_torch.py")
    ours = checksums(tmp_path, *LAUNCH, "--python", TORCH_PYTHON, script)

    assert {rank for rank, _ in ours} == {"0", "1"}
    assert len({checksum for _, checksum in ours}) == 1
    assert TORCHRUN is not None
    assert checksums(tmp_path, TORCHRUN, "--nproc-per-node", "2", script) == ours


PAGE = EXAMPLES.parent / "docs" / "en" / "howto" / "from_one_card.md"
#: The column of each script on the page that shows what changes in it.
COLUMNS = {"train_digits.py": 2, "train_paddle.py": 3, "train_torch.py": 5}
STEPS = ("meet the other ranks", "average the gradients", "share the data", "print once")


@pytest.mark.parametrize("script", COLUMNS)
def test_the_page_shows_lines_of_the_examples(script: str) -> None:
    source = (EXAMPLES / script).read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    cells = {row[0].removeprefix("| "): row[COLUMNS[script] - 1] for row in rows}

    for step in STEPS:
        shown = cells[step].strip("` |")
        assert shown in source, f"{script}: {step}"


@pytest.mark.parametrize("script", ["train_paddle.py", "train_torch.py"])
def test_marked_lines_are_few(script: str) -> None:
    lines = (EXAMPLES / script).read_text(encoding="utf-8").splitlines()

    assert 3 <= sum(line.endswith("# distributed") for line in lines) <= 6
