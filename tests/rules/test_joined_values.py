"""Devices of two servers in one list, addresses in the place of ids, and ids that are ranks."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, one, report, servers
from tests.support.tables import table


@pytest.mark.parametrize(
    ("count", "then"), [("3", "server_count is then right"), ("2", "count it in server_count")]
)
def test_devices_of_two_servers_in_one_list_are_one_finding(count: str, then: str) -> None:
    value = table("1.0", 3, 8)
    lost = servers(value).pop(2)
    servers(value)[1]["device"] += lost["device"]
    value["server_count"] = count

    (found,) = [each for each in report(value, "a2") if each.rule.id == "HCC303"]

    assert found.message.startswith('server "10.0.0.2" lists devices 0-7 twice with different addresses')
    assert found.pointer == "/server_list/1/device/8"
    assert (found.hint or "").startswith(
        'write ] }, { "server_id": "...", "device": [ before entry 8 of the list'
    )
    assert (found.hint or "").endswith(then)


def test_some_devices_twice_are_not_those_of_another_server() -> None:
    value = table("1.0", 2, 8)
    for number in (6, 7):
        servers(value)[1]["device"][number]["device_id"] = str(number - 6)

    assert "of another server" not in report(value, "a2")[0].message


@pytest.mark.parametrize("key", ["device_id", "rank_id"])
@pytest.mark.parametrize("number", [1, 16])
def test_addresses_in_the_place_of_ids_are_exchanged(key: str, number: int) -> None:
    value = table("1.0", 2, 8)
    for device in [device for server in servers(value) for device in server["device"]][:number]:
        device[key], device["device_ip"] = device["device_ip"], device[key]

    found = report(value, "a2")

    assert {each.message for each in found} == {f"device_ip and {key} are exchanged"}
    assert {each.hint for each in found} == {"exchange the two values"}


def test_a_number_in_place_of_an_address_alone_is_not_exchanged() -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["device"][3]["device_ip"] = "3"

    assert one(value, "HCC403", "a2")[0].startswith('"3" is not an IP address')


def numbered_as_ranks(value: Any, key: str) -> Any:
    for server in servers(value):
        for device in server["device"]:
            device[key] = device["rank_id"]
    return value


def test_device_ids_that_are_the_ranks_are_reported() -> None:
    value = numbered_as_ranks(table("1.0", 2, 8), "device_id")

    message, hint = one(value, "HCC649", "a2")

    assert message.startswith("the device_ids run on over the 2 servers, as the ranks do")
    assert hint.endswith('`hccn_tool -i 0 -ip -g` on 10.0.0.2 then shows "192.168.1.100"')


def test_ranks_that_start_again_with_the_devices_are_no_device_ids_that_run_on() -> None:
    value = table("1.0", 2, 8)
    for device in servers(value)[1]["device"]:
        device["rank_id"] = device["device_id"]

    assert [each.rule.id for each in report(value, "a2")] == ["HCC203"]


def test_device_ids_that_are_the_ranks_are_reported_without_addresses() -> None:
    value = numbered_as_ranks(table("1.0", 2, 8), "device_id")
    for server in servers(value):
        for device in server["device"]:
            del device["device_ip"]

    assert "HCC649" in {each.rule.id for each in report(value, "a2")}


def test_device_ids_that_are_the_ranks_and_too_high_are_one_finding() -> None:
    value = numbered_as_ranks(table("1.0", 3, 8), "device_id")

    assert one(value, "HCC302", "a2")[1] == (
        "the device_ids are the ranks, and each server numbers its devices itself: "
        "write 0 to 7 on each server, if it has these devices"
    )


def test_super_device_ids_that_are_the_ranks_are_reported() -> None:
    value = numbered_as_ranks(table("1.2", 2, 8), "super_device_id")

    found = [each for each in validate(value).findings if each.rule.id == "HCC649"]

    assert [each.message for each in found] == ["the super_device_ids are the ranks"]


@pytest.mark.parametrize("servers_of_it", [1, 2])
def test_usual_ids_are_not_the_ranks(servers_of_it: int) -> None:
    value = table("1.0", servers_of_it, 4)
    for server in servers(value):
        for device in server["device"]:
            device["device_id"] = str(int(device["device_id"]) + 4)

    assert is_sound(value, "a2")
    assert is_sound(table("1.0", servers_of_it, 8), "a2")


def test_eids_without_their_leading_zeros_are_one_finding() -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"]:
        address = rank["level_list"][0]["rank_addr_list"][0]
        address.update(addr_type="EID", addr=f"2000100000dfdf000{rank['rank_id']}")

    message, hint = one(value, "HCC456", "a5")

    assert message.startswith("addrs have less than 32 digits")
    assert hint.startswith('write "000000000000002000100000dfdf0000" in place of "2000100000dfdf0000"')


def test_the_first_and_the_next_devices_of_two_machines_are_sound() -> None:
    value = table("1.0", 2, 4)
    for server in servers(value):
        for device in server["device"]:
            device["device_id"] = device["rank_id"]

    assert is_sound(value, "a2")
