"""Which run a command takes: by a word for the latest, by a part of its name, or the running one."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.screens import on_terminal

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

_OLD, _NEW = "20261127-101530-a1b2c3d4e5f60718", "20261127-101530-e4b8c3d4e5f60718"


def _run_of(command_line: CommandLine, name: str, ranks: int) -> None:
    processes = [
        {"rank": rank, "host": "localhost", "here": True, "log": f"rank_{rank}.log", "argv": ["true"]}
        for rank in range(ranks)
    ]
    plan = {"world_size": ranks, "hosts": ["localhost"], "processes": processes}
    command_line.write(f"log/{name}/plan.json", plan)
    for rank in range(ranks):
        command_line.write(f"log/{name}/rank_{rank}.log", f"rank {rank} of {name[16:20]}\n")


@pytest.fixture
def runs(command_line: CommandLine) -> CommandLine:
    """Two runs of the same second, the second one with more ranks."""
    _run_of(command_line, _OLD, 1)
    _run_of(command_line, _NEW, 4)
    (command_line.folder / "log" / "latest").symlink_to(_NEW)
    return command_line


def _logs(runs: CommandLine, *typed: str) -> subprocess.CompletedProcess[str]:
    # The logs are copied to the descriptor, which the fixture does not catch.
    command = [sys.executable, "-m", "hccl_tools", "logs", *typed]
    return subprocess.run(command, cwd=runs.folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("typed", ["latest", "last", "newest"])
def test_words_for_the_latest_run(runs: CommandLine, typed: str) -> None:
    assert _logs(runs, typed).stdout == "rank 0 of e4b8\n"


@pytest.mark.parametrize("typed", ["last", "latest"])
def test_explain_takes_the_words(runs: CommandLine, typed: str) -> None:
    assert runs("explain", typed).out.startswith("no cause found in ")


def test_explain_names_the_run_on_a_terminal(runs: CommandLine) -> None:
    shown = on_terminal("explain").text

    assert shown.startswith("run 20261127-101530-e4b8:")


@pytest.mark.parametrize("typed", ["a1b2", "101530-a1b2", "20261127-101530-a1", _OLD, _OLD[18:]])
def test_any_part_of_a_name_that_only_one_run_has(runs: CommandLine, typed: str) -> None:
    assert _logs(runs, typed).stdout == "rank 0 of a1b2\n"


@pytest.mark.parametrize("typed", ["101530", "c3d4e5f60718"])
def test_a_part_that_two_runs_have(runs: CommandLine, typed: str) -> None:
    done = runs("logs", typed)

    assert done.sentence == f'"{typed}" is ambiguous: 20261127-101530-a1b2, 20261127-101530-e4b8'
    assert "the last run of these is 20261127-101530-" in done.err


@pytest.mark.parametrize("typed", ["20", "add", "dead"])
def test_a_short_part_stops_nothing(runs: CommandLine, typed: str) -> None:
    assert runs("stop", typed).sentence.startswith(f'there is no run "{typed}" in ')


@pytest.mark.parametrize("typed", ["2", "rank2", "rank_2.log"])
def test_a_number_is_a_rank_of_the_latest_run(runs: CommandLine, typed: str) -> None:
    done = _logs(runs, typed)

    assert (done.stdout, done.stderr) == ("rank 2 of e4b8\n", "rank 2 of 20261127-101530-e4b8:\n")


def test_a_rank_that_the_latest_run_does_not_have(runs: CommandLine) -> None:
    done = runs("logs", "5")

    assert done.sentence == "20261127-101530-e4b8 has no rank 5"
    assert "its ranks are 0 to 3" in done.err


def test_following_prefers_the_run_that_is_running(runs: CommandLine) -> None:
    with (runs.folder / "log" / _OLD / "launcher").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        follower = subprocess.Popen(
            [sys.executable, "-m", "hccl_tools", "logs", "-f"],
            cwd=runs.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == "rank 0 of a1b2\n"
            fcntl.flock(holder, fcntl.LOCK_UN)
            _out, said = follower.communicate(timeout=60)

    assert said == "rank 0 of 20261127-101530-a1b2, which is running:\n"


def test_following_a_run_that_has_ended_says_so(runs: CommandLine) -> None:
    done = _logs(runs, "-f")

    assert done.stdout == "rank 0 of e4b8\n"
    assert done.stderr == "rank 0 of 20261127-101530-e4b8, which has ended:\n"


@pytest.mark.parametrize("typed", ["log", "log/", "./log"])
def test_a_log_directory_is_its_latest_run(runs: CommandLine, typed: str) -> None:
    runs.write(f"log/{_OLD}/rank_0.log", "ModuleNotFoundError: No module named 'tensorboard'\n")
    done = runs("explain", typed)

    assert done.out.startswith("no cause found in 5 logs")
    assert "20261127-101530-e4b8" in done.err
    assert "is explained" in done.err


def test_a_log_directory_beside_a_file(runs: CommandLine) -> None:
    runs.write(f"log/{_OLD}/rank_0.log", "ModuleNotFoundError: No module named 'tensorboard'\n")
    runs.write("screen.txt", "ValueError: bad shape\n")

    assert "bad shape" in runs("explain", "log", "screen.txt").out
    assert "tensorboard" not in runs("explain", "log", "screen.txt").out


def test_runs_that_were_collected_in_a_folder_are_read_together(runs: CommandLine) -> None:
    (runs.folder / "log" / "latest").unlink()
    runs.write(f"log/{_OLD}/rank_0.log", "ModuleNotFoundError: No module named 'tensorboard'\n")

    assert "tensorboard" in runs("explain", "log").out


def test_explain_says_that_a_run_is_running(runs: CommandLine) -> None:
    with (runs.folder / "log" / _NEW / "launcher").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        shown = runs("explain").out
        found = json.loads(runs("explain", "-f", "json").out)

    assert shown.startswith("The run 20261127-101530-e4b8 is still running (4 ranks")
    assert "`hccl-tools stacks 20261127-101530-e4b8`" in shown
    assert "plog" not in shown
    assert "is still running" in found["notes"][0]
    assert "is still running" not in runs("explain").out
