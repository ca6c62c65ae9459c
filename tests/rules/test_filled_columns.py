"""Columns that a spreadsheet has filled on, moved or shortened, which HCCL accepts."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def cluster(servers: int = 2, devices: int = 16) -> Any:
    """Return a table of an A3 whose super_device_ids are numbered as on the machines."""
    value = table("1.2", servers, devices)
    for number, server in enumerate(value["server_list"]):
        for device in server["device"]:
            own = int(device["device_id"])
            device["super_device_id"] = str(number << 22 | own // 2 << 18 | own % 2 << 16 | own)
    return value


def column(value: Any, server: int, key: str) -> list[str]:
    return [device[key] for device in value["server_list"][server]["device"]]


def put(value: Any, server: int, key: str, texts: list[str]) -> Any:
    for device, text in zip(value["server_list"][server]["device"], texts, strict=True):
        device[key] = text
    return value


def said(value: Any, product: str | None = None) -> list[tuple[str, str, str, str]]:
    found = validate(value, product=product).findings
    return [(one.rule.id, one.pointer, one.message, one.hint or "") for one in found]


@pytest.mark.parametrize("last", [9, 10, 12])
def test_super_device_ids_counted_on_are_named_with_the_right_ones(last: int) -> None:
    value = cluster()
    own = column(value, 1, "super_device_id")
    right = list(own)
    for place in range(9, last + 1):
        own[place] = str(int(own[place - 1]) + 1)

    ((rule, pointer, message, hint),) = said(put(value, 1, "super_device_id", own))

    assert (rule, pointer) == ("HCC632", "/server_list/1/device/9/super_device_id")
    assert message.endswith("they are counted on from the row above, as a spreadsheet does")
    assert hint.endswith(", ".join(f'"{one}"' for one in right[9 : last + 1]))
    assert "`npu-smi info -t spod-info -i 4 -c 1` on 10.0.0.2" in hint


def test_another_numbering_of_half_the_devices_is_not_a_fault() -> None:
    value = cluster()
    own = column(value, 1, "super_device_id")

    assert said(value) == []
    assert (
        said(put(value, 1, "super_device_id", [*own[:8], *(str(int(one) + (1 << 21)) for one in own[8:])]))
        == []
    )


@pytest.mark.parametrize("server", [0, 1])
@pytest.mark.parametrize("by", [1, 15])
def test_a_column_of_super_device_ids_moved_by_a_row_is_named(server: int, by: int) -> None:
    value = cluster()
    own = column(value, server, "super_device_id")

    ((rule, _, message, hint),) = said(put(value, server, "super_device_id", own[by:] + own[:by]))

    assert rule == "HCC632"
    assert message.endswith("they are probably moved by one row")
    assert f'if it is "{own[0]}"' in hint


def lost_zero(servers: int) -> Any:
    """Return a table with the addresses .6 to .13 of each server: .10 has lost its 0 on the first ones."""
    value = table("1.0", 4, 8)
    for number, server in enumerate(value["server_list"]):
        texts = [f"192.168.{number}.{last}" for last in range(6, 14)]
        if number < servers:
            texts[4] = f"192.168.{number}.1"
        put(value, number, "device_ip", texts)
        assert server["server_id"] == f"10.0.0.{number + 1}"
    return value


@pytest.mark.parametrize("servers", [1, 3, 4])
def test_a_lost_zero_is_one_finding(servers: int) -> None:
    ((rule, pointer, message, hint),) = said(lost_zero(servers))

    assert (rule, pointer) == ("HCC631", "/server_list/0/device/4/device_ip")
    assert 'the last 0 of "192.168.0.10" was probably dropped' in message
    assert ("other place" in message) == (servers > 1)
    assert 'if it is "192.168.0.10"' in hint


def test_addresses_without_a_lost_zero_are_silent() -> None:
    assert said(lost_zero(0)) == []
    value = lost_zero(0)
    for number in range(4):
        own = column(value, number, "device_ip")
        put(value, number, "device_ip", [*own[:4], f"192.168.{number}.2", *own[5:]])
    assert said(value) == []


def test_decimal_numbers_in_strings_are_one_block() -> None:
    value = table("1.0", 2, 8)
    for device in value["server_list"][1]["device"]:
        device["rank_id"] += ".0"

    found = [one for one in validate(value).findings if one.rule.id == "HCC603"]

    assert len(found) == 8
    assert {one.alike for one in found} == {
        (
            "rank_ids are decimal numbers, as spreadsheets write them",
            'write each without the decimal point: "8.0" as "8"',
        )
    }
