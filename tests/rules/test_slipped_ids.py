"""A column of super_device_ids that slipped by one row in a server."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import validate
from hccl_tools.rules.value_order import sdid_scheme
from tests.support.tables import table


def whole(*, dies: bool) -> dict[str, Any]:
    value = table("1.2", 2, 8)
    for index, server in enumerate(value["server_list"]):
        for number, device in enumerate(server["device"]):
            low = sdid_scheme(number) if dies else number
            device["super_device_id"] = str((index + 1 << 22) + low)
    return value


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("is_absent", [True, False])
def test_the_whole_column_is_named(dies: bool, step: int, is_absent: bool) -> None:
    value = whole(dies=dies)
    assert not validate(value, product="a3").errors
    devices = value["server_list"][1]["device"]
    ids = [device["super_device_id"] for device in devices]
    moved = [*ids[1:], ""] if step > 0 else ["", *ids[:-1]]
    for device, text in zip(devices, moved, strict=True):
        device["super_device_id"] = text
        if is_absent and not text:
            del device["super_device_id"]

    (one,) = validate(value, product="a3").errors

    assert one.rule.id == ("HCC527" if is_absent else "HCC526")
    assert 'of server "10.0.0.2" have slipped by one row' in one.message
    assert f"move all 7 ids {'down' if step > 0 else 'up'} by one device" in (one.hint or "")
    assert f"-i 0 -c {0 if step > 0 else 7}" in (one.hint or "") or step < 0


def test_one_empty_id_beside_right_ones_is_that_alone() -> None:
    value = whole(dies=True)
    value["server_list"][1]["device"][7]["super_device_id"] = ""
    (one,) = validate(value, product="a3").errors
    assert "slipped" not in one.message


def test_ids_counted_from_one_on_all_servers_have_not_slipped() -> None:
    value = whole(dies=False)
    for server in value["server_list"]:
        for device in server["device"]:
            device["super_device_id"] = str(int(device["super_device_id"]) + 1)
    value["server_list"][1]["device"][7]["super_device_id"] = ""
    (one,) = validate(value, product="a3").errors
    assert "slipped" not in one.message
