"""How many machines a job has, which of them this is, and what was typed beside a table: as plans tell it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def script(own_directory: Path) -> None:
    (own_directory / "train.py").write_text("print('trained')\n")


def launch(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--start", "table", "--cpu", *options, "--dry-run=json",
         "train.py"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def seats(*options: str) -> dict[str, list[int]]:
    """Return the ranks by host, those of this host under "here"."""
    done = launch(*options)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = {}
    for process in json.loads(done.stdout)["processes"]:
        found.setdefault("here" if process["here"] else process["host"], []).append(process["rank"])
    return found


def refusal(*options: str, code: int = 2) -> str:
    done = launch(*options)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    return done.stderr


#: msrun's command for 8 ranks on two machines.
MSRUN = ("--start", "torch", "--worker_num=8", "--local_worker_num=4", "--master_addr=10.0.0.1")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((*MSRUN, "--node_rank=0"), {"here": [0, 1, 2, 3], "node1": [4, 5, 6, 7]}),
        ((*MSRUN, "--node_rank=1"), {"node0": [0, 1, 2, 3], "here": [4, 5, 6, 7]}),
        (("--worker_num=2", "--local_worker_num=2", "--node_rank=0"), {"here": [0, 1]}),
        (("--nproc-per-node", "3"), {"here": [0, 1, 2]}),
        (
            ("--start", "torch", "--ips", "10.0.0.1,10.0.0.2", "--nproc-per-node", "2", "--node-rank", "1"),
            {"10.0.0.1": [0, 1], "here": [2, 3]},
        ),
    ],
)
def test_two_of_ranks_machines_and_ranks_on_each_make_the_third(
    options: tuple[str, ...], expected: dict[str, list[int]]
) -> None:
    assert seats(*options) == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*MSRUN,), "which of the 2 machines is this?"),
        ((*MSRUN, "--nnodes=3", "--node_rank=0"), "8 ranks are not 3 machines of 4"),
        (("--worker_num=8", "--local_worker_num=3"), "8 ranks do not make up machines of 3"),
        (("--devices", "0,1", "--nproc-per-node", "3"), "3 ranks per machine, but --devices names 2"),
        ((*MSRUN, "--node_rank=0", "--engine", "mpirun"), "--engine mpirun brings ranks to other machines"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(*options)
