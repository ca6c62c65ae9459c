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
        'write ] }, { "server_id": "...", "device": [ in place of the comma before entry 9 of the list'
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


# Several addresses in one text, and addresses that are counted on


@pytest.mark.parametrize("text", ["10.0.0.2 172.17.0.1", "172.17.0.1,10.0.0.2", "10.0.0.2 fe80::1 "])
def test_of_several_addresses_in_a_server_id_that_of_the_network_is_kept(text: str) -> None:
    value = table("1.0", 3, 8)
    servers(value)[1]["server_id"] = text

    (found,) = report(value, "a2")

    assert "addresses, as `hostname -I` prints them: it must be one" in found.message
    assert (found.hint or "").startswith('write "10.0.0.2" alone, the only one in the network')


def test_an_address_that_several_servers_have_is_not_that_of_a_server() -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        server["server_id"] += ";172.17.0.1"

    assert [(found.hint or "").partition(",")[0] for found in report(value, "a2")] == [
        'write "10.0.0.1" alone',
        'write "10.0.0.2" alone',
    ]


def test_without_a_network_of_the_others_the_choice_is_left_to_the_reader() -> None:
    value = table("1.0", 1, 8)
    servers(value)[0]["server_id"] = "10.0.0.1 172.17.0.1"

    assert one(value, "HCC619", "a2")[1].startswith(
        "write one of them alone, that by which the other hosts reach"
    )


def test_a_super_pod_has_the_right_one_of_two_addresses() -> None:
    value = table("1.2", 2, 8)
    servers(value)[1]["server_id"] = "10.0.0.2 172.17.0.1"

    (found,) = [each for each in report(value, "a3") if each.rule.id == "HCC524"]

    assert (found.hint or "").startswith('write "server_id": "10.0.0.2" in server 2 of server_list')


def test_a_device_with_three_addresses_keeps_one() -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["device"][0]["device_ip"] += " 10.1.1.1,172.17.0.1 "

    message, hint = one(value, "HCC403", "a2")

    assert "has 3 addresses" in message
    assert hint.startswith('write "192.168.1.100" or "10.1.1.1" or "172.17.0.1": `hccn_tool -i 0 -ip -g`')


@pytest.mark.parametrize("first", [249, 255])
def test_addresses_that_are_counted_on_past_255_are_all_to_be_read(first: int) -> None:
    value = table("1.0", 2, 8)
    for number, device in enumerate(servers(value)[1]["device"]):
        device["device_ip"] = f"192.168.1.{first + number}"

    message, hint = one(value, "HCC403", "a2")

    assert f'"192.168.1.{first}" to "192.168.1.{first + 7}" are counted on' in message
    assert hint.startswith(
        "write the addresses that devices 0-7 on 10.0.0.2 have, all of them: `hccn_tool -i 0"
    )


def test_one_number_above_255_is_not_counted_on() -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["device"][3]["device_ip"] = "192.168.1.256"

    assert one(value, "HCC403", "a2")[0] == '"192.168.1.256" is not an IP address: 256 is above 255'


def test_server_ids_with_digits_too_many_are_not_counted_on() -> None:
    value = table("1.0", 4, 8)
    for number, server in enumerate(servers(value)):
        server["server_id"] = f"10.0.0.101{number}"

    assert "counted" not in one(value, "HCC619", "a2")[0]


def test_beside_a_damaged_server_id_the_hosts_of_both_equal_addresses_are_asked() -> None:
    value = table("1.0", 3, 8)
    servers(value)[0]["server_id"] = None
    second = servers(value)[1]["device"]
    second[2]["device_ip"] = second[1]["device_ip"]

    (found,) = [each for each in report(value) if each.rule.id == "HCC404"]

    assert (found.hint or "").endswith(
        "`hccn_tool -i 2 -ip -g` shows the address of device 2,"
        " and `hccn_tool -i 1 -ip -g` shows the address of device 1"
    )
