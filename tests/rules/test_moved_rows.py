"""Columns of several servers that are exchanged in part or moved by a row, in tables of two servers, too."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_server_places import cluster, said
from tests.support.growth import steps


def devices(value: Any) -> list[dict[str, Any]]:
    return [device for server in value["server_list"] for device in server["device"]]


def column(value: Any, key: str) -> list[str]:
    return [device[key] for device in devices(value)]


def put(value: Any, key: str, texts: list[str]) -> Any:
    for device, text in zip(devices(value), texts, strict=True):
        device[key] = text
    return value


def of_one_network(servers: int) -> Any:
    """Return a table in which the addresses of each server continue those of the one before."""
    return put(cluster(servers=servers), "device_ip", [f"172.16.3.{10 + row}" for row in range(8 * servers)])


def of_four_networks(servers: int) -> Any:
    """Return a table with two addresses of each server in each of four networks, as on a 910A."""
    value = cluster(servers=servers)
    for place, server in enumerate(value["server_list"]):
        for number, device in enumerate(server["device"]):
            device["device_ip"] = f"192.168.{100 + number % 4}.{101 + 2 * place - number // 4}"
    return value


def of_networks_without_order(servers: int) -> Any:
    value = cluster(servers=servers)
    for server, network, host in zip(value["server_list"], (9, 40, 3, 88), (30, 20, 77, 31), strict=False):
        server["server_id"] = f"10.19.1.{host}"
        for number, device in enumerate(server["device"]):
            device["device_ip"] = f"172.16.{network}.{30 + number}"
    return value


MAKES = [
    lambda servers: cluster(servers=servers), of_one_network, of_four_networks, of_networks_without_order,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize(("first", "second"), [(3, 11), (0, 8), (2, 13), (7, 15)])
def test_an_exchange_between_two_servers_needs_no_majority(
    make: Any, servers: int, first: int, second: int
) -> None:
    value = make(servers)
    assert said(value) == []
    right = column(value, "device_ip")
    texts = list(right)
    texts[first], texts[second] = right[second], right[first]

    ((rule, message, hint),) = said(put(value, "device_ip", texts))

    assert rule == "HCC631"
    assert f"the device_ips of device {first} of server 1" in message
    assert f"and device {second - 8} of server 2" in message
    assert message.endswith("they are probably exchanged")
    assert hint.endswith(f'if it is "{right[first]}", exchange the two')


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("begin", [0, 3, 7])
@pytest.mark.parametrize("step", [1, -1])
def test_a_column_moved_by_a_row_is_named_from_its_first_row_on(
    make: Any, servers: int, begin: int, step: int
) -> None:
    value = make(servers)
    right = column(value, "device_ip")
    rest = right[begin:]

    ((rule, message, hint),) = said(put(value, "device_ip", [*right[:begin], *rest[step:], *rest[:step]]))

    assert rule == "HCC631"
    assert message.startswith(
        f"the device_ips from device {begin} of server 1" if begin else "the device_ips from server 1"
    )
    assert f"are probably moved {'up' if step > 0 else 'down'} by one row" in message
    lost = right[begin] if step > 0 else right[-1]
    assert f'if it is "{lost}", move these addresses {"down" if step > 0 else "up"} by one row' in hint


@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_a_column_of_super_device_ids_moved_by_a_row_keeps_its_servers(servers: int, step: int) -> None:
    value = cluster("1.2", servers)
    right = column(value, "super_device_id")

    ((rule, message, hint),) = said(put(value, "super_device_id", right[step:] + right[:step]))

    assert rule == "HCC632"
    assert f"are probably moved {'up' if step > 0 else 'down'} by one row" in message
    assert f'if it is "{right[0] if step > 0 else right[-1]}", move these SDIDs' in hint


@pytest.mark.parametrize("make", MAKES)
def test_half_of_the_devices_of_two_servers_may_be_either_half(make: Any) -> None:
    value = make(2)
    right = column(value, "device_ip")

    ((rule, message, hint),) = said(
        put(value, "device_ip", [*right[8:12], *right[4:8], *right[:4], *right[12:]])
    )

    assert rule == "HCC631"
    assert "either the device_ips of devices 4, 5, 6 and 7, or those of devices 0, 1, 2 and 3" in message
    assert "exchange the others" in hint


@pytest.mark.parametrize("place", [0, 4])
def test_the_server_ids_tell_which_half_it_is(place: int) -> None:
    value = cluster(servers=4)
    right = column(value, "device_ip")
    texts = list(right)
    for number in range(place, place + 4):
        texts[number], texts[8 + number] = right[8 + number], right[number]

    ((_, message, hint),) = said(put(value, "device_ip", texts))

    listed = ", ".join(map(str, range(place, place + 3))) + f" and {place + 3}"
    assert message.startswith(f"the device_ips of devices {listed} of server 1")
    assert f'if it is "{right[place]}", the values in the order of the file are' in hint


def test_exchanges_between_two_pairs_of_servers_are_two_findings() -> None:
    value = cluster(servers=4)
    texts = list(right := column(value, "device_ip"))
    for one, other in ((2, 18), (11, 27)):
        texts[one], texts[other] = right[other], right[one]

    found = said(put(value, "device_ip", texts))

    assert [message.partition(" do not follow")[0] for _, message, _ in found] == [
        f'the device_ips of device {device} of server {one} ("10.0.0.{one}")'
        f' and device {device} of server {other} ("10.0.0.{other}")'
        for device, one, other in ((2, 1, 3), (3, 2, 4))
    ]


def test_several_devices_exchanged_between_two_servers_are_one_finding() -> None:
    value = cluster(servers=2)
    right = column(value, "device_ip")
    texts = list(right)
    for number in (1, 2, 5):
        texts[number], texts[8 + number] = right[8 + number], right[number]

    ((_, message, _),) = said(put(value, "device_ip", texts))

    assert message.endswith("they are probably exchanged between the two servers")


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_columns_moved_by_a_row_in_each_server_may_be_either_column(
    make: Any, servers: int, step: int
) -> None:
    value = make(servers)
    right = column(value, "device_ip")
    moved = [
        text
        for first in range(0, len(right), 8)
        for own in [right[first : first + 8]]
        for text in (*own[step:], *own[:step])
    ]

    ((_, message, hint),) = said(put(value, "device_ip", moved))
    ids = column(value, "device_id")
    put(value, "device_ip", right)
    ((_, of_ids, order),) = said(put(value, "device_id", ids[step:] + ids[:step]))

    assert message.endswith("probably either the device_ips are moved by one row, or the device_ids")
    assert f'if it is "{moved[0]}", nothing is wrong; if it is "{right[0]}", move the device_ips' in hint
    assert of_ids.endswith("probably either the device_ids are moved by one row, or the device_ips")
    assert order.endswith("write the device_ids 0-7 from the first entry of each server to the last")


@pytest.mark.parametrize("seed", range(12))
def test_addresses_in_networks_of_their_own_are_sound(seed: int) -> None:
    random = Random(seed)  # noqa: S311  (repeatable)
    value = cluster(servers=2 + seed % 4)
    for device in devices(value):
        number = int(device["device_id"])
        device["device_ip"] = (
            f"192.{1 + number % 4 if seed % 2 else random.randrange(1, 250)}."
            f"{random.randrange(1, 250)}.{random.randrange(2, 250)}"
        )

    assert said(value) == []


def test_the_work_is_linear() -> None:
    def moved(servers: int) -> Any:
        value = cluster(servers=servers)
        for number, server in enumerate(value["server_list"]):
            server["server_id"] = f"10.0.{number // 200}.{number % 200 + 1}"
            for place, device in enumerate(server["device"]):
                device["device_ip"] = f"10.{number // 250}.{number % 250}.{8 + place}"
        right = column(value, "device_ip")
        return put(value, "device_ip", right[1:] + right[:1])

    small, large = moved(100), moved(200)
    less = steps(lambda: validate(small))

    assert steps(lambda: validate(large)) < 2.3 * less


# A value that was deleted or inserted


@pytest.mark.parametrize("make", MAKES[:3])
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("begin", [0, 3, 6, 12])
@pytest.mark.parametrize("other", ["10.7.7.7", "192.168.77.9"])
def test_a_deleted_or_inserted_address_moves_all_below_it(
    make: Any, servers: int, begin: int, other: str
) -> None:
    right = column(make(servers), "device_ip")
    if make is of_one_network and not begin:
        return  # The address before all may be the lost one, or that after them.

    for moved, way, lost, end in (
        ([*right[:begin], *right[begin + 1 :], other], "up", right[begin], "last"),
        ([*right[:begin], other, *right[begin:-1]], "down", right[-1], "first"),
    ):
        ((rule, message, hint),) = said(put(make(servers), "device_ip", moved))

        assert rule == "HCC631"
        assert f"are probably moved {way} by one row" in message
        assert (
            f'"{lost}", which belongs to the {"first" if way == "up" else "last"} of these rows, is missing'
            in message
        )
        assert f'if it is "{lost}", move these addresses' in hint
        assert hint.endswith(f'leave out "{other}" of the {end} one')


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("row", [0, 3, 7, 8, 15])
def test_one_other_address_moves_no_rows(make: Any, row: int) -> None:
    texts = column(make(2), "device_ip")
    texts[row] = "172.16.200.9"

    assert not any("moved" in message for _, message, _ in said(put(make(2), "device_ip", texts)))
