"""Addresses that lost dots or digits, or that a pattern with a dot changed: the cause, and the right ones."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.test_remedies import is_sound, one, report, servers
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable


def _table(count: int, network: str = "192.168", start: int = 8) -> Any:
    value = table("1.0", count, 8)
    for index, server in enumerate(servers(value), 1):
        for place, device in enumerate(server["device"]):
            device["device_ip"] = f"{network}.{index}.{start + place}"
    return value


def _of_four_networks(count: int) -> Any:
    value = table("1.0", count, 8)
    for index, server in enumerate(servers(value), 1):
        for place, device in enumerate(server["device"]):
            device["device_ip"] = f"10.{20 + place % 4}.{index}.{100 + place // 4}"
    return value


def _changed(value: Any, change: Callable[[str], str], first: int = 0, last: int = 99) -> Any:
    assert is_sound(value, "a2")
    for server in servers(value)[first:last]:
        for device in server["device"]:
            device["device_ip"] = change(device["device_ip"])
    return value


def _without_dot(place: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        parts = text.split(".")
        return ".".join([*parts[: place - 1], "".join(parts[place - 1 : place + 1]), *parts[place + 1 :]])

    return change


def _cut(text: str) -> str:
    return text[:-1]


def _without_dots(text: str) -> str:
    return text.replace(".", "")


@pytest.mark.parametrize(
    ("value", "change", "said", "right"),
    [
        (_table(4), _without_dot(1), "device_ips are not IP addresses: a dot is missing", "192.168.1.8"),
        (_table(4), _without_dot(2), "device_ips are not IP addresses: a dot is missing", "192.168.1.8"),
        (_table(4), _without_dot(3), "device_ips are not IP addresses: a dot is missing", "192.168.1.8"),
        (_table(1), _without_dot(3), "device_ips are not IP addresses: a dot is missing", "192.168.1.8"),
        (_table(1, start=100), _without_dot(3), "not IP addresses: a dot is missing", "192.168.1.100"),
        (_table(4, "10.0"), _without_dots, "IP addresses: the dots are missing in each", "10.0.1.8"),
        (_table(9), _without_dot(3), "device_ips of servers 5-9 are not IP addresses", "192.168.5.8"),
        (_of_four_networks(4), _without_dot(3), "device_ips of server 4 are not", "10.20.4.100"),
        (_table(4), _cut, "device_ips have lost their last digit", "192.168.1.8"),
        (_table(4), _cut, "device_ips of servers 3-4 have lost their last digit", "192.168.3.8"),
    ],
)
def test_what_is_missing_in_each_address_is_named_with_the_right_one(
    value: Any, change: Callable[[str], str], said: str, right: str
) -> None:
    first = int(right.split(".")[2]) - 1

    message, hint = one(_changed(value, change, first), "HCC403", "a2")

    assert said in message
    assert hint.endswith(
        f': if it is "{right}", write that in place of "{change(right)}", and the others in the same way'
    )


def test_a_single_address_without_a_dot_is_that_between_the_others() -> None:
    value = _table(4)
    servers(value)[1]["device"][3]["device_ip"] = "192.1682.11"

    message, hint = one(value, "HCC403", "a2")

    assert message == '"192.1682.11" is not an IP address: a dot is missing'
    assert hint.endswith('shows the address of device 3: if it is "192.168.2.11", write that')


def test_digits_of_several_addresses_are_not_guessed() -> None:
    value = _changed(_table(1, "2.2", 111), _without_dot(3))

    assert "write that" not in one(value, "HCC403", "a2")[1]


@pytest.mark.parametrize(("new", "wrong"), [("10.20.1.", "10.20.1..8"), ("10.20.1", "10.20.1.8")])
def test_a_dot_of_a_pattern_that_stood_for_a_digit_is_the_cause(new: str, wrong: str) -> None:
    value = _changed(_table(40), lambda text: re.sub(r"192.168.1.", new, text))

    message, hint = one(value, "HCC403", "a2")

    assert message.startswith(f'80 device_ips of servers 10-19 have "{new}" where by the order of the others')
    assert "because a dot in a pattern stands for any character" in message
    assert hint.startswith(f'write "192.168.10.8" in place of "{wrong}"')


def test_an_address_that_cannot_be_read_gets_that_by_the_order_of_the_others() -> None:
    value = _changed(_table(8), lambda text: text.replace("168", "1688"), 4, 6)

    message, hint = one(value, "HCC403", "a2")

    assert message == "device_ips are not IP addresses: 1688 is above 255"
    assert hint.endswith('by the order of the others the first is probably "192.168.5.8"')


def _renamed(change: Callable[[str], str], first: int = 0) -> Any:
    value = _table(16)
    for server in servers(value)[first:]:
        server["server_id"] = change(server["server_id"])
    return value


@pytest.mark.parametrize(
    ("change", "first", "wrong", "right"),
    [
        (_without_dot(3), 0, "10.0.01", "10.0.0.1"),
        (_without_dot(2), 0, "10.00.1", "10.0.0.1"),
        (_without_dots, 0, "10001", "10.0.0.1"),
        (_without_dot(3), 12, "10.0.013", "10.0.0.13"),
    ],
)
def test_server_ids_without_dots_get_them_back(
    change: Callable[[str], str], first: int, wrong: str, right: str
) -> None:
    message, hint = one(_renamed(change, first), "HCC619", "a2")

    assert message.startswith("server_ids are not IP addresses: ")
    assert f'if "{right}" is the address of the host' in hint
    assert f'write that in place of "{wrong}", and the others in the same way' in hint


def test_numbers_are_names_of_hosts_where_nothing_says_otherwise() -> None:
    value = _table(8)
    for number, server in enumerate(servers(value)):
        server["server_id"] = str(10001 + number)

    assert report(value, "a2") == []


@pytest.mark.parametrize("value", [_table(3), _of_four_networks(2)])
@pytest.mark.parametrize("is_up", [True, False])
def test_a_column_that_was_moved_by_a_row_is_moved_back(value: Any, is_up: bool) -> None:
    value = deepcopy(value)
    devices = [device for server in servers(value) for device in server["device"]]
    ips = [device["device_ip"] for device in devices]
    for device, text in zip(devices, [*ips[1:], ""] if is_up else ["", *ips[:-1]], strict=True):
        device["device_ip"] = text

    message, hint = one(value, "HCC401", "a2")

    assert f"the column was moved {'up' if is_up else 'down'} by one row" in message
    lacking = '0 of server 1 ("10.0.0.1")' if is_up else f'7 of server {len(servers(value))} ("10.0.0.'
    assert f"then device {lacking}" in hint


def test_several_eids_that_were_cut_and_addresses_with_a_star_are_one_block() -> None:
    value = _changed(_table(4), lambda text: text.rpartition(".")[0] + ".*", 2)

    assert one(value, "HCC403", "a2")[0] == 'device_ips are not IP addresses: "*" is not a digit'

    value = table("2.0", 1, 4)
    for rank in value["rank_list"]:
        for level in rank["level_list"]:
            for address in level["rank_addr_list"]:
                address.update(addr_type="EID", addr=f"{int(rank['rank_id']) + 7:031x}")
    said = {each.alike for each in report(value, "a5") if each.rule.id == "HCC456"}
    assert [text for text, _ in filter(None, said)] == [
        "addrs are not EID addresses: they have 31 digits, 1 too few: an EID has 32"
    ]


def test_damaged_server_ids_are_not_copied_to_super_pods() -> None:
    value = table("1.2", 4, 8, 2)
    for server in servers(value):
        server["server_id"] = server["server_id"].replace(".", "..", 1)

    hints = {each.hint for each in report(value, "a3") if each.rule.id == "HCC524" and each.alike} | {
        each.alike[1] for each in report(value, "a3") if each.rule.id == "HCC524" and each.alike
    }

    assert not any("write the server_ids of these servers as in server_list" in (one or "") for one in hints)
    assert any('in server_list as here, such as "10.0.0.1"' in (one or "") for one in hints)


@pytest.mark.parametrize("pods", [0, 2])
def test_server_ids_without_their_last_digit_are_one_cause(pods: int) -> None:
    value = table("1.2", 16, 8, pods) if pods else _table(16)
    for server in servers(value)[9:]:
        server["server_id"] = server["server_id"][:-1]

    message, hint = one(value, "HCC503", "a3" if pods else "a2")

    assert message.startswith("7 server_ids have probably lost their last digit")
    assert 'they are "10.0.0.10" to "10.0.0.16"' in message
    assert hint.startswith('write "10.0.0.10" in place of "10.0.0.1"')
    assert 'change these places alone: elsewhere "10.0.0.1" is right' in hint
