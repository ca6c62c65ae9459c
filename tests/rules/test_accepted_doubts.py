"""Advice on tables that HCCL accepts, and that differ from what their other entries show."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table


def found(value: Any, product: str) -> list[tuple[str, str, str]]:
    report = validate(value, product=product)
    assert report.verdict == "accepted"
    return [(each.rule.id, each.message, each.hint or "") for each in report.findings]


# Version 1.2 without super pods


def test_version_1_2_without_anything_of_super_pods_is_reported() -> None:
    value = table("1.0", 2, 8)

    ((rule, message, hint),) = found({**value, "version": "1.2"}, "a3")

    assert rule == "HCC638"
    assert message.startswith("version is 1.2, and the table has no super_pod_list and no super_device_id")
    assert hint.endswith('else write "version": "1.0"')
    assert found({**table("1.0", 1, 8), "version": "1.2"}, "a3") == []


# Nodes without a common network


def joined(nodes: int, instance: str, of_last: str) -> Any:
    value = table("2.0", nodes, 2)
    for index, rank in enumerate(value["rank_list"]):
        name = of_last if index >= 2 * nodes - 2 else instance
        level = {
            **deepcopy(rank["level_list"][0]),
            "net_layer": 1,
            "net_instance_id": name,
            "net_type": "CLOS",
        }
        rank["level_list"] = [rank["level_list"][0], {**level, "rank_addr_list": []}]
    return value


@pytest.mark.parametrize("nodes", [2, 3])
def test_nodes_without_a_common_network_instance_are_reported(nodes: int) -> None:
    last = 2 * nodes - 2

    (first, *_) = found(joined(nodes, "0", "1"), "a5")

    who = f"ranks {last}-{last + 1} and ranks 0-{last - 1}"
    assert first[0] == "HCC635"
    assert first[1] == f"{who} have no common network instance in any layer: they cannot communicate"
    assert 'such as "0"' in first[2]
    assert found(joined(nodes, "0", "0"), "a5") == []


def test_a_node_without_the_second_layer_is_reported() -> None:
    value = joined(2, "0", "0")
    for rank in value["rank_list"][2:]:
        del rank["level_list"][1]

    ((rule, _, hint),) = found(value, "a5")

    assert rule == "HCC635"
    assert hint.startswith("add the layer that connects the nodes to ranks 2-3")


# Server ids and addresses outside the order


def numbered(count: int) -> Any:
    value = table("1.0", count, 8)
    for index, server in enumerate(value["server_list"], 1):
        for number, device in enumerate(server["device"], 8):
            device["device_ip"] = f"192.168.{index}.{number}"
    return value


@pytest.mark.parametrize("index", [0, 3, 7])
def test_a_server_id_outside_the_network_of_the_others_is_reported(index: int) -> None:
    value = numbered(8)
    value["server_list"][index]["server_id"] = "172.20.30.4"

    ((rule, message, hint),) = found(value, "a2")

    assert rule == "HCC633"
    assert f'server_id "172.20.30.4" of server {index + 1} is outside the network of all others' in message
    assert hint.endswith(f'write "10.0.0.{index + 1}"')
    assert found(numbered(8), "a2") == []


@pytest.mark.parametrize(("count", "index"), [(4, 1), (4, 3), (6, 2), (16, 9), (3, 1)])
def test_addresses_that_continue_those_of_the_server_before_are_reported(count: int, index: int) -> None:
    value = numbered(count)
    for number, device in enumerate(value["server_list"][index]["device"], 16):
        device["device_ip"] = f"192.168.{index}.{number}"

    ((rule, message, hint),) = found(value, "a2")

    assert rule == "HCC631"
    assert f'they continue those of server {index} ("10.0.0.{index}")' in message
    assert f'write "192.168.{index + 1}.8" to "192.168.{index + 1}.15" in this server' in hint


def test_addresses_of_all_servers_that_continue_are_sound() -> None:
    value = numbered(4)
    devices = [device for server in value["server_list"] for device in server["device"]]
    for number, device in enumerate(devices, 8):
        device["device_ip"] = f"192.168.1.{number}"

    assert found(value, "a2") == []


# Super pods of different sizes


def in_pods(*sizes: int) -> Any:
    value = table("1.2", sum(sizes), 8)
    names = iter(server["server_id"] for server in value["server_list"])
    value["super_pod_list"] = [
        {"super_pod_id": str(pod), "server_list": [{"server_id": next(names)} for _ in range(size)]}
        for pod, size in enumerate(sizes)
    ]
    return value


def test_super_pods_of_different_sizes_are_reported() -> None:
    ((rule, message, hint),) = found(in_pods(3, 5), "a3")

    assert rule == "HCC650"
    assert message == 'the super pods have different numbers of servers: "0" has 3 servers, "1" has 5 servers'
    assert "`npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.4" in hint


@pytest.mark.parametrize("sizes", [(4, 4), (2, 1), (3, 4), (2, 2, 2)])
def test_super_pods_that_cannot_be_more_even_are_sound(sizes: tuple[int, ...]) -> None:
    assert found(in_pods(*sizes), "a3") == []


# Devices that are counted from 1


def from_one(count: int, size: int, *, ranks: bool) -> Any:
    value = table("1.0", count, size)
    for server in value["server_list"]:
        for device in server["device"]:
            device["device_id"] = str(int(device["device_id"]) + 1)
            device["rank_id"] = str(int(device["rank_id"]) + ranks)
    return value


@pytest.mark.parametrize(("size", "ranks"), [(8, False), (8, True), (4, True)])
def test_devices_counted_from_one_are_reported_on_a_product_with_more_devices(size: int, ranks: bool) -> None:
    findings = validate(from_one(2, size, ranks=ranks), product="a2").findings

    (one,) = [each for each in findings if each.rule.id == "HCC649"]
    assert one.message == f"the device_ids go from 1 to {size} on each server: HCCL counts devices from 0"


def test_a_part_of_a_machine_may_begin_with_device_1() -> None:
    assert found(from_one(2, 4, ranks=False), "a2") == []
