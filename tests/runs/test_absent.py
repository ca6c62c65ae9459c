"""Where a command finds no run, it names the folder it looked in, and what to type instead."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs import index, listing
from tests.support.commands import run_here

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("20261127-151046-d345bd5c", "20261127-152448-846ab17e")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs that have ended, in job/log; the current folder is beside it."""
    for name in NAMES:
        run = tmp_path / "job" / "log" / name
        run.mkdir(parents=True)
        plan = {"world_size": 1, "hosts": [], "processes": []}
        (run / "plan.json").write_text(json.dumps(plan))
        (run / "launcher").write_text(f"1\n{os.uname().nodename}\n1000\nlaunch\n0\nended 0 ended\n")
    (tmp_path / "job" / "log" / "latest").symlink_to(NAMES[-1])
    (tmp_path / "job" / "other").mkdir()
    monkeypatch.chdir(tmp_path / "job" / "other")
    return tmp_path / "job"


@pytest.mark.parametrize("command", [("logs",), ("logs", "latest"), ("stop",), ("stacks",), ("explain",)])
def test_a_wrong_folder_is_named_and_so_is_the_right_one(job: Path, command: tuple[str, ...]) -> None:
    done = run_here(*command)

    assert done.returncode == 2
    assert f"error: there is no run: {job}/other/log does not exist\n" in done.stderr
    assert "`--log-dir ../log`" in done.stderr
    assert "hccl-tools jobs" not in done.stderr


def test_a_name_that_is_not_there(job: Path) -> None:
    done = run_here("stop", "nope", folder=job)

    assert (
        f'there is no run "nope" in {job}/log\n  help: `hccl-tools jobs` lists the 2 runs there\n'
        in done.stderr
    )
    elsewhere = run_here("stop", "nope", "--log-dir", "../log")
    assert "`hccl-tools jobs --log-dir ../log` lists the 2 runs there" in elsewhere.stderr


def test_runs_that_ended_are_not_no_runs(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job)

    # The machine can have other runs, which the command would list.
    shown = listing.as_text([], "log", among=index.find("log"))

    assert shown == "no run is running; `hccl-tools jobs` lists the 2 runs that ended\n"
    assert all(name[:20] in run_here("jobs", "-a").stdout for name in NAMES)


def test_an_empty_list_says_where_it_looked(job: Path) -> None:
    shown = listing.as_text([], "log")

    assert shown == (
        f"there is no run: {job}/other/log does not exist\n"
        "  help: there are runs in another folder: add `--log-dir ../log`\n"
    )


def test_stopping_all_where_none_runs(job: Path) -> None:
    done = run_here("stop", "--all", folder=job)

    assert (done.returncode, done.stderr) == (0, "no run is running here: nothing to stop\n")
    assert run_here("stop", "--all", NAMES[0], folder=job).returncode == 2


def test_the_shells_folder_before_is_looked_at(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job.parent / "far" / "away").mkdir(parents=True)
    monkeypatch.chdir(job.parent / "far" / "away")
    monkeypatch.setenv("OLDPWD", str(job))

    assert f"add `--log-dir {job}/log`" in listing.as_text([], "log").replace("\n    ", " ")


def test_a_list_of_the_runs_of_other_folders_says_that_this_one_has_none(job: Path) -> None:
    shown = listing.as_text([index.find("../log")[0]], "log")

    lines = " ".join(shown.split())
    assert f"there is no run: {job}/other/log does not exist; there are runs in another folder: add" in lines
    assert "there is no run" not in listing.as_text(index.find("../log"), "../log")
