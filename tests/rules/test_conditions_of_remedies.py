"""Remedies that are right only under a condition state it, and one cause is one finding."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def found(value: Any, product: str) -> list[tuple[str, str, str]]:
    return [(one.rule.id, one.message, one.hint or "") for one in validate(value, product=product).findings]


@pytest.mark.parametrize("start", [8, 16, 32])
def test_ranks_of_a_second_half_are_numbered_again_only_if_the_first_is_not_lost(start: int) -> None:
    value = table("1.0", 2, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["rank_id"] = str(int(device["rank_id"]) + start)

    ((rule, _, hint),) = found(value, "a2")

    assert rule == "HCC202"
    assert hint == (
        f"if the devices with ranks 0-{start - 1} were lost, add them; "
        "only if the job uses no others, number the ranks 0 to 15: "
        f"each rank id is too high by {start}"
    )


@pytest.mark.parametrize("text", ["NA", "", "N/A", "unknown"])
@pytest.mark.parametrize("servers", [1, 2, 4])
def test_super_device_ids_that_are_no_numbers_are_one_finding(text: str, servers: int) -> None:
    value = table("1.2", servers, 8)
    for device in value["server_list"][-1]["device"]:
        device["super_device_id"] = text
    findings = validate(value, product="a3").findings

    assert {one.rule.id for one in findings} == {"HCC526"}
    assert len({one.alike for one in findings}) == 1
    assert all(
        one.alike is not None and one.alike[0] == f'super_device_id "{text}" is not a number'
        for one in findings
    )


def test_super_device_ids_with_different_texts_are_one_finding() -> None:
    value = table("1.2", 2, 8)
    for device in value["server_list"][-1]["device"]:
        device["super_device_id"] = f"x{device['device_id']}y"
    findings = validate(value, product="a3").findings

    assert {one.alike and one.alike[0] for one in findings} == {"super_device_ids are not numbers"}


@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("device", [0, 5, 7])
def test_a_device_that_the_product_requires_is_not_counted_out(servers: int, device: int) -> None:
    value = table("group_list", servers, 8)
    del value["group_list"][0]["instance_list"][-1]["devices"][device]

    assert [rule for rule, _, _ in found(value, "910a")] == ["HCC306"]
    assert "HCC512" in [rule for rule, _, _ in found(value, "a2")]


@pytest.mark.parametrize(("stated", "missing"), [("3", "server"), ("4", "2 servers"), ("64", "62 servers")])
def test_the_number_of_missing_servers_is_named(stated: str, missing: str) -> None:
    value = table("1.0", 2, 8)
    value["server_count"] = stated

    ((_, _, hint),) = found(value, "a2")

    assert hint == f'add the missing {missing}, or, if none is missing, write "server_count": "2"'


@pytest.mark.parametrize("servers", [2, 3, 8])
@pytest.mark.parametrize("device", [1, 3, 7])
def test_a_device_that_the_product_requires_is_one_finding(servers: int, device: int) -> None:
    value = table("1.0", servers, 8)
    del value["server_list"][1]["device"][device]

    rules = [rule for rule, _, _ in found(value, "910a")]

    assert "HCC306" in rules
    assert "HCC202" not in rules


def test_the_entries_of_one_server_twice_are_one_finding() -> None:
    value = table("1.2", 1, 16)
    value["server_list"].append(value["server_list"][0])

    assert [rule for rule, _, _ in found(value, "a3")] == ["HCC503"]


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("copied", [[0], [2, 5], [*range(8)]])
def test_addresses_of_another_node_are_one_finding(nodes: int, copied: list[int]) -> None:
    value = table("2.0", nodes, 8)
    assert found(value, "a5") == []
    first, last = value["rank_list"][:8], value["rank_list"][-8:]
    for device in copied:
        last[device]["level_list"][0]["rank_addr_list"] = first[device]["level_list"][0]["rank_addr_list"]

    ((rule, message, _),) = found(value, "a5")

    assert rule == "HCC615"
    assert "have the same addresses in layer 0" in message
