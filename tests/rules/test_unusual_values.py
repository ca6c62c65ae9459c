"""Values that do not follow the order of nearly all others: exchanged, moved by a row, or mistyped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic

ADVICE = ("HCC631", "HCC632", "HCC633")


def found(value: Any, *rules: str) -> list[Diagnostic]:
    return [one for one in validate(value).findings if one.rule.id in (rules or ADVICE)]


def devices(value: Any) -> list[dict[str, Any]]:
    """Return the entries of all devices in the order of the file."""
    return [device for server in value["server_list"] for device in server["device"]]


def exchange(value: Any, key: str, first: int, second: int) -> None:
    one, other = devices(value)[first], devices(value)[second]
    one[key], other[key] = other[key], one[key]


def as_910a(value: Any) -> Any:
    """Give each server two addresses in each of four networks, as on an Atlas 800 (9000)."""
    for server, entry in enumerate(value["server_list"]):
        for number, device in enumerate(entry["device"]):
            device["device_ip"] = f"192.168.{100 + number % 4}.{101 + 2 * server - number // 4}"
    return value


def scattered(value: Any) -> Any:
    """Give the devices addresses in an order of their own."""
    for number, device in enumerate(devices(value)):
        device["device_ip"] = f"10.{number * 37 % 101}.{number * 53 % 97}.{1 + number * 71 % 211}"
    return value


SOUND: dict[str, Callable[[], Any]] = {
    "one network of each server": lambda: table("1.0", 4, 8),
    "four networks": lambda: as_910a(table("1.0", 4, 8)),
    "no order": lambda: scattered(table("1.0", 4, 8)),
    "one server": lambda: table("1.0", 1, 8),
    "few devices": lambda: table("1.0", 2, 2),
    "super pods": lambda: table("1.2", 4, 8, pods=2),
    "groups": lambda: table("group_list", 4, 8),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_tables_get_no_advice(name: str) -> None:
    assert found(SOUND[name]()) == []


@pytest.mark.parametrize("name", ["one network of each server", "four networks"])
@pytest.mark.parametrize(("first", "second"), [(11, 12), (2, 29), (5, 13)])
def test_two_addresses_that_changed_places_are_one_finding(name: str, first: int, second: int) -> None:
    value = SOUND[name]()
    right = devices(value)[first]["device_ip"]
    exchange(value, "device_ip", first, second)

    (one,) = found(value)

    assert one.rule.id == "HCC631"
    assert "do not follow the order of all others: they are probably exchanged" in one.message
    assert [one.path, *(other.path for other in one.related)] == [
        ("server_list", row // 8, "device", row % 8, "device_ip") for row in (first, second)
    ]
    assert one.hint is not None
    assert one.hint.startswith(f"`hccn_tool -i {first % 8} -ip -g` on 10.0.0.{first // 8 + 1} shows")
    assert one.hint.endswith(f'if it is "{right}", exchange the two')


def test_addresses_of_a_group_list_that_changed_places_are_named() -> None:
    value = table("group_list", 3, 8)
    own = value["group_list"][0]["instance_list"][1]["devices"]
    own[3]["device_ip"], own[4]["device_ip"] = own[4]["device_ip"], own[3]["device_ip"]

    (one,) = found(value)

    assert 'devices 3 and 4 of server 2 ("10.0.0.2")' in one.message
    assert one.pointer == "/group_list/0/instance_list/1/devices/3/device_ip"


def test_several_devices_of_two_servers_that_changed_places_are_one_finding() -> None:
    value = table("1.0", 4, 8)
    for number in (1, 2, 3, 4):
        exchange(value, "device_ip", 8 + number, 24 + number)

    (one,) = found(value)

    assert (
        'devices 1, 2, 3 and 4 of server 2 ("10.0.0.2") and devices 1, 2, 3 and 4 of server 4' in one.message
    )
    assert len(one.related) == 7


@pytest.mark.parametrize(("begin", "end"), [(8, 16), (3, 8), (16, 20)])
def test_addresses_of_one_server_that_moved_by_a_row_are_one_finding(begin: int, end: int) -> None:
    value = table("1.0", 3, 8)
    rows = devices(value)[begin:end]
    right = [one["device_ip"] for one in rows]
    for device, other in zip(rows, [*right[1:], right[0]], strict=True):
        device["device_ip"] = other

    (one,) = found(value)

    assert "they are probably moved by one row" in one.message
    assert one.hint is not None
    assert one.hint.endswith(
        "the values in the order of the file are " + ", ".join(f'"{text}"' for text in right)
    )


@pytest.mark.parametrize(("turn", "direction"), [(1, "up"), (-1, "down")])
def test_addresses_of_several_servers_that_moved_by_a_row_are_one_finding(turn: int, direction: str) -> None:
    value = table("1.0", 4, 8)
    rows = devices(value)[8:]
    right = [one["device_ip"] for one in rows]
    for device, other in zip(rows, right[turn:] + right[:turn], strict=True):
        device["device_ip"] = other

    (one,) = found(value)

    servers = 'server 2 ("10.0.0.2") to server 4 ("10.0.0.4")'
    assert one.message.startswith(f"the device_ips from {servers} are probably moved {direction} by one row")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("192.186.1.102", "is outside the network of all others"),
        ("10.7.7.7", "is outside the network of all others"),
        ("192.168.1.120", "does not follow the order of all others"),
        ("192.168.1.202", "does not follow the order of all others"),
        ("192.168.1.12", "does not follow the order of all others"),
    ],
)
def test_a_mistyped_address_gets_the_one_by_the_order(text: str, words: str) -> None:
    value = table("1.0", 3, 8)
    devices(value)[10]["device_ip"] = text

    (one,) = found(value)

    assert f'device_ip "{text}" of device 2 of server 2 ("10.0.0.2") {words}' in one.message
    assert one.hint is not None
    assert one.hint.endswith('by the order of the others it is "192.168.1.102"')


def test_an_address_outside_the_network_needs_no_order() -> None:
    value = table("1.0", 2, 8)
    for number, device in enumerate(devices(value)):
        device["device_ip"] = f"10.1.{number * 53 % 97}.{1 + number * 71 % 211}"
    devices(value)[3]["device_ip"] = "10.11.3.4"

    (one,) = found(value)

    assert "is outside the network of all others" in one.message
    assert one.hint is not None
    assert "by the order" not in one.hint


def test_an_unlike_address_in_the_network_is_no_finding() -> None:
    """A card that was replaced may have an address of its own."""
    value = table("1.0", 3, 8)
    devices(value)[10]["device_ip"] = "192.168.77.9"

    assert found(value) == []


def test_one_of_few_servers_with_an_order_of_its_own_is_no_finding() -> None:
    value = table("1.0", 3, 8)
    for number, device in enumerate(devices(value)[8:16]):
        device["device_ip"] = f"192.168.{50 + number}.7"

    assert found(value) == []


def test_exchanged_digits_in_all_addresses_of_a_server_are_one_cause() -> None:
    value = table("1.0", 4, 8)
    for device in devices(value)[8:16]:
        device["device_ip"] = device["device_ip"].replace("192.168", "192.186")

    ones = found(value)

    assert len(ones) == 8
    assert len({one.alike for one in ones}) == 1


def test_two_server_ids_that_changed_places_are_one_finding() -> None:
    value = table("1.0", 6, 8)
    servers = value["server_list"]
    servers[1]["server_id"], servers[3]["server_id"] = servers[3]["server_id"], servers[1]["server_id"]

    (one,) = found(value)

    assert one.rule.id == "HCC633"
    assert 'the server_ids of server 2 ("10.0.0.4") and server 4 ("10.0.0.2")' in one.message
    assert one.hint is not None
    assert one.hint.endswith('write these server_ids in the order "10.0.0.2", "10.0.0.4"')


@pytest.mark.parametrize(
    "names", [["a", "b", "c", "d", "e"], ["h5", "h4", "h3", "h2", "h1"], ["h2", "h1", "h3"]]
)
def test_names_without_the_order_of_the_addresses_are_no_finding(names: list[str]) -> None:
    value = table("1.0", len(names), 8)
    for server, name in zip(value["server_list"], names, strict=True):
        server["server_id"] = name

    assert found(value) == []


def test_names_with_numbers_follow_the_addresses_too() -> None:
    value = table("1.0", 5, 8)
    for server, number in zip(value["server_list"], (7, 9, 8, 10, 11), strict=True):
        server["server_id"] = f"node-{number:04}"

    (one,) = found(value)

    assert one.hint is not None
    assert one.hint.endswith('in the order "node-0008", "node-0009"')


def sdids(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    return enumerate(devices(value))


def test_two_super_device_ids_that_changed_places_are_one_finding() -> None:
    value = table("1.2", 3, 16)
    exchange(value, "super_device_id", 16 + 6, 16 + 8)

    (one,) = found(value)

    assert one.rule.id == "HCC632"
    assert 'devices 6 and 8 of server 2 ("10.0.0.2")' in one.message
    assert one.hint == (
        "`npu-smi info -t spod-info -i 3 -c 0` on 10.0.0.2 shows the SDID of device 6: "
        'if it is "65542", exchange the two'
    )


def test_a_stale_super_device_id_is_named_with_the_right_one() -> None:
    value = table("1.2", 3, 8)
    devices(value)[9]["super_device_id"] = "9999"

    (one,) = found(value)

    assert "its low 16 bits are 9999, and on all others they are the device_id" in one.message
    assert one.hint is not None
    assert one.hint.endswith('by the order of the others it is "65537"')


def test_super_device_ids_of_another_scheme_are_no_finding() -> None:
    value = table("1.2", 2, 8)
    for row, device in sdids(value):
        device["super_device_id"] = str(1000 + row * 3)

    assert found(value) == []


def test_the_work_is_linear() -> None:
    def damaged(servers: int) -> Any:
        value = table("1.0", servers, 8)
        for number, server in enumerate(value["server_list"]):
            server["server_id"] = f"10.0.{number // 200}.{number % 200 + 1}"
            own = server["device"]
            own[number % 8]["device_ip"] = f"10.{number // 250}.{number % 250}.9"
        return value

    small, large = damaged(100), damaged(200)
    less = steps(lambda: validate(small))

    assert steps(lambda: validate(large)) < 2.3 * less


@pytest.mark.parametrize(("other", "is_of_device"), [(None, True), ("8", False)])
def test_a_device_id_that_another_server_has_is_not_taken_for_mistyped(
    other: str | None, is_of_device: bool
) -> None:
    value = table("1.0", 4, 8)
    devices(value)[11]["device_id"] = "8"
    if other is not None:
        devices(value)[31].update(device_id=other, device_ip="192.168.3.108")

    found = [one for one in validate(value, product="a3-server").findings if one.rule.id == "HCC631"]

    (message,) = (one.message for one in found if "server 2 " in one.message)
    said = 'device_ip "192.168.1.103" of device 8 of server 2 ("10.0.0.2") '
    assert message.startswith(said + ("is that of device 3" if is_of_device else "does not follow the order"))
