"""Waiting for a table: when it is ready, which entries are missing, and files that change while read."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import TableError
from hccl_tools.files import waiting
from hccl_tools.validation import checker
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def group_list(instances: int, of: int, status: str = "initializing") -> dict[str, Any]:
    value = table("group_list", of, 2)
    value["status"] = status
    (group,) = value["group_list"]
    group["instance_list"] = group["instance_list"][:instances]
    return value


@pytest.mark.parametrize("table_format", ["1.0", "1.2", "2.0", "group_list"])
def test_a_complete_table_is_ready(table_format: str) -> None:
    assert waiting.state_of(table(table_format)).ready


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"status": "initializing"}, 'its status is "initializing"'),
        (
            group_list(2, 4),
            'its status is "initializing"; 2 of 4 instances are listed (job0, job1), missing: job2, job3',
        ),
        (group_list(0, 2), 'its status is "initializing"; 0 of 2 instances are listed, 2 missing'),
        (group_list(0, 2, "completed"), "0 of 2 instances are listed, 2 missing"),
        ({"status": "completed", "group_count": "0", "group_list": []}, "it lists no devices yet"),
        (
            {"status": "completed", "version": "1.0", "server_count": "2", "server_list": []},
            "0 of 2 servers are listed, 2 missing",
        ),
        (
            {**table("1.0", 1), "server_count": "2", "status": "initializing"},
            'its status is "initializing"; 1 of 2 servers are listed (10.0.0.1), 1 missing',
        ),
        (
            {**table("2.0", 1, 2), "rank_count": 4, "status": "initializing"},
            'its status is "initializing"; ranks missing: 2, 3',
        ),
        ({"version": "2.0", "rank_list": []}, "there is no rank yet"),
    ],
)
def test_who_is_missing(value: dict[str, Any], why: str) -> None:
    assert waiting.state_of(value) == waiting.State(ready=False, why=why)


def test_pods_that_are_not_numbered_are_counted() -> None:
    value = group_list(1, 2)
    value["group_list"][0]["instance_list"][0]["pod_name"] = "master"

    assert waiting.state_of(value).why.endswith("1 of 2 instances are listed (master), 1 missing")


@pytest.mark.parametrize(
    "value", [[], "x", {**table("1.0"), "status": "Completed"}, {**table("1.0"), "status": 5}]
)
def test_what_waiting_does_not_mend_is_not_waited_for(value: Any) -> None:
    assert waiting.state_of(value).ready


@pytest.mark.parametrize(
    ("text", "ready"),
    [('{"status": "comp', False), ("", False), ('{"status": "completed",}', True), (b"\xff\xfe", True)],
)
def test_files_that_are_half_written(tmp_path: Path, text: str | bytes, ready: bool) -> None:
    path = tmp_path / "hccl.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert waiting.look(str(path)).ready is ready


def test_a_file_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    assert waiting.look(str(tmp_path / "hccl.json")) == (False, "the file does not exist yet")


def test_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    assert waiting.look(str(tmp_path)).ready


def test_the_time_is_over(tmp_path: Path) -> None:
    path = tmp_path / "hccl.json"
    path.write_text(json.dumps(group_list(1, 2)))
    reported: list[str] = []

    with pytest.raises(TableError) as caught:
        waiting.wait(str(path), seconds=0.05, report=reported.append)

    why = 'its status is "initializing"; 1 of 2 instances are listed (job0), missing: job1'
    assert caught.value.message == f"{path} is not ready after 0.05 s: {why}"
    assert reported == [f"waiting for {path}: {why}"]


def test_standard_input_is_not_waited_for() -> None:
    waiting.wait("-", seconds=0, report=print)


class ConfigMap:
    """A folder as Kubernetes mounts a ConfigMap: files lead through ``..data`` into a version's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0
        folder.mkdir()

    def publish(self, text: str) -> None:
        """Put a new version in place as the kubelet does, and remove the old one."""
        old, self.version = self.version, self.version + 1
        new = self.folder / f"..{self.version}"
        new.mkdir()
        (new / "hccl.json").write_text(text)
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(new.name)
        fresh.replace(self.folder / "..data")
        if not old:
            (self.folder / "hccl.json").symlink_to("..data/hccl.json")
            return
        (self.folder / f"..{old}" / "hccl.json").unlink()
        (self.folder / f"..{old}").rmdir()


def in_background(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_config_map_is_completed_while_it_is_waited_for(tmp_path: Path) -> None:
    config = ConfigMap(tmp_path / "config")
    config.publish(json.dumps(group_list(0, 2)))
    reported: list[str] = []

    def operator(line: str) -> None:
        """Go one step further with each state that the waiting command reports."""
        reported.append(line)
        status = "initializing" if len(reported) < 2 else "completed"
        config.publish(json.dumps(group_list(len(reported), 2, status)))

    path = config.folder / "hccl.json"
    waiting.wait(str(path), seconds=600, report=operator)

    assert checker.validate(path).verdict == "accepted"
    assert reported[0].endswith("0 of 2 instances are listed, 2 missing")
    assert len(reported) == 2


def test_a_config_map_that_changes_all_the_time_is_always_read(tmp_path: Path) -> None:
    config = ConfigMap(tmp_path / "config")
    config.publish(json.dumps(table("1.0")))
    over = threading.Event()

    def operator() -> None:
        while not over.is_set():
            config.publish(json.dumps(table("1.0", 1, 2 if config.version % 2 else 1)))

    thread = in_background(operator)
    try:
        verdicts = {checker.validate(config.folder / "hccl.json").verdict for _ in range(300)}
    finally:
        over.set()
        thread.join()

    assert verdicts == {"accepted"}


def _pods(number: int, stated: int) -> dict[str, Any]:
    pods = [{"pod_name": f"job-{index}"} for index in range(number)]
    return {"instance_count": str(stated), "instance_list": pods}


@pytest.mark.parametrize(
    "value",
    [
        {"status": "initializing", "group_list": [_pods(32_768, 65_536)] * 4},
        {"status": "initializing", "group_list": [_pods(1, 65_536)] * 4096},
        {
            "status": "initializing",
            "rank_count": 2,
            # All have the hash 0, which is that of their remainder.
            "rank_list": [{"rank_id": number * ((1 << 61) - 1)} for number in range(20_000)],
        },
    ],
    ids=["pods", "groups", "numbers"],
)
def test_a_look_takes_a_bounded_time(value: dict[str, Any]) -> None:
    began = time.process_time()

    why = waiting.state_of(value).why

    assert "missing" in why
    assert len(why) < 10_000
    assert time.process_time() - began < 3


def test_long_names_are_cut() -> None:
    value = {"status": "initializing", "server_count": "2", "server_list": [{"server_id": "a" * 1_000_000}]}

    assert len(waiting.state_of(value).why) < 1000
