"""A type checker finds a wrong use of the library before it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_RIGHT = """\
import json
from pathlib import Path

import hccl_tools


def train(epochs: int) -> float:
    return hccl_tools.current_rank().rank * epochs


report: hccl_tools.Report = hccl_tools.validate("table.json", product="a2", ignore=["HCC602"])
finding: hccl_tools.Diagnostic = hccl_tools.validate({"version": "1.0"}).errors[0]
hccl_tools.validate(json.loads("{}"), env={"HCCL_INTRA_ROCE_ENABLE": "1"})
hccl_tools.validate(Path("table.json"))
hccl_tools.validate(b"{}")
job = hccl_tools.spawn(train, (3,), 2, gpus="4,5", cpu=True, log_dir=Path("log"), tail=[0], env={"GLOG_v": 2})
hccl_tools.spawn(train, args=(3,), devices=[4, 5], backend="hccl", join=False).join(1.5)
if report.table:
    merged = hccl_tools.merge([("a.json", report.table)])
    converted: hccl_tools.RankTable = hccl_tools.convert(report.table, to="1.2")
"""
#: A wrong use, and the code that mypy gives it.
_WRONG = {
    'hccl_tools.vaildate("table.json")': "attr-defined",
    "hccl_tools.validate(3.5)": "arg-type",
    'hccl_tools.validate("table.json", produkt="a2")': "call-arg",
    "hccl_tools.spawn(print, nproc=2)": "call-arg",
    'hccl_tools.spawn(print, nprocs="2")': "arg-type",
    'hccl_tools.spawn(print, backend="nccl")': "arg-type",
    "hccl_tools.current_rank().wrold_size": "attr-defined",
}


@pytest.mark.slow
def test_mypy_takes_the_right_and_refuses_the_wrong(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("\n".join([_RIGHT, *_WRONG, ""]))

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", script],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip

    first = _RIGHT.count("\n") + 2
    found = re.findall(r"script\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    assert found == [(str(line), code) for line, code in enumerate(_WRONG.values(), first)], done.stdout
