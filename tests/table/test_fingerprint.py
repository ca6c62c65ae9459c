"""A fingerprint follows the meaning of a table, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.table.fingerprint import LENGTH, fingerprint
from tests.support.clusters import tables
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.table.model import RankTable

FORMATS = ("1.0", "1.2", "2.0", "group_list")


def of(value: dict[str, Any]) -> str:
    return fingerprint(formats.read(value))


@pytest.mark.parametrize("table_format", FORMATS)
def test_it_is_short_and_always_the_same(table_format: str) -> None:
    found = of(table(table_format, 2, 8))

    assert len(found) == LENGTH
    assert set(found) <= set("0123456789abcdef")
    assert found == of(table(table_format, 2, 8))


def test_it_stays_from_release_to_release() -> None:
    assert of(table("1.0", 2, 8)) == "599ee83419dc"


@given(tables(), st.randoms(use_true_random=False))
def test_layout_and_order_of_keys_do_not_count(drawn: RankTable, random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    value = json.loads("".join(formats.write(drawn)))

    assert of(shuffled(value)) == fingerprint(drawn)


def device(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = value["server_list"][0]["device"][0]
    return found


SAME: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown key": lambda value: value.update(IsMindIEEPJob=True),
    "a server's unknown key": lambda value: value["server_list"][0].update(hardware_type="800I"),
    "no host_nic_ip": lambda value: value["server_list"][0].pop("host_nic_ip"),
    "a device's unknown key": lambda value: device(value).update(note="x"),
    "leading zeros": lambda value: device(value).update(rank_id="00"),
    "no server_count": lambda value: value.pop("server_count"),
    "devices in another order": lambda value: value["server_list"][0]["device"].reverse(),
}
OTHER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another address": lambda value: device(value).update(device_ip="192.168.0.200"),
    "no address": lambda value: device(value).pop("device_ip"),
    "another device": lambda value: device(value).update(device_id="9"),
    "another rank": lambda value: device(value).update(rank_id="99"),
    "a port": lambda value: device(value).update(device_port="16667"),
    "another server": lambda value: value["server_list"][0].update(server_id="10.0.0.9"),
    "a host_ip": lambda value: value["server_list"][0].update(host_ip="10.0.0.9"),
    "servers in another order": lambda value: value["server_list"].reverse(),
}


@pytest.mark.parametrize("change", SAME)
def test_the_same_meaning(change: str) -> None:
    value = table("1.0", 2, 8)
    SAME[change](value)

    assert of(value) == of(table("1.0", 2, 8))


@pytest.mark.parametrize("change", OTHER)
def test_another_meaning(change: str) -> None:
    value = table("1.0", 2, 8)
    OTHER[change](value)

    assert of(value) != of(table("1.0", 2, 8))


def test_spellings_of_one_address() -> None:
    one, other = table("1.0", 1, 1), table("1.0", 1, 1)
    device(one)["device_ip"], device(other)["device_ip"] = "fd00::1,fd00::2", "fd00:0::1,FD00::2"

    assert of(one) == of(other)


def test_super_pods_count() -> None:
    assert of(table("1.2", 2, 8, pods=1)) != of(table("1.2", 2, 8, pods=2))


def test_numbers_and_levels_of_2_0() -> None:
    one, other = table("2.0", 1, 2), table("2.0", 1, 2)
    other["rank_list"][0]["rank_id"] = 0.0
    assert of(one) == of(other)

    other["rank_list"][0]["level_list"][0]["rank_addr_list"][0]["ports"] = ["0/5"]
    assert of(one) != of(other)


def test_the_order_of_instances_does_not_count() -> None:
    value = table("group_list", 2, 8)
    value["group_list"][0]["instance_list"].reverse()

    assert of(value) == of(table("group_list", 2, 8))


def test_tables_that_hccl_would_refuse_have_one_too() -> None:
    value = table("1.0", 1, 2)
    device(value)["rank_id"] = "x"

    assert of(value) != of(table("1.0", 1, 2))
