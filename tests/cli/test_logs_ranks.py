"""How the ranks of ``logs`` are typed."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs import own_runs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

_HOST = "localhost"


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    folder = "log/20261127-101530-ab"
    processes = [
        {"rank": rank, "host": _HOST, "here": True, "log": f"rank_{rank}.log", "argv": ["true"]}
        for rank in range(5)
    ]
    command_line.write(f"{folder}/plan.json", {"world_size": 5, "hosts": [_HOST], "processes": processes})
    for rank in range(5):
        command_line.write(f"{folder}/rank_{rank}.log", f"line of {rank}\n")
    return command_line


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        (["--rank", "3"], [3]),
        (["--rank", "0,2-4"], [0, 2, 3, 4]),
        (["--rank", "4-3", "--rank", "0"], [0, 3, 4]),
        (["--rank", "all"], [0, 1, 2, 3, 4]),
        (["--rank", "1,1"], [1]),
    ],
)
def test_the_logs_of_several_ranks(job: CommandLine, options: list[str], ranks: list[int]) -> None:
    # The logs are copied to the descriptor, which the fixture does not catch.
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "logs", "20261127", *options],
        cwd=job.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert sorted(done.stdout.splitlines()) == [
        f"[rank {rank}] line of {rank}" if len(ranks) > 1 else f"line of {rank}" for rank in ranks
    ]


@pytest.mark.parametrize(
    ("options", "sentence", "advice"),
    [
        (["--rank", "5"], "has no rank 5", "its ranks are 0 to 4"),
        (["--rank", "0-999999999"], "has no rank 999999999", "its ranks are 0 to 4"),
        (
            ["--rank", "some"],
            '--rank "some" is not a rank',
            "for example --rank 3, --rank 0,2-4 or --rank all",
        ),
        (["--rank", ""], '--rank "" is not a rank', "for example"),
    ],
)
def test_ranks_that_a_run_does_not_have(
    job: CommandLine, options: list[str], sentence: str, advice: str
) -> None:
    done = job("logs", "20261127", *options)

    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert f"help: {advice}" in done.err


@pytest.mark.parametrize("typed", ["3", "rank3", "rank_3", "rank_3.log", "Rank-03"])
def test_a_rank_in_place_of_a_run_without_a_latest_run(job: CommandLine, typed: str) -> None:
    done = job("logs", typed)

    assert done.code == 2
    assert done.sentence == f"the log of rank 3 is that of a run, and there is no run in {Path.cwd()}/log"
    assert "`hccl-tools jobs` lists the 1 run there" in done.err


def test_another_name_is_not_taken_for_a_rank(job: CommandLine) -> None:
    assert "`hccl-tools jobs` lists the 1 run there" in job("logs", "rank").err


def _on_a_terminal(job: CommandLine, *arguments: str) -> bytes:
    """Return what a command writes to a terminal."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "hccl_tools", *arguments]
    with subprocess.Popen(
        command, cwd=job.folder, stdin=subprocess.DEVNULL, stdout=there, stderr=there
    ) as one:
        os.close(there)
        found = b""
        with contextlib.suppress(OSError):  # EIO: the command has ended.
            while data := os.read(here, 1 << 16):
                found += data
        os.close(here)
    assert one.returncode == 0, found
    return found


def test_a_run_that_is_not_in_the_record_writes_no_escape_sequence(job: CommandLine) -> None:
    run = job.folder / "log/20261127-101530-ab"
    (run / "rank_0.log").write_bytes(b"a\x1b]52;c;eA==\x07\tb\n")

    unpacked = _on_a_terminal(job, "logs", str(run), "--rank", "0")
    own_runs.note(str(run), os.environ)
    own = _on_a_terminal(job, "logs", str(run), "--rank", "0")

    assert unpacked.endswith(b"a\\u001b]52;c;eA==\\u0007\tb\r\n")
    assert own.endswith(b"a\x1b]52;c;eA==\x07\tb\r\n")
