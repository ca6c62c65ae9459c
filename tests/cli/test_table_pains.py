"""What users of tables met in platforms, merges and samples, and what happens here instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.clusters import host
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow

MINE = "240.0.0.2"


def complete(table_format: str) -> dict[str, Any]:
    """A table of two hosts, 240.0.0.1 and 240.0.0.2, as the platform completes it."""
    value = table(table_format, 2, 8)
    entries = value["server_list"] if table_format == "1.0" else value["group_list"][0]["instance_list"]
    for number, entry in enumerate(entries, 1):
        entry["server_id"] = f"240.0.0.{number}"
    return value


def begun(table_format: str) -> dict[str, Any]:
    """The same as it stands there first: a Volcano table without servers, a ModelArts one with no pods."""
    value = {**complete(table_format), "status": "initializing"}
    if table_format == "1.0":
        return {**value, "server_list": []}
    return {**value, "group_list": [{**value["group_list"][0], "instance_list": []}]}


def asked_early(folder: Path, table_format: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with ``--wait`` on a table behind ``..data`` that is completed while it waits."""
    for name, value in (("..1", begun(table_format)), ("..2", complete(table_format))):
        (folder / name).mkdir()
        (folder / name / "hccl.json").write_text(json.dumps(value))
    (folder / "..data").symlink_to("..1")
    (folder / "hccl.json").symlink_to("..data/hccl.json")
    with subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", *command, "--wait", "600", "hccl.json"],
        cwd=folder, env={**os.environ, "MA_CURRENT_HOST_IP": MINE},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        said = child.stderr.readline()
        assert child.poll() is None, "it did not wait"
        (folder / "fresh").symlink_to("..2")
        (folder / "fresh").replace(folder / "..data")
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, said + err
    return subprocess.CompletedProcess(command, child.returncode, out, said + err)


@pytest.mark.parametrize(("table_format", "who"), [("1.0", "servers"), ("group_list", "instances")])
def test_a_table_that_stays_initializing_is_told_with_who_is_missing(
    tmp_path: Path, table_format: str, who: str
) -> None:
    done = asked_early(tmp_path, table_format, "validate")

    assert done.stderr.startswith(
        f'waiting for hccl.json: its status is "initializing"; 0 of 2 {who} are listed, 2 missing'
    )


@pytest.mark.parametrize("table_format", ["1.0", "group_list"])
def test_the_node_s_number_is_asked_for_and_not_cut_out(tmp_path: Path, table_format: str) -> None:
    done = asked_early(tmp_path, table_format, "show", "--here", "-f", "json")

    server = json.loads(done.stdout)["server"]
    assert (server["index"], server["server_id"]) == (1, MINE)
    assert [rank["rank"] for rank in server["ranks"]] == list(range(8, 16))


@pytest.mark.parametrize("table_format", ["1.0", "group_list"])
def test_the_first_server_s_address_is_asked_for_and_not_counted_off(
    tmp_path: Path, table_format: str
) -> None:
    done = asked_early(tmp_path, table_format, "show", "--rank", "0", "-f", "json")

    server = json.loads(done.stdout)["server"]
    assert (server["index"], server["server_id"]) == (0, "240.0.0.1")


def turned(value: Any) -> Any:
    """The same value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: turned(one) for key, one in reversed(value.items())}
    return [turned(one) for one in value] if isinstance(value, list) else value


def test_neither_order_of_keys_nor_layout_changes_an_answer(command_line: CommandLine) -> None:
    """``awk '{print $29}'`` holds for one layout alone."""
    value = complete("1.0")
    answers = []
    for text in (json.dumps(value, indent=4), json.dumps(turned(value))):
        command_line.write("hccl.json", text)
        answers.append(command_line("show", "--rank", "9", "-f", "json", "hccl.json").out)

    assert answers[0] == answers[1]
    assert json.loads(answers[0])["server"]["server_id"] == MINE


def test_every_value_of_a_merged_table_is_a_string(command_line: CommandLine) -> None:
    """A merge once wrote rank_id as a number, and HCCL refused the table."""
    names = [command_line.write(f"{number}.json", host(number)) for number in (1, 2)]

    printed = command_line("merge", *names, "-o", "-").out

    value = json.loads(printed)
    devices = [device for server in value["server_list"] for device in server["device"]]
    assert value["server_count"] == "2"
    assert [device["rank_id"] for device in devices] == [str(rank) for rank in range(16)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"version": "1.0",\n "server_count": "1", // one machine\n "server_list": []}', "2:23"),
        ('{"version": "1.0", /* of all */\n "server_list": []}', "1:20"),
        ('{\n "version": "1.0",\n "server_list": [\n  {"server_id": "a"},\n ]\n}\n', "4:21"),
        ('{\n "device": [{\n  "device_id": "0",\n }]\n}\n', "3:19"),
    ],
)
def test_a_pasted_sample_is_refused_with_line_and_column(
    command_line: CommandLine, text: str, place: str
) -> None:
    command_line.write("hccl.json", text)

    done = command_line("validate", "-f", "concise", "hccl.json")

    assert done.code == 1
    (finding,) = done.out.splitlines()
    assert finding.startswith(f"hccl.json:{place}: error HCC101 ")
    assert ("comment" if "/" in text else "comma") in finding


def test_servers_stand_in_the_order_that_mindspore_s_guide_asks_for(command_line: CommandLine) -> None:
    names = [command_line.write(f"{number}.json", host(number)) for number in (2, 3, 10)]

    assert command_line("merge", *names, "--order", "server-id", "-o", "job.json").code == 0

    servers = [server.server_id for server in command_line.read("job.json").servers]
    assert servers == ["10.1.0.10", "10.1.0.2", "10.1.0.3"]
    help_text = " ".join(command_line("merge", "--help").out.split())
    assert "HCCL accepts any order; MindSpore's guide requires the order of --order server-id" in help_text
