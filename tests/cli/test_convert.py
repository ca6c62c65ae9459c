"""``hccl-tools convert``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.files import waiting
from hccl_tools.table.fingerprint import fingerprint
from tests.support.clusters import host
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def test_a_modelarts_table(command_line: CommandLine) -> None:
    command_line.write("jobstart_hccl.json", table("group_list", 2, 8))

    done = command_line("convert", "jobstart_hccl.json", "--to", "1.0")

    assert done.code == 0
    assert done.err.splitlines() == [
        "group_list to 1.0: 2 servers, 16 ranks",
        'lost: 1 group name ("g0")',
        "kept: pod_name of 2 servers: HCCL ignores it in a 1.0 table; `launch` recognises the pod by it",
        "wrote jobstart_hccl.v1.0.json",
        "next: hccl-tools launch --rank-table jobstart_hccl.v1.0.json --engine ssh train.py",
    ]
    before, made = command_line.read("jobstart_hccl.json"), command_line.read("jobstart_hccl.v1.0.json")
    assert made.format == "1.0"
    assert fingerprint(before) == fingerprint(made)


def test_to_a_group_list_says_what_it_added(command_line: CommandLine) -> None:
    command_line.write("hccl.json", table("1.0", 2, 8))

    done = command_line("convert", "hccl.json", "--to", "group-list", "-o", "-")

    assert json.loads(done.out)["group_list"][0]["instance_list"][1]["pod_name"] == "10.0.0.2"
    assert 'added: group_name "group"' in done.err
    assert "added: pod_name of 2 instances: the server_id" in done.err


def test_super_pods_from_a_file(command_line: CommandLine) -> None:
    command_line.write("hccl.json", table("1.0", 1, 2))
    plan = {"10.0.0.1": {"super_pod_id": "3", "super_device_ids": {"0": "7", "1": "65543"}}}
    command_line.write("pods.json", plan)

    done = command_line("convert", "hccl.json", "--to", "1.2", "--super-pods", "pods.json", "-o", "a3.json")

    assert done.code == 0
    made = command_line.read("a3.json")
    assert made.columns["super_device_id"] == ["7", "65543"]
    assert [(pod.super_pod_id, pod.server_ids) for pod in made.super_pods or ()] == [("3", ["10.0.0.1"])]


def test_super_pods_from_a_table_and_back(command_line: CommandLine) -> None:
    command_line.write("a3.json", table("1.2", 2, 16))
    command_line("convert", "a3.json", "--to", "1.0", "-o", "plain.json")

    done = command_line("convert", "plain.json", "--to", "1.2", "--super-pods", "a3.json", "-o", "again.json")

    assert done.code == 0
    assert command_line.read("again.json") == command_line.read("a3.json")


def test_a_super_pod_table_is_an_a3s_in_every_format(command_line: CommandLine) -> None:
    """16 devices are wrong on a 910A, for which 1.0 tables are judged by default."""
    command_line.write("a3.json", table("1.2", 1, 16))

    done = command_line("convert", "a3.json", "--to", "1.0")

    assert done.code == 0
    assert "lost: super_device_id of 16 devices" in done.err


def test_the_format_that_it_has_already(command_line: CommandLine) -> None:
    command_line.write("hccl.json", table("1.0", 1, 8))

    done = command_line("convert", "hccl.json", "--to", "1.0", "-o", "copy.json")

    assert done.code == 0
    assert "the table already has format 1.0" in done.err
    assert command_line.read("copy.json") == command_line.read("hccl.json")


@pytest.mark.parametrize(
    ("value", "arguments", "sentence"),
    [
        (
            table("1.0"),
            ("--to", "2.0"),
            "a 1.0 table cannot be converted to 2.0, which needs each device's network levels",
        ),
        (
            table("2.0"),
            ("--to", "1.0"),
            "a 2.0 table cannot be converted to 1.0, which has no network levels",
        ),
        (
            table("1.0"),
            ("--to", "1.2"),
            "a 1.2 table needs each server's super pod and each device's super_device_id",
        ),
        (
            table("1.0"),
            ("--to", "1.2", "--super-pods", "hccl.json"),
            "hccl.json is a 1.0 table without super pods",
        ),
        ({"nodes": []}, ("--to", "1.0"), "hccl.json cannot be used"),
    ],
)
def test_what_cannot_be_said(
    command_line: CommandLine, value: object, arguments: tuple[str, ...], sentence: str
) -> None:
    command_line.write("hccl.json", value)

    done = command_line("convert", "hccl.json", *arguments)

    assert done.code == 1
    assert done.sentence.startswith(sentence)
    assert command_line.names == ["hccl.json"]


def test_ranks_that_would_change(command_line: CommandLine) -> None:
    value = host(2)
    value["server_list"] += host(10)["server_list"]
    for rank, device in enumerate(value["server_list"][1]["device"]):
        device["rank_id"] = str(8 + rank)
    command_line.write("hccl.json", {**value, "server_count": "2"})

    refused = command_line("convert", "hccl.json", "--to", "group_list")
    done = command_line("convert", "hccl.json", "--to", "group_list", "--renumber")

    assert refused.code == 1
    assert refused.sentence.startswith("16 of 16 ranks would change")
    assert done.code == 0
    assert "lost: 16 rank ids" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("hccl.json",), "missing option --to: one of 1.0"),
        (("hccl.json", "--to", "3.0"), '--to "3.0" is not one of 1.0, 1.2, 2.0, group_list'),
        (("nothing.json", "--to", "1.0"), "no such file: nothing.json"),
        (
            ("hccl.json", "--to", "1.0", "--super-pods", "x"),
            "--super-pods is for --to 1.2: a 1.0 table has no super pods",
        ),
    ],
)
def test_wrong_use(command_line: CommandLine, arguments: tuple[str, ...], sentence: str) -> None:
    command_line.write("hccl.json", table("1.0"))

    done = command_line("convert", *arguments)

    assert done.code == 2
    assert sentence in done.sentence


def test_a_table_behind_a_data_link_that_is_completed_later(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Volcano or ModelArts table: empty at first, swapped by Kubernetes when it is complete."""
    folder = command_line.folder / "config"
    for name, value in (
        ("..1", {"status": "initializing", "group_count": "0", "group_list": []}),
        ("..2", table("group_list", 2, 8)),
    ):
        command_line.write(f"config/{name}/jobstart_hccl.json", value)
    (folder / "..data").symlink_to("..1")
    (folder / "jobstart_hccl.json").symlink_to("..data/jobstart_hccl.json")

    def completed_after_a_look(path: str) -> waiting.State:
        state = look(path)
        if not state.ready:
            (folder / "fresh").symlink_to("..2")
            (folder / "fresh").replace(folder / "..data")
        return state

    look = waiting.look
    monkeypatch.setattr(waiting, "look", completed_after_a_look)
    done = command_line(
        "convert", "--wait", "600", "config/jobstart_hccl.json", "--to", "1.0", "-o", "hccl.json"
    )

    assert done.code == 0, done.err
    assert 'waiting for config/jobstart_hccl.json: its status is "initializing"; no' not in done.err
    assert done.err.startswith('waiting for config/jobstart_hccl.json: its status is "initializing"')
    assert command_line.read("hccl.json").rank_numbers == list(range(16))


@pytest.mark.parametrize("command", [("validate",), ("show",), ("convert", "--to", "1.0")])
def test_a_table_that_never_comes(command_line: CommandLine, command: tuple[str, ...]) -> None:
    command_line.write("hccl.json", {**table("1.0", 1, 8), "server_count": "2", "status": "initializing"})

    done = command_line(*command, "--wait", "0.05", "hccl.json")

    assert done.code == 1
    assert done.sentence == (
        'hccl.json is not ready after 0.05 s: its status is "initializing"; '
        "1 of 2 servers are listed (10.0.0.1), 1 missing"
    )
    assert "kubectl get pods" in done.err
    assert not Path("hccl.v1.0.json").exists()


def test_pod_names_that_stay_are_told(command_line: CommandLine) -> None:
    command_line.write("job.json", host(1, "group_list"))

    done = command_line("convert", "job.json", "--to", "1.0", "-o", "-")
    assert "pod_name" in done.out
    assert "kept: pod_name of 1 server: HCCL ignores it in a 1.0 table" in done.err

    command_line.write("plain.json", host(1))
    assert "kept" not in command_line("convert", "plain.json", "--to", "group_list", "-o", "-").err
