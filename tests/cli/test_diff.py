"""``hccl-tools diff``: servers, ranks and values that differ, exit codes, JSON."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.table.difference import compare
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

FORMATS = ("1.0", "1.2", "2.0", "group_list")


def devices(value: dict[str, Any], server: int = 0) -> Any:
    return value["server_list"][server]["device"]


def diff(
    run: CommandLine, before: dict[str, Any], after: dict[str, Any], *args: str
) -> tuple[int, list[str]]:
    run.write("before.json", json.dumps(before))
    run.write("after.json", json.dumps(after, indent=4))
    done = run("diff", "before.json", "after.json", *args)
    return done.code, done.out.splitlines()


@pytest.mark.parametrize("table_format", FORMATS)
def test_layout_is_no_difference(command_line: CommandLine, table_format: str) -> None:
    value = table(table_format, servers=2)

    code, lines = diff(command_line, value, dict(reversed(value.items())))

    assert code == 0
    assert lines == [f"equal: fingerprint {fingerprint(command_line.read('before.json'))}"]


def test_a_replaced_server_moves_its_ranks(command_line: CommandLine) -> None:
    before, after = table(servers=2, devices=8), table(servers=2, devices=8)
    after["server_list"][1]["server_id"] = "10.0.0.9"

    code, lines = diff(command_line, before, after)

    assert code == 1
    assert lines[0].startswith("- before.json: 1.0, 2 servers, 16 ranks, fingerprint ")
    assert lines[1].startswith("+ after.json: 1.0, 2 servers, 16 ranks, fingerprint ")
    assert lines[2:] == [
        "servers:",
        "  - 10.0.0.2  ranks 8-15",
        "  + 10.0.0.9  ranks 8-15",
        "ranks:",
        "  ranks 8-15: 10.0.0.2 -> 10.0.0.9, same devices 0-7",
    ]


def test_swapped_ranks_and_a_changed_address(command_line: CommandLine) -> None:
    before, after = table(), table()
    devices(after)[0]["rank_id"], devices(after)[1]["rank_id"] = "1", "0"
    devices(after)[1]["device_ip"] = "192.168.0.77"

    _, lines = diff(command_line, before, after)

    assert lines[2:] == [
        "ranks:",
        "  rank 0: device 0 of 10.0.0.1 -> device 1",
        "  rank 1: device 1 of 10.0.0.1 -> device 0",
        "values:",
        "  device 1 of 10.0.0.1: device_ip 192.168.0.101 -> 192.168.0.77",
    ]


def test_fewer_ranks_and_other_values(command_line: CommandLine) -> None:
    before, after = table("1.2", servers=2, devices=4, pods=2), table("1.2", servers=2, devices=4, pods=2)
    devices(after, 1).pop()
    after["server_list"][0]["host_ip"] = "10.9.0.1"
    after["super_pod_list"][1]["super_pod_id"] = "7"

    _, lines = diff(command_line, before, after)

    assert lines[2:] == [
        "ranks:",
        "  - rank 7",
        "values:",
        "  10.0.0.1: host_ip (absent) -> 10.9.0.1",
        "  10.0.0.2: super_pod_id 1 -> 7",
    ]


def test_the_order_of_servers_counts(command_line: CommandLine) -> None:
    after = table(servers=2)
    after["server_list"].reverse()

    _, lines = diff(command_line, table(servers=2), after)

    assert lines[2:] == ["servers:", "  the servers are in another order"]


def test_many_differences_are_folded(command_line: CommandLine) -> None:
    after = table(servers=8, devices=8)
    for server in range(8):
        for device in devices(after, server):
            device["device_ip"] = device["device_ip"].replace("192.168.", "192.169.")

    _, folded = diff(command_line, table(servers=8, devices=8), after)
    _, unfolded = diff(command_line, table(servers=8, devices=8), after, "--all")

    assert folded[-1] == "  and 44 more (--all lists them)"
    assert len(unfolded) == 2 + 1 + 64


def test_json(command_line: CommandLine) -> None:
    after = table(servers=2)
    devices(after)[0]["device_ip"] = "192.168.0.77"

    _, lines = diff(command_line, table(servers=2), after, "-f", "json")
    value = json.loads("".join(lines))

    assert value["equal"] is False
    assert [file["rank_count"] for file in value["files"]] == [4, 4]
    assert value["values"] == [
        {
            "server": "10.0.0.1",
            "device": 0,
            "key": "device_ip",
            "before": "192.168.0.100",
            "after": "192.168.0.77",
        }
    ]


def test_what_cannot_be_compared(command_line: CommandLine) -> None:
    twice = table()
    devices(twice)[1]["rank_id"] = "0"
    command_line.write("good.json", json.dumps(table()))
    command_line.write("twice.json", json.dumps(twice))
    command_line.write("broken.json", "{")

    done = {
        name: command_line("diff", "good.json", name) for name in ("twice.json", "broken.json", "none.json")
    }
    both = command_line("diff", "-", "-")

    assert [one.code for one in (*done.values(), both)] == [2, 2, 2, 2]
    assert done["twice.json"].err == (
        "error: twice.json cannot be compared: two devices have one rank id\n"
        "  help: see `hccl-tools validate twice.json`; `diff -u good.json twice.json` compares the texts\n"
    )
    assert "the end of the file is missing" in done["broken.json"].err
    assert "no such file: none.json" in done["none.json"].err
    assert "both tables are standard input" in both.err


@pytest.mark.slow
@pytest.mark.parametrize("table_format", FORMATS)
@given(data=st.data())
def test_a_difference_exists_if_and_only_if_the_fingerprints_differ(
    tmp_path_factory: pytest.TempPathFactory, table_format: str, data: st.DataObject
) -> None:
    before = table(table_format, servers=2)
    after = deepcopy(before)
    leaves = list(texts_of(after))
    for _ in range(data.draw(st.integers(0, 2))):
        owner, key = data.draw(st.sampled_from(leaves))
        owner[key] = data.draw(st.sampled_from(["0", "1", "3", "10.0.0.1", "10.0.0.3", "192.168.0.9", "x"]))
    folder = tmp_path_factory.mktemp("tables")
    tables = [read(folder / f"{number}.json", value) for number, value in enumerate((before, after))]
    if None in tables:
        return
    first, second = tables
    try:
        found = compare(first, second)
    except ValueError:
        return

    assert found.is_empty == (fingerprint(first) == fingerprint(second))


def texts_of(value: Any) -> Any:
    """Yield each place of a text in a parsed file: its owner and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, str) and key != "version":
            yield value, key
        yield from texts_of(item)


def read(file: Path, value: dict[str, Any]) -> Any:
    file.write_text(json.dumps(value))
    return validate(str(file)).table


def test_tables_with_other_servers_are_compared_in_linear_time() -> None:
    def taken(count: int) -> int:
        tables = []
        for name in "ab":
            value = table("1.2", count, 2, 4)
            text = json.dumps(value).replace('"server_id": "', f'"server_id": "{name}')
            found = validate(text.encode(), product="a3").table
            assert found is not None
            tables.append(found)
        return steps(lambda: compare(*tables))

    assert taken(800) < 6 * taken(200)  # the square would be 16
