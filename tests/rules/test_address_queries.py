"""The command that shows an address asks for IPv6 where the table has IPv6 addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

_QUERY = re.compile(r"hccn_tool -i \w+ -ip [^`]*-g")


def devices_of(value: Any) -> list[dict[str, Any]]:
    if "server_list" in value:
        return [device for server in value["server_list"] for device in server["device"]]
    groups = value["group_list"]
    return [device for group in groups for one in group["instance_list"] for device in one["devices"]]


def in_ipv6(value: Any) -> Any:
    for number, device in enumerate(devices_of(value)):
        device["device_ip"] = f"fd00::{number + 1:x}"
    return value


def lose_device(value: Any) -> None:
    del value["server_list"][1]["device"][3]


def repeat_address(value: Any) -> None:
    one, other = devices_of(value)[3:5]
    other["device_ip"] = one["device_ip"]


def lose_address(value: Any) -> None:
    del devices_of(value)[3]["device_ip"]


def break_address(value: Any) -> None:
    devices_of(value)[3]["device_ip"] = "none"


def repeat_id(value: Any) -> None:
    devices_of(value)[3]["device_id"] = "2"


def mix(value: Any) -> None:
    devices_of(value)[6]["device_ip"] = "192.168.0.106"


@pytest.mark.parametrize("table_format", ["1.0", "group_list", "lab"])
@pytest.mark.parametrize("damage", [repeat_address, lose_address, break_address, repeat_id, mix, lose_device])
def test_a_table_with_ipv6_gets_the_query_for_ipv6(damage: Callable[[Any], None], table_format: str) -> None:
    if damage is lose_device and table_format != "1.0":
        return
    value = in_ipv6(table(table_format, 2, 8))
    damage(value)

    asked = [query for one in validate(value).findings for query in _QUERY.findall(one.hint or "")]

    assert all(query.endswith("-ip -inet6 -g") for query in asked), asked
    assert asked or table_format == "lab"


def test_the_family_that_is_to_be_written_is_asked_for() -> None:
    value = table("1.0", 2, 8)
    devices_of(value)[6]["device_ip"] = "fd00::7"

    (found,) = [one for one in validate(value).errors if one.rule.id == "HCC406"]

    assert "write the IPv4 address of the device: `hccn_tool -i 6 -ip -g` on 10.0.0.1" in (found.hint or "")
