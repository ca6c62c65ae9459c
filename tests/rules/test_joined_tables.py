"""Tables that were joined by hand: the finding says so, and the remedy numbers the ranks on."""

from __future__ import annotations

import copy
import json
import shlex
import subprocess
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table

MERGE = "to join them: `hccl-tools merge A B`, which continues the rank numbers"
ON = '; then continue the rank numbers with 8 in server "10.0.0.2": its ranks are those of a server before it'


def single(index: int) -> Any:
    """Return the table of one host, whose ranks are from 0 on."""
    value = table("1.0", index + 1, 8)
    value.update(server_list=value["server_list"][index:], server_count="1")
    for rank, device in enumerate(value["server_list"][0]["device"]):
        device["rank_id"] = str(rank)
    return value


def text(value: Any) -> str:
    return json.dumps(value, indent=4)


def entries(index: int) -> str:
    return text(single(index)["server_list"])[1:-1].strip()


def around(servers: str) -> str:
    return f'{{"version": "1.0", "server_count": "2", "server_list": [{servers}], "status": "completed"}}'


def found(data: str) -> list[tuple[str, str, str]]:
    report = validate(data.encode(), product="a2")
    return [(one.rule.id, one.message, one.hint or "") for one in report.findings]


@pytest.mark.parametrize(
    ("between", "rule"),
    [("\n", "HCC101"), ("]\n[", "HCC101"), ("],\n[", "HCC101")],
)
def test_lists_that_were_joined_get_the_sign_and_the_next_rank(between: str, rule: str) -> None:
    ((own, _, hint),) = found(around(entries(0) + between + entries(1)))

    assert own == rule
    assert hint.endswith(ON)


def test_lists_in_the_list_get_the_next_rank() -> None:
    hints = {hint for *_, hint in found(around(f"[{entries(0)}], [{entries(1)}]"))}

    assert len(hints) == 1
    assert hints.pop().endswith(ON)


def test_a_list_that_was_only_parted_needs_no_other_ranks() -> None:
    servers = table("1.0", 2, 8)["server_list"]

    ((_, _, hint),) = found(around(text(servers[0]) + "\n" + text(servers[1])))

    assert hint.startswith("write a comma")
    assert "rank" not in hint


def test_two_tables_in_one_object_are_one_finding() -> None:
    first = text(single(0)).rstrip("} \n")

    ((rule, message, hint),) = found(first + ",\n" + text(single(1)).lstrip("{"))

    assert (rule, message) == (
        "HCC601",
        "the keys of two tables are in one object, of which HCCL reads only the second: it begins on line 54",
    )
    assert hint == (
        "write } in place of the comma before line 54 and { after it, and save each of the two tables in a "
        f"file of its own; {MERGE}"
    )


def test_single_keys_that_appear_twice_are_no_table() -> None:
    value = text(single(0)).replace('"version"', '"status": "completed", "version": "1.0", "version"', 1)

    assert {rule for rule, *_ in found(value)} == {"HCC601"}
    assert "two tables" not in str(found(value))


def test_a_table_whose_end_is_lost_before_another_one_is_not_to_be_deleted() -> None:
    first = text(single(0))
    cut = first[: first.index('"status"')].rstrip()

    ((rule, message, hint),) = found(cut + "\n" + text(single(1)))

    assert rule == "HCC101"
    assert message.startswith("there are two tables in this file, and the end of the first is missing")
    assert hint.endswith(MERGE)


def test_a_part_of_the_same_table_before_it_is_to_be_deleted() -> None:
    whole = text(single(0))
    cut = whole[: whole.index('"status"')].rstrip()

    ((_, _, hint),) = found(cut + "\n" + whole)

    assert hint.startswith("delete what stands before the whole table")


def test_the_command_makes_a_table_of_several_lists() -> None:
    data = f"[{entries(0)}]\n[{entries(1)}]\n"

    ((rule, message, hint),) = found(data)

    assert (rule, message) == (
        "HCC110",
        "not a rank table: these are lists of servers one after the other (2 servers)",
    )
    command = hint.partition(": ")[2].partition(" < OLD > NEW")
    assert command[2] == ON
    run = subprocess.run(shlex.split(command[0]), input=data.encode(), stdout=subprocess.PIPE, check=True)
    made = json.loads(run.stdout)
    assert [rule for rule, *_ in found(text(made))] == ["HCC203"]
    for rank, device in enumerate(made["server_list"][1]["device"], 8):
        device["rank_id"] = str(rank)
    assert found(text(made)) == []


def test_the_count_of_a_joined_table_does_not_say_to_remove_a_server() -> None:
    value = table("1.0", 4, 8)
    value["server_count"] = "2"
    for server in value["server_list"][2:]:
        for device in server["device"]:
            device["rank_id"] = str(int(device["rank_id"]) - 16)

    findings = found(text(copy.deepcopy(value)))

    assert [rule for rule, *_ in findings] == ["HCC501", "HCC203"]
    assert findings[0][1].endswith(
        'server 3 ("10.0.0.3") starts at rank 0 again, as if two tables were joined'
    )
    assert findings[0][2] == 'write "server_count": "4", and number the ranks on (HCC203)'
