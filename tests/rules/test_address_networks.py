"""Addresses without an order in networks of each device, two of which are exchanged."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.rules.test_moved_rows import column, devices, put
from tests.rules.test_server_places import cluster, said


def in_networks(servers: int, networks: int, *, byte: int = 2, seed: int = 0) -> Any:
    """Return a table whose addresses have the number of their network in one place, and then chance."""
    random = Random(seed)  # noqa: S311  (repeatable)
    value = cluster(servers=servers)
    ends = random.sample(range(2, 250), 8 * servers)
    for device, end in zip(devices(value), ends, strict=True):
        network = 1 + int(device["device_id"]) % networks
        middle = f"{network}.{random.randrange(250)}" if byte == 2 else f"7.{network}"
        device["device_ip"] = f"192.{middle}.{end}"
    return value


def exchanged(value: Any, first: int, second: int) -> list[str]:
    """Exchange two addresses, and return the right ones."""
    right = column(value, "device_ip")
    texts = list(right)
    texts[first], texts[second] = right[second], right[first]
    put(value, "device_ip", texts)
    return right


@pytest.mark.parametrize("byte", [2, 3])
@pytest.mark.parametrize(("servers", "networks"), [(2, 4), (4, 4), (3, 8)])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (2, 5), (8, 9)])
def test_two_addresses_in_each_others_network_are_named(
    servers: int, networks: int, first: int, second: int, byte: int
) -> None:
    value = in_networks(servers, networks, byte=byte)
    assert said(value) == []
    right = exchanged(value, first, second)

    ((rule, message, hint),) = said(value)

    assert rule == "HCC631"
    of_server = f'of server {first // 8 + 1} ("10.0.0.{first // 8 + 1}")'
    assert f"the device_ips of devices {first % 8} and {second % 8} {of_server}" in message
    assert hint.endswith(f'if it is "{right[first]}", exchange the two')


@pytest.mark.parametrize("first", [0, 8])
def test_of_two_servers_with_eight_networks_either_may_be_wrong(first: int) -> None:
    value = in_networks(2, 8)
    right = exchanged(value, first, first + 1)

    ((_, message, hint),) = said(value)

    assert 'either they are exchanged, or those of server 2 ("10.0.0.2")' in message
    assert f'if it is "{column(value, "device_ip")[1]}", exchange the two' in hint
    assert f'if it is "{column(value, "device_ip")[0]}", `hccn_tool -i 0 -ip -g` on 10.0.0.2' in hint
    assert hint.endswith("exchange the two there; else nothing is wrong")
    assert right != column(value, "device_ip")


@pytest.mark.parametrize("servers", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_networks_that_are_shared_or_by_chance_are_sound(servers: int, seed: int) -> None:
    value = in_networks(servers, (1, 2, 4, 5, 8, 3)[seed], seed=seed)
    if seed % 2:
        for device in devices(value)[:3]:
            device["device_ip"] = f"192.{7 + seed}.9.{int(device['device_id']) + 20}"

    assert [one for one in said(value) if "network" in one[1]] == []
