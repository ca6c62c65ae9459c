"""The torch example hangs in each of its ways, and ``explain`` says which rank is at fault and how."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import published
from tests.support.hanging import without_py_spy
from tests.support.jobs import LONG
from tests.support.torch_python import TORCH_PYTHON, needs_torch

SCRIPT = Path(__file__).parents[2] / "examples" / "hang_torch.py"
OPTIONS = ("--start", "torch", "--python", TORCH_PYTHON, "--grace", "5", "--flight-recorder")

pytestmark = [needs_torch, pytest.mark.slow]


def launch(
    folder: Path, kind: str, *options: str, ranks: int = 2
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    here = ("--no-table", "--cpu", "-n", str(ranks), "--tail", "none", *OPTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *here, *options, str(SCRIPT), kind],
        cwd=folder, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    return done, published.read("report", folder / "log" / "latest" / "report.json")


def explained(folder: Path) -> str:
    command = [sys.executable, "-m", "hccl_tools", "explain", "-f", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LONG)
    found = json.loads(done.stdout)["causes"][0]
    return f"{found['message']} {found['ranks']} {found['sentence']} {found['reason']}"


def test_it_is_a_script_of_a_user_who_never_heard_of_us() -> None:
    assert not [
        node
        for node in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hccl_tools")
    ]


@pytest.mark.parametrize(
    ("kind", "options", "ranks", "said"),
    [
        ("missing", (), 2, ["HCM895 [1]", "last issued number 5 and is in load_data ("]),
        (
            "loop",
            ("--progress", r"step \d+"),
            2,
            ["HCM895 [1]", "last issued number 5 and is in load_data ("],
        ),
        ("operation", (), 3, ["HCM894 [2]", "ranks 0-1 in all_reduce, rank 2 in broadcast"]),
        ("order", (), 2, ["HCM894 [0, 1]", "group tp0", "group dp0", "in another order"]),
        ("lost", (), 2, ["HCM940 [0, 1]", "Both ranks of the group have begun all_reduce number 6"]),
    ],
)
def test_a_hang_is_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    kind: str,
    options: tuple[str, ...],
    ranks: int,
    said: list[str],
) -> None:
    without_py_spy(monkeypatch)
    limit = "20" if kind == "loop" else "2"  # A loaded machine needs long to load torch.
    done, report = launch(tmp_path, kind, "--hang-timeout", limit, *options, ranks=ranks)

    assert done.returncode == 124, done.stderr
    (note,) = report["evidence"]
    assert (note["stacks"], note["recorders"], note["problems"]) == (ranks, ranks, [])
    assert note["seconds"] <= 5.0
    answer = explained(tmp_path)
    assert [part for part in said if part.lower() not in answer.lower()] == [], answer
    assert f"evidence: {ranks} stacks and {ranks} recorder dumps (evidence_0.json)" in done.stderr


def test_sizes_that_differ_are_named_by_gloo_itself(tmp_path: Path) -> None:
    done, report = launch(tmp_path, "size", "--hang-timeout", "5")

    assert report["reason"] == "failed", done.stderr
    assert explained(tmp_path).startswith("HCM944 ")


def test_a_rank_that_is_killed_is_the_cause(tmp_path: Path) -> None:
    done, _ = launch(tmp_path, "dead", "--hang-timeout", "5")

    assert done.returncode == 137, done.stderr
    assert explained(tmp_path).startswith("HCM820 [1]")
