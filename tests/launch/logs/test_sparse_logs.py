"""Logs with holes, which take no room on the disk: every user can make one of terabytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import sparse_files
from tests.support.jobs import LONG

if TYPE_CHECKING:
    from pathlib import Path

#: Reading it would take hours.
HUGE = 8 << 40


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "20261127-101530-ab"
    run.mkdir()
    process = {"rank": 0, "host": "localhost", "here": True, "log": "rank_0.log", "argv": ["true"]}
    plan = {"world_size": 1, "hosts": ["localhost"], "processes": [process]}
    (run / "plan.json").write_text(json.dumps(plan))
    return run


def sparse(path: Path, *, end: bytes = b"") -> None:
    path.write_bytes(b"first line\n")
    os.truncate(path, HUGE)
    with path.open("r+b") as file:
        file.seek(HUGE - len(end))
        file.write(end)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system has no holes")


@pytest.mark.parametrize("options", [["-n", "3"], ["-n", "1"], []])
def test_logs_shows_what_is_there(run: Path, options: list[str]) -> None:
    sparse(run / "rank_0.log", end=b"\nlast line\n")

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "logs", str(run), *options],
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    shown = [line.strip("\0") for line in done.stdout.splitlines() if line.strip("\0")]
    assert shown == (["last line"] if options == ["-n", "1"] else ["first line", "last line"])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["run", "folder"])
def test_explain_says_that_holes_are_left_out(run: Path, what: str) -> None:
    sparse(run / "rank_0.log", end=b"\nRuntimeError: the last line\n")
    if what == "folder":
        (run / "plan.json").unlink()

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "explain", str(run), "--bundle", f"{run.parent}/b.tgz"],
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "RuntimeError: the last line" in said
    assert "rank_0.log is a sparse file: its holes were left out" in said


def test_the_parts_with_data(tmp_path: Path) -> None:
    path = tmp_path / "file"
    sparse(path, end=b"end")
    with path.open("rb") as file:
        found = list(sparse_files.extents(file.fileno(), 0, HUGE))
        inside = list(sparse_files.extents(file.fileno(), 5, 9))

    assert found[0][0] == 0
    assert found[-1][1] == HUGE
    assert sum(end - begin for begin, end in found) < 1 << 20
    assert inside == [(5, 9)]
