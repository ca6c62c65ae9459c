"""The variables of a PaddleJob pod: taken as options, refused, or left alone in a rank."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.cli import pod_variables
from hccl_tools.cli.launch import command
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

POD = {"PADDLE_NNODES": "2", "PADDLE_MASTER": "job-master-0:37777", "PADDLE_NPROC_PER_NODE": "4"}


def read(environ: dict[str, str], *typed: str, here: bool = False) -> pod_variables.Taken:
    return pod_variables.read(environ, typed, lambda _name: here)


def test_a_pod_of_two_is_a_machine_of_two() -> None:
    expected = ("--master=job-master-0:37777", "--nnodes=2", "--nproc-per-node=4")

    for here, rank in ((True, 0), (False, 1)):
        taken = read(POD, here=here)
        assert taken.options == (*expected, f"--node-rank={rank}")
        assert "PADDLE_NNODES=2" in taken.note
        assert "unset them to ignore them" in taken.note
    assert read({**POD, "PADDLE_RANK": "1"}, here=True).options == (*expected, "--node-rank=1")
    assert read({**POD, "PADDLE_NNODES": "3"}).options == (expected[0], "--nnodes=3", expected[2])


def test_a_typed_option_counts_and_the_note_says_so() -> None:
    taken = read({"PADDLE_NPROC_PER_NODE": "4", "PADDLE_DEVICES": "0,1"}, "--nproc-per-node")

    assert taken.options == ("--devices=0,1",)
    assert "PADDLE_NPROC_PER_NODE does not count beside --nproc-per-node" in taken.note


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({"PADDLE_TRAINERS": "10.0.0.1,10.0.0.2"}, ("--ips=10.0.0.1,10.0.0.2",)),
        ({"PADDLE_IPS": "10.0.0.1", "PADDLE_TRAINERS": "10.0.0.2"}, ("--ips=10.0.0.1",)),
        ({"PADDLE_NNODES": "2", "PADDLE_TRAINER_ID": "1"}, ("--nnodes=2", "--node-rank=1")),
        ({"PADDLE_RUN_MODE": "collective", "PADDLE_ELASTIC_LEVEL": "-1"}, ()),
        ({"PADDLE_MAX_RESTART": "3"}, ("--max-restarts=3",)),
        ({"PADDLE_START_PORT": "17000"}, ("--start-port=17000",)),
        ({"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2"}, ()),  # Left in the shell by a launcher.
        ({"PADDLE_RANK": "-1", "PADDLE_SERVER_NUM": "0", "PADDLE_PG_TIMEOUT": "60000"}, ()),
        ({"PADDLE_JOB_ID": "job", "PADDLE_LOG_LEVEL": "INFO"}, ()),
    ],
)
def test_variables_that_are_understood(environ: dict[str, str], options: tuple[str, ...]) -> None:
    assert read(environ).options == options


@pytest.mark.parametrize(
    "left", ["PADDLE_CURRENT_ENDPOINT", "PADDLE_RANK_IN_NODE", "PADDLE_GLOBAL_RANK", "HCCL_TOOLS_RUN_DIR"]
)
def test_what_a_rank_has_is_not_taken(left: str) -> None:
    assert read({**POD, left: "0"}) == pod_variables.Taken()


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("PADDLE_RUN_MODE", "ps", "parameter servers"),
        ("PADDLE_SERVER_NUM", "2", "parameter servers"),
        ("PADDLE_ELASTIC_LEVEL", "1", "--max-restarts"),
        ("PADDLE_SORT_IP", "true", "in rank order"),
    ],
)
def test_variables_that_are_refused(name: str, value: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"{name}={value}: launch has no option") as caught:
        read({name: value})
    assert hint in str(caught.value.hint)
    assert f"unset {name}" in str(caught.value.hint)


def test_every_option_is_one_of_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_NPROC_PER_NODE", "3")
    with command.make_context("launch", ["--cpu", "--nnodes", "1", "train.py"]) as context:
        assert context.params["per_node"] == "3"
    with command.make_context("launch", ["--nproc_per_node=2", "train.py"]) as context:
        assert context.params["per_node"] == "2"


def test_the_launch_of_a_pod_prints_what_it_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("")
    for name, value in {**POD, "PADDLE_MASTER": "127.0.0.1:37777", "PADDLE_NNODES": "1"}.items():
        monkeypatch.setenv(name, value)

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", "--dry-run", "--cpu", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "plan: 4 ranks on localhost" in done.stdout
    assert "PADDLE_NPROC_PER_NODE=4 of this pod: taken as --master=127.0.0.1:37777" in done.stderr
