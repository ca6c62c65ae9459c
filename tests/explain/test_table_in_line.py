"""CANN 8 and older print the rank table that they refuse: it is checked as a file would be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

REFUSED = "EI0004: The ranktable is invalid,Reason:[{}]. Please check the configured ranktable. [{}]"
OLD = (
    "EI0004: Invalid ranktable, with rank_id [0] and local device_id [0]. Check that ranktable [{}] is valid."
)
EXCEEDS = "Use a rank ID that exceeds the rank size in the ranktable."


def one_line(change: dict[str, str]) -> str:
    content: dict[str, Any] = json.loads(json.dumps(table("1.0", 1, 4)))
    content["server_list"][0]["device"][2] |= change
    return json.dumps(content)


def first_line(command_line: CommandLine, line: str) -> str:
    command_line.write("train.log", f"{line}\n")
    return command_line("explain", "train.log").out.splitlines()[0]


@pytest.mark.parametrize("line", [REFUSED.replace("{}", "The rank num is wrong", 1), OLD])
def test_the_fault_of_the_table_is_named(command_line: CommandLine, line: str) -> None:
    first = first_line(command_line, line.format(one_line({"device_id": "1"})))

    assert ' The table in this line: HCC303 device 1 occurs twice on server "10.0.0.1"' in first
    assert "/server_list/0/device/2/device_id" in first


def test_a_rank_that_the_table_does_not_have(command_line: CommandLine) -> None:
    first = first_line(command_line, REFUSED.format(EXCEEDS, one_line({})))

    assert first.startswith("The rank of the process is not in the rank table (EI0004).")
    assert "The table in this line has ranks 0-3, on devices 0-3" in first


@pytest.mark.parametrize("text", ["table", '{"server_count": "1", "server_', "{}", "[]"])
def test_a_line_without_a_whole_table(command_line: CommandLine, text: str) -> None:
    first = first_line(command_line, REFUSED.format("The rank num is wrong", text))

    assert first.startswith("HCCL refused the rank table: The rank num is wrong (EI0004)")
    assert "/server_list" not in first


def test_the_file_of_the_user_comes_before_the_table_in_the_line(command_line: CommandLine) -> None:
    command_line.write("hccl.json", one_line({"device_ip": "x"}))
    command_line.write("train.log", OLD.format(one_line({"device_id": "1"})) + "\n")
    first = command_line("explain", "train.log", "--rank-table", "hccl.json").out.splitlines()[0]

    assert "hccl.json:" in first
    assert "in this line" not in first
