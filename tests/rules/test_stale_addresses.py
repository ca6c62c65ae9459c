"""Addresses of a machine that was replaced: they follow another pattern than those of all others."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.test_moved_rows import of_four_networks, of_networks_without_order, of_one_network
from tests.rules.test_server_places import cluster, said
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAKES = [lambda servers: cluster(servers=servers), of_one_network, of_four_networks]


def stale(
    value: Any, server: int, text: Callable[[int], str], numbers: Iterable[int] = range(8)
) -> list[str]:
    """Give devices of a server other addresses, and return all that it had before."""
    own = value["server_list"][server]["device"]
    right = [device["device_ip"] for device in own]
    for number in numbers:
        own[number]["device_ip"] = text(number)
    return right


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("servers", [4, 8])
@pytest.mark.parametrize("server", [0, 1, 3])
@pytest.mark.parametrize(
    "text",
    [
        lambda number: f"10.77.5.{40 + number}",
        lambda number: f"192.168.200.{8 + number}",
        lambda number: f"172.30.{7 * number + 3}.{211 - 9 * number}",
    ],
)
def test_old_addresses_of_one_server_are_named_with_those_by_the_order(
    make: Any, servers: int, server: int, text: Callable[[int], str]
) -> None:
    value = make(servers)
    right = stale(value, server, text)

    ((rule, message, hint),) = said(value)

    assert rule == "HCC633"
    others = f"do not follow the order of those of the {servers - 1} other servers"
    assert message.startswith(
        f'the device_ips of server {server + 1} ("10.0.0.{server + 1}") {others}: perhaps'
    )
    assert f'if it is "{text(0)}", nothing is wrong' in hint
    assert hint.endswith(f'by the order of the others "{right[0]}" to "{right[-1]}"')


@pytest.mark.parametrize("numbers", [(2, 3, 4), (0, 1, 2, 3, 4, 5), (4, 5, 6, 7)])
@pytest.mark.parametrize("server", [0, 2])
def test_some_old_addresses_of_a_server_are_named_and_not_the_order_of_text(
    numbers: tuple[int, ...], server: int
) -> None:
    value = cluster(servers=4)
    right = stale(value, server, lambda number: f"192.168.0.{8 + number}", numbers)

    ((rule, message, hint),) = said(value)

    assert rule == "HCC631"
    assert f"of server {server + 1}" in message
    assert message.endswith("perhaps they are old, those of a machine that was replaced or set up again")
    assert hint.endswith(", ".join(f'"{right[number]}"' for number in numbers))


@pytest.mark.parametrize("make", [*MAKES, of_networks_without_order])
def test_some_old_addresses_of_one_of_two_servers_may_be_the_others(make: Any) -> None:
    value = make(2)
    stale(value, 1, lambda number: f"10.77.{number}.40", (5, 6, 7))

    ((rule, message, hint),) = said(value)

    assert rule == "HCC631"
    assert message.startswith("the device_ips of devices 5, 6 and 7 of server 2")
    assert "perhaps either they or the others of this server are old" in message
    assert hint.startswith("write for each device of this server the address that its host shows")


def test_old_addresses_in_the_order_of_text_are_not_a_sorted_column() -> None:
    value = cluster(servers=2)
    for place, server in enumerate(value["server_list"]):
        for number, device in enumerate(server["device"]):
            device["device_ip"] = f"192.168.{10 + place}.{10 + number}"
    stale(value, 0, lambda number: f"192.168.2.{10 + number}", (4, 5, 6, 7))

    assert [rule for rule, _, _ in said(value)] == ["HCC631"]


def test_all_servers_in_the_order_of_text_are_counted() -> None:
    value = cluster(servers=4)
    for server in value["server_list"]:
        texts = sorted(device["device_ip"] for device in server["device"])
        for device, text in zip(server["device"], texts, strict=True):
            device["device_ip"] = text

    ((rule, message, _),) = said(value)

    assert rule == "HCC645"
    assert message.startswith('the device_ips of server 1 ("10.0.0.1") and 3 other servers are in the order')


def test_old_addresses_in_a_group_list_are_named() -> None:
    value = table("group_list", 4, 8)
    for number, device in enumerate(value["group_list"][0]["instance_list"][2]["devices"]):
        device["device_ip"] = f"10.77.5.{40 + number}"

    assert [rule for rule, _, _ in said(value)] == ["HCC631"]


def added_later(value: Any) -> Any:
    """Give the last server another server_id and network: it was added to the cluster."""
    value["server_list"][3]["server_id"] = "10.0.7.40"
    stale(value, 3, lambda number: f"10.77.5.{40 + number}")
    return value


def of_two_halves(value: Any) -> Any:
    for server in (2, 3):
        stale(value, server, lambda number, server=server: f"10.77.{server}.{40 + number}")  # type: ignore[misc]
    return value


def of_one_other_card(value: Any) -> Any:
    stale(value, 1, lambda number: f"192.168.77.{9 + number}", [2])
    return value


@pytest.mark.parametrize("change", [added_later, of_two_halves, of_one_other_card])
def test_other_addresses_are_sound(change: Callable[[Any], Any]) -> None:
    assert said(change(cluster(servers=4))) == []


@pytest.mark.parametrize("seed", range(16))
def test_networks_without_an_order_are_sound(seed: int) -> None:
    random = Random(seed)  # noqa: S311  (repeatable)
    servers = 3 + seed % 5
    value = cluster(servers=servers)
    for server, network in zip(value["server_list"], random.sample(range(250), servers), strict=True):
        for number, device in enumerate(server["device"]):
            device["device_ip"] = f"10.{seed % 3 + number % (1 + seed % 4)}.{network}.{20 + number}"

    assert said(value) == []
