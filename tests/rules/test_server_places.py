"""Columns in which servers have the values of other servers: exchanged, or moved by a server."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = ("HCC631", "HCC632", "HCC633", "HCC645")


def said(value: Any) -> list[tuple[str, str, str]]:
    found = validate(value).findings
    return [(one.rule.id, one.message, one.hint or "") for one in found if one.rule.id in RULES]


def cluster(table_format: str = "1.0", servers: int = 4) -> Any:
    """Return a table in which the third number of the addresses is the last one of the server_id."""
    value = table(table_format, servers, 8)
    for number, server in enumerate(value["server_list"]):
        for device in server["device"]:
            own = int(device["device_id"])
            device["device_ip"] = f"192.168.{number + 1}.{8 + own}"
            if table_format == "1.2":
                device["super_device_id"] = str(number << 22 | own // 2 << 18 | own % 2 << 16 | own)
    return value


def put_lists(value: Any, key: str, sources: Sequence[int]) -> Any:
    """Give each server the values of a key of another one."""
    own = [[device[key] for device in server["device"]] for server in value["server_list"]]
    for server, source in zip(value["server_list"], sources, strict=True):
        for device, text in zip(server["device"], own[source], strict=True):
            device[key] = text
    return value


def put_names(value: Any, sources: Sequence[int]) -> Any:
    own = [server["server_id"] for server in value["server_list"]]
    for server, source in zip(value["server_list"], sources, strict=True):
        server["server_id"] = own[source]
    return value


EXCHANGES = [[1, 0], [0, 3, 2, 1], [1, 0, 2, 3], [0, 1, 2, 3, 7, 5, 6, 4]]


@pytest.mark.parametrize("sources", EXCHANGES)
def test_exchanged_lists_of_addresses_are_named_and_the_server_ids_too(sources: list[int]) -> None:
    value = put_lists(cluster(servers=len(sources)), "device_ip", sources)
    first = next(index for index, source in enumerate(sources) if source != index)

    ((rule, message, hint),) = said(value)

    assert rule == "HCC633"
    assert message.startswith(f'the device_ips of server {first + 1} ("10.0.0.{first + 1}") and server ')
    assert message.endswith(
        "probably either the device_ips of these servers are exchanged, or their server_ids"
    )
    assert f'if it is "192.168.{sources[first] + 1}.8", nothing is wrong' in hint
    assert f'if it is "192.168.{first + 1}.8", either exchange the device_ips of the two servers' in hint


@pytest.mark.parametrize("sources", EXCHANGES)
def test_exchanged_server_ids_are_named_and_the_lists_of_addresses_too(sources: list[int]) -> None:
    ((rule, message, hint),) = said(put_names(cluster(servers=len(sources)), sources))

    assert rule == "HCC633"
    assert message.startswith("the server_ids of server ")
    assert "either exchange the device_ips of the two servers" in hint
    assert "write these server_ids in the order" in hint


@pytest.mark.parametrize("sources", EXCHANGES)
def test_super_device_ids_tell_which_column_is_exchanged(sources: list[int]) -> None:
    size = len(sources)

    ((_, by_address, hint),) = said(put_lists(cluster("1.2", size), "device_ip", sources))
    ((_, by_name, _),) = said(put_names(cluster("1.2", size), sources))
    ((rule, by_sdid, ask),) = said(put_lists(cluster("1.2", size), "super_device_id", sources))

    assert "do not follow their server_ids and super_device_ids, which follow each other" in by_address
    assert hint.endswith("exchange the device_ips of the two servers, and leave all other columns")
    assert "follow neither their device_ips nor their super_device_ids" in by_name
    assert rule == "HCC632"
    assert "do not follow their server_ids and device_ips, which follow each other" in by_sdid
    assert ask.startswith("`npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.")
    assert ask.endswith("exchange the super_device_ids of the two servers, and leave all other columns")


@pytest.mark.parametrize(
    ("sources", "way", "back"), [([1, 2, 3, 0], "up", "down"), ([0, 4, 1, 2, 3, 5], "down", "up")]
)
def test_columns_moved_by_a_server_are_not_mistyped_server_ids(
    sources: list[int], way: str, back: str
) -> None:
    size = len(sources)

    ((_, message, hint),) = said(put_lists(cluster(servers=size), "device_ip", sources))
    ((_, by_name, order),) = said(put_names(cluster(servers=size), sources))
    ((_, of_sdids, _),) = said(put_lists(cluster("1.2", size), "super_device_id", sources))

    assert f"are moved {way} by one server, or their server_ids are moved {back} by one server" in message
    assert f"either move the device_ips of these servers {back} by one server" in hint
    assert f"or their server_ids are moved {way} by one server" in by_name
    assert order.endswith(
        ", ".join(f'"10.0.0.{number + 1}"' for number in range(size) if sources[number] != number)
    )
    assert of_sdids.endswith(f"the super_device_ids of these servers are probably moved {way} by one server")


def test_super_pods_number_their_devices_themselves() -> None:
    value = cluster("1.2", 8)
    value["super_pod_list"] = [
        {
            "super_pod_id": str(pod),
            "server_list": [{"server_id": f"10.0.0.{4 * pod + at + 1}"} for at in range(4)],
        }
        for pod in range(2)
    ]
    for server in value["server_list"][4:]:
        for device in server["device"]:
            device["super_device_id"] = str(int(device["super_device_id"]) - (4 << 22))
    assert said(value) == []

    ((rule, message, _),) = said(put_lists(value, "super_device_id", [0, 1, 2, 3, 4, 6, 5, 7]))

    assert rule == "HCC632"
    assert 'of server 6 ("10.0.0.6") and server 7 ("10.0.0.7")' in message


@pytest.mark.parametrize("servers", [2, 3, 4, 6])
@pytest.mark.parametrize("seed", range(8))
def test_addresses_without_an_order_are_sound(servers: int, seed: int) -> None:
    """Numbers that are not alike in two columns show no fault."""
    random = Random(100 * servers + seed)  # noqa: S311  (repeatable)
    value = table("1.2" if seed % 2 else "1.0", servers, 8)
    networks, hosts = random.sample(range(20, 250), servers), random.sample(range(2, 250), servers)
    for network, host, server in zip(networks, hosts, value["server_list"], strict=True):
        server["server_id"] = f"10.19.1.{host}"
        for device in server["device"]:
            number = int(device["device_id"])
            device["device_ip"] = (
                f"172.16.{network}.{30 + number}"
                if seed % 3
                else (f"192.{1 + number % 4}.{random.randrange(1, 250)}.{random.randrange(2, 250)}")
            )
            if seed % 2:
                device["super_device_id"] = str(host << 22 | number // 2 << 18 | number % 2 << 16 | number)
    if seed % 2:
        value["super_pod_list"][0]["server_list"] = [{"server_id": f"10.19.1.{host}"} for host in hosts]

    assert said(value) == []


@pytest.mark.parametrize("name", ["10.0.0.{}", "fd00::{}", "node{}"])
def test_exchanged_names_are_reported_whatever_their_form(name: str) -> None:
    value = cluster()
    for server, number in zip(value["server_list"], (2, 1, 3, 4), strict=True):
        server["server_id"] = name.format(number)

    ((rule, message, _),) = said(value)

    assert rule == "HCC633"
    first, second = (f'server {place} ("{name.format(3 - place)}")' for place in (1, 2))
    assert message.startswith(f"the server_ids of {first} and {second} do not follow their device_ips")


@pytest.mark.parametrize("odd", [0, 5])
def test_exchanged_names_are_reported_beside_a_server_whose_addresses_follow_no_order(odd: int) -> None:
    value = cluster(servers=6)
    second, third = value["server_list"][1:3]
    second["server_id"], third["server_id"] = third["server_id"], second["server_id"]
    for number, device in enumerate(value["server_list"][odd]["device"]):
        device["device_ip"] = f"172.16.{number * number}.{9 + 7 * number}"

    (found,) = said(value)

    assert found[0] == "HCC633"
    assert found[1].startswith(
        'the server_ids of server 2 ("10.0.0.3") and server 3 ("10.0.0.2") do not follow their device_ips'
    )
