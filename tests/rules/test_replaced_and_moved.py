"""Machines that were replaced, entries that were pasted, and cells that were inserted in a spreadsheet."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def replaced(servers: int, old: int) -> dict[str, Any]:
    """Return a table without an old server, and with another one at the end whose ranks are counted on."""
    value = table("1.0", servers + 1, 8)
    new = value["server_list"].pop()
    del value["server_list"][old]
    new["server_id"] = "10.0.7.31"
    value["server_list"].append(new)
    value["server_count"] = str(servers)
    return value


def hint_on(value: dict[str, Any]) -> str:
    (hint,) = {one.hint for one in validate(value, product="910a").findings if one.rule.id == "HCC202"}
    return hint or ""


@pytest.mark.parametrize(("servers", "old"), [(2, 1), (4, 1), (16, 5)])
def test_a_new_machine_takes_the_ranks_that_are_missing(servers: int, old: int) -> None:
    value = replaced(servers, old)
    new = value["server_list"][-1]

    hint = hint_on(value)
    for place, device in enumerate(new["device"]):
        device["rank_id"] = str(old * 8 + place)

    ranks = f"ranks {old * 8}-{old * 8 + 7}"
    assert hint.startswith(f"if the server with {ranks} was lost, add it again")
    assert (
        f'; if server {servers} ("{new["server_id"]}") has replaced it, give that {ranks}; if it was' in hint
    )
    assert not validate(value, product="910a").errors


@pytest.mark.parametrize(("servers", "old"), [(2, 1), (4, 1), (4, 3), (16, 5)])
def test_a_last_server_in_the_row_of_its_neighbours_has_replaced_none(servers: int, old: int) -> None:
    value = replaced(servers, old)
    value["server_list"][-1]["server_id"] = f"10.0.0.{servers + 1}"

    assert "replaced" not in hint_on(value)


def test_a_last_server_in_a_row_of_letters_has_replaced_none() -> None:
    value = replaced(6, 2)
    for server, letter in zip(value["server_list"], "abdefg", strict=True):
        server["server_id"] = f"node-{letter}"

    assert "replaced" not in hint_on(value)


def test_a_part_of_a_server_replaces_no_server() -> None:
    value = replaced(4, 1)
    value["server_list"][-1]["device"][0]["rank_id"] = "8"

    assert "replaced" not in hint_on(value)


@pytest.mark.parametrize("servers", [1, 3])
def test_entries_of_a_group_list_lack_the_ranks_that_the_others_leave(servers: int) -> None:
    value = table("1.0", servers, 8)
    pasted = value["server_list"][servers // 2]
    pasted["devices"] = pasted.pop("device")
    for device in pasted["devices"]:
        del device["rank_id"]

    (finding,) = (one for one in validate(value, product="910a").findings if one.rule.id == "HCC111")

    ranks = "ranks 8-15 in" if servers == 3 else "0, 1, 2 and so on, over all servers, in"
    assert f'give its entries the "rank_id" that they lack: {ranks} the order of the file' in (
        finding.hint or ""
    )


def test_zeros_before_numbers_are_no_replacement() -> None:
    value = table("1.0", 2, 8)
    for device in value["server_list"][1]["device"]:
        device["device_ip"] = ".".join(f"{int(part):03}" for part in device["device_ip"].split("."))

    found = {(one.rule.id, one.message.partition('"')[0]) for one in validate(value, product="910a").errors}

    assert {rule for rule, _ in found} == {"HCC403"}
    assert not any("replacement" in message for _, message in found)


@pytest.mark.parametrize("row", [8, 13, 20])
def test_a_cell_that_was_inserted_moves_all_below_it(row: int) -> None:
    value = table("1.0", 4, 8)
    devices = [device for server in value["server_list"] for device in server["device"]]
    right = [device["device_ip"] for device in devices]
    for device, address in zip(devices, [*right[:row], right[row - 1], *right[row:-1]], strict=True):
        device["device_ip"] = address

    (finding,) = validate(value, product="910a").errors

    assert finding.rule.id == "HCC404"
    assert "all addresses below it are probably moved down by one row" in finding.message
    assert f'if it is "{right[row]}", remove this address' in (finding.hint or "")
    assert (finding.hint or "").endswith(f'write "{right[-1]}" in the last one')
