"""The training example trains for real: alone, and as a job of several ranks."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "train_digits.py"
ACCURACY = re.compile(r"^held-out accuracy: ([0-9.]+) ", re.MULTILINE)
CHECKSUM = re.compile(r"^rank (\d+) of (\d+): checksum of the parameters ([0-9a-f]{8})$", re.MULTILINE)

pytestmark = [pytest.mark.slow, pytest.mark.mindspore]


@pytest.fixture(autouse=True)
def _needs_mindspore() -> None:
    for name in ("mindspore", "sklearn"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def run(argv: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *argv], cwd=folder, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def accuracy(output: str) -> float:
    found = ACCURACY.findall(output)
    assert len(found) == 1, output
    return float(found[0])


@pytest.fixture(scope="module")
def accuracy_alone(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What one process, started plainly, reaches."""
    return accuracy(run([str(SCRIPT)], tmp_path_factory.mktemp("alone")))


def test_it_is_a_script_of_a_user_who_never_heard_of_us() -> None:
    statements = ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8")))
    names = {alias.name for node in statements if isinstance(node, ast.Import) for alias in node.names}

    assert "mindspore" in names
    assert not any(name.startswith("hccl_tools") for name in names)
    assert "from hccl_tools" not in SCRIPT.read_text(encoding="utf-8")


def test_alone_it_learns_to_read_digits(accuracy_alone: float) -> None:
    assert accuracy_alone >= 0.95


CRASH = textwrap.dedent("""
    import os, runpy, sys, threading, time
    def crash():
        while not os.path.exists("digits.ckpt"):
            time.sleep(0.01)
        os._exit(7)
    if os.environ["RANK_ID"] == "1" and not os.path.exists("digits.ckpt"):
        threading.Thread(target=crash, daemon=True).start()
    sys.argv = [SCRIPT, "--checkpoint", "digits.ckpt"]
    runpy.run_path(SCRIPT, run_name="__main__")
""")


def test_ranks_of_a_table_learn_together_although_one_is_lost(tmp_path: Path, accuracy_alone: float) -> None:
    (tmp_path / "crash.py").write_text(f"SCRIPT = {str(SCRIPT)!r}\n{CRASH}", encoding="utf-8")
    run(
        ["-m", "hccl_tools", "gen", "--simulate", "910a", "--device_num", "[4,6)", "-o", "table.json"],
        tmp_path,
    )
    options = ["--rank-table", "table.json", "--python", sys.executable, "--cpu", "--max-restarts", "1"]

    terminal = run(["-m", "hccl_tools", "launch", *options, "crash.py"], tmp_path)

    folder = tmp_path / "log" / "latest"
    logs = [(folder / f"rank_{rank}.restart_1.log").read_text() for rank in range(2)]
    for log in logs:
        (step,) = re.findall(r"^resumed from step (\d+)$", log, re.MULTILINE)
        assert 0 < int(step) < 12 * 11
    told = [CHECKSUM.findall(log) for log in logs]
    assert [(int(rank), int(size)) for ((rank, size, _),) in told] == [(0, 2), (1, 2)]
    assert len({checksum for ((_, _, checksum),) in told}) == 1
    assert accuracy(terminal) == accuracy(logs[0])
    assert abs(accuracy(terminal) - accuracy_alone) <= 0.03
    assert not ACCURACY.search(logs[1])


def test_a_finished_training_continues_with_more_epochs(tmp_path: Path) -> None:
    options = ["--checkpoint", "digits.ckpt", "--optimizer", "adam"]
    begun = run([str(SCRIPT), *options, "--epochs", "4"], tmp_path)

    continued = run([str(SCRIPT), *options, "--epochs", "12"], tmp_path)

    assert "resumed" not in begun
    assert "resumed from step 44\nepoch  5/12: " in continued
    assert accuracy(continued) >= 0.93


def test_a_batch_that_cannot_be_divided_is_refused(tmp_path: Path) -> None:
    run(
        ["-m", "hccl_tools", "gen", "--simulate", "910a", "--device_num", "[0,2)", "-o", "table.json"],
        tmp_path,
    )
    options = ["--rank-table", "table.json", "--python", sys.executable, "--cpu"]

    job = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *options, str(SCRIPT), "--batch_size", "63"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert job.returncode == 1
    assert "--batch_size 63 cannot be divided among 2 ranks" in job.stdout + job.stderr
