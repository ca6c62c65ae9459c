"""Numbers and names that lost a digit and are still valid: what the others show of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table


def super_pod(servers: int) -> Any:
    """Return a table with the super_device_ids of a usual super pod."""
    value = table("1.2", servers, 16)
    for number, server in enumerate(value["server_list"]):
        for device in server["device"]:
            bits = int(device["device_id"])
            device["super_device_id"] = str((number + 1 << 22) | bits // 2 << 17 | bits % 2 << 16 | bits)
    return value


def found(value: Any, product: str = "a3") -> list[tuple[str, str, str]]:
    return [(one.rule.id, one.message, one.hint or "") for one in validate(value, product=product).findings]


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("end", ["first", "last"])
@pytest.mark.parametrize("are_all", [False, True])
def test_super_device_ids_without_a_digit_are_named(servers: int, end: str, *, are_all: bool) -> None:
    value = super_pod(servers)
    assert not found(value)
    last = value["server_list"][-1]["device"][0]["super_device_id"]
    for server in value["server_list"] if are_all else value["server_list"][-1:]:
        for device in server["device"]:
            text = device["super_device_id"]
            device["super_device_id"] = text[:-1] if end == "last" else text[1:]

    ((rule, message, hint),) = found(value)

    which = f"servers 1-{servers}" if are_all and servers > 1 else f"server {servers}"
    assert rule == "HCC632"
    assert f"of {which} probably lack their {end} digit" in message
    assert are_all or f'that of device 0 is probably "{last}"' in message
    assert "npu-smi" in hint


@pytest.mark.parametrize("servers", [2, 3, 8])
def test_a_server_id_without_its_first_digit_is_named(servers: int) -> None:
    value = table("1.0", servers, 8)
    for number, server in enumerate(value["server_list"]):
        server["server_id"] = f"192.0.2.{number + 11}"
    assert not found(value, "910a")
    value["server_list"][1]["server_id"] = "92.0.2.12"

    ((rule, message, hint),) = found(value, "910a")

    assert rule == "HCC633"
    assert '"92.0.2.12"' in message
    assert 'write "192.0.2.12"' in hint
    assert "nothing is wrong" in hint


def test_a_server_id_that_lost_a_digit_inside_the_row_is_named() -> None:
    value = table("1.0", 4, 8)
    for number, server in enumerate(value["server_list"]):
        server["server_id"] = f"node-{number + 11}"
        for device in server["device"]:
            device["device_ip"] = device["device_ip"].replace("192.168.2.", "192.168.77.")
    value["server_list"][2]["server_id"] = "node-3"

    ((rule, _, hint),) = found(value, "910a")

    assert rule == "HCC633"
    assert 'write "node-13"' in hint


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("network", ["192.168.7", "172.16.0"])
def test_public_addresses_that_were_private_are_named(servers: int, network: str) -> None:
    value = table("1.0", servers, 8)
    for number, server in enumerate(value["server_list"]):
        server["server_id"] = f"{network}.{number + 11}"
    assert not found(value, "910a")
    for server in value["server_list"]:
        server["server_id"] = server["server_id"][1:]

    ((rule, message, hint),) = found(value, "910a")

    assert rule == "HCC633"
    assert f'"{network[1:]}.11" is perhaps "{network}.11"' in message
    assert "nothing is wrong" in hint


@pytest.mark.parametrize(
    "names",
    [
        ["10.0.0.1", "10.0.0.12", "10.0.0.13", "10.0.0.14"],
        ["10.0.0.1", "20.0.0.2"],
        ["10.0.0.9", "10.0.0.90"],
        ["72.0.2.1", "72.0.2.2"],
        ["master-0", "worker-0", "worker-1", "worker-2"],
    ],
)
def test_other_names_are_silent(names: list[str]) -> None:
    value = table("1.0", len(names), 8)
    for name, server in zip(names, value["server_list"], strict=True):
        server["server_id"] = name
        for device in server["device"]:
            device["device_ip"] = device["device_ip"].replace("192.168.1.", "192.168.77.")

    assert not [one for one in found(value, "910a") if "digit" in one[1]]


def test_the_work_grows_with_the_devices() -> None:
    def work(servers: int) -> int:
        value = deepcopy(super_pod(servers))
        for server in value["server_list"]:
            for device in server["device"]:
                device["super_device_id"] = device["super_device_id"][:-1]
        return steps(lambda: validate(value, product="a3"))

    assert work(32) < 6 * work(8)
