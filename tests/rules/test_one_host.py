"""Servers that are one host, addresses that no other host reaches, and lists that an entry has twice."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, numbered, one, report, servers
from tests.support.tables import table

# One host_ip


def pods(first: str, second: str, begin: int) -> Any:
    """Return two servers of four devices with these host_ips, the second with devices from a number on."""
    value = table("1.0", 2, 4)
    for server, address in zip(servers(value), (first, second), strict=True):
        server["host_ip"] = address
    for place, device in enumerate(servers(value)[1]["device"]):
        device["device_id"] = str(begin + place)
    return value


def test_two_pods_of_one_host_are_one_server() -> None:
    message, hint = one(pods("10.9.0.1", "10.9.0.1", 4), "HCC616", "a2")

    assert message.startswith('servers 1 and 2 have one host_ip, "10.9.0.1", and different devices')
    assert 'in one server with the server_id "10.9.0.1", and write "server_count": "1"' in hint
    value = pods("10.9.0.1", "10.9.0.1", 4)
    own, other = servers(value)
    own.update(server_id="10.9.0.1", device=[*own["device"], *other["device"]])
    assert is_sound({**value, "server_list": [own], "server_count": "1"}, "a2")


def test_a_copied_host_ip_is_not_that_of_another_host() -> None:
    message, hint = one(pods("10.9.0.1", "10.9.0.1", 0), "HCC616", "a2")

    assert message == 'servers 1 and 2 have one host_ip, "10.9.0.1", and list the same devices'
    assert hint.startswith("write in each the address of its own host")


@pytest.mark.parametrize("hosts", [("10.9.0.1", "10.9.0.2"), ("0.0.0.0", "0.0.0.0")])
def test_other_and_unset_host_ips_are_sound(hosts: tuple[str, str]) -> None:
    assert is_sound(pods(*hosts, 4), "a2")


# One server_id in two spellings


def test_a_host_in_two_entries_is_one_server() -> None:
    value = table("1.0", 3, 8)
    parted = deepcopy(servers(value)[1])
    parted["server_id"] += " "
    parted["device"], servers(value)[1]["device"] = parted["device"][4:], parted["device"][:4]
    servers(value).insert(2, parted)

    hint = one(numbered(value), "HCC616", "a2")[1]

    assert hint.startswith('list all devices of the host in one server, "10.0.0.2", remove the other entry')
    assert hint.endswith('write "server_count": "3"')


def test_two_entries_with_the_same_devices_are_not_joined() -> None:
    value = table("1.0", 2, 8)
    servers(value)[0]["server_id"], servers(value)[1]["server_id"] = "fd00::1", "fd00:0::1"

    assert one(value, "HCC616", "a2")[1].startswith("write the address of its own host in one of the two")


# Link-local addresses


@pytest.mark.parametrize("address", ["fe80::{}", "169.254.7.{}"])
def test_link_local_addresses_of_a_server_are_one_finding(address: str) -> None:
    value = table("1.0", 2, 4)
    for number, each in enumerate(servers(value)[0]["device"] + servers(value)[1]["device"]):
        each["device_ip"] = address.replace("fe80", "fd00").replace("169.254", "10.254").format(1 + number)
    for number, device in enumerate(servers(value)[1]["device"]):
        device["device_ip"] = address.format(1 + number)

    found = validate(json.dumps(value).encode(), product="a2")

    assert {each.rule.id for each in found.findings} == {"HCC614"}
    assert len({each.alike for each in found.findings}) == 1
    assert "`hccn_tool -i 0 -ip -g` on 10.0.0.2" in (found.findings[0].hint or "")
    assert found.ok


@pytest.mark.parametrize("address", ["fec0::{}", "fdfe::{}", "169.253.7.{}"])
def test_addresses_beside_the_link_local_ones_are_sound(address: str) -> None:
    value = table("1.0", 1, 4)
    for number, device in enumerate(servers(value)[0]["device"]):
        device["device_ip"] = address.format(1 + number)

    assert is_sound(value, "a2")


# A list that an entry has twice


def twice(second: int) -> bytes:
    """Return a table whose first server has its devices in two lists, the second from a device on."""
    value = table("1.0", 2, 8)
    devices = servers(value)[0]["device"]
    text = json.dumps(value)
    both = f'"device": {json.dumps(devices[:4])}, "device": {json.dumps(devices[second : second + 4])}'
    return text.replace(f'"device": {json.dumps(devices)}', both).encode()


def test_the_second_list_of_an_entry_continues_the_first() -> None:
    hints = [each.hint or "" for each in validate(twice(4), product="a2").errors]

    assert len(hints) == 1
    assert hints[0].startswith(
        'an entry has "device" twice, and HCCL reads only the second list: move the entries of the first'
    )


def test_lists_that_repeat_a_device_are_of_two_entries() -> None:
    hints = [each.hint or "" for each in validate(twice(3), product="a2").errors]

    assert any("two entries are joined" in hint for hint in hints)


# Equal addresses of two hosts


def test_hosts_with_equal_addresses_are_told_apart_before_one_is_removed() -> None:
    value = table("1.0", 2, 8)
    for own, other in zip(servers(value)[1]["device"], servers(value)[0]["device"], strict=True):
        own["device_ip"] = other["device_ip"]

    (found,) = report(value, "a2")

    told, _, removed = (found.hint or "").partition("; if it is equal, ")
    assert "compare what `cat /proc/sys/kernel/random/boot_id` prints on both" in told
    assert "two hosts have the same addresses set" in told
    assert "remove" not in told
    assert removed.startswith('"10.0.0.2" and "10.0.0.1" are one host')
