"""Ranks that a program copied from the device_ids: each remedy says which ranks it gives."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

_FIRST, _SECOND = (f'server {n} ("10.0.0.{n}")' for n in (1, 2))
_GAP = "but ranks are counted from 0 without a gap"


def of_devices(ids: list[int], servers: int, step: int, base: int = 0) -> Any:
    """Return a table of some devices of each server, whose ranks are made of their device_ids."""
    value = table("1.0", servers, 8)
    for place, server in enumerate(value["server_list"]):
        server["device"] = [server["device"][number] for number in ids]
        for number, device in zip(ids, server["device"], strict=True):
            device["rank_id"] = str(base + place * step + number)
    return value


def renumbered(value: Any) -> Any:
    number = count()
    for server in value["server_list"]:
        for device in server["device"]:
            device["rank_id"] = str(next(number))
    return value


def told(value: Any, product: str = "a2") -> tuple[str, str]:
    found = validate(value, product=product).errors
    assert len({one.rule.id for one in found}) == len(found) == 1
    return found[0].message, found[0].hint or ""


@pytest.mark.parametrize("product", ["910a", "a2"])
def test_the_upper_half_of_one_server_has_two_choices_of_one_weight(product: str) -> None:
    value = of_devices([4, 5, 6, 7], 1, 0)

    message, hint = told(value, product)

    assert message == f"no device has ranks 0, 1, 2, 3: each rank_id is the device_id, {_GAP}"
    assert hint == (
        f"if the job uses only the listed devices, number the ranks 0 to 3: "
        f"devices 4-7 of {_FIRST} have ranks 0-3; if it also uses devices 0-3 of {_FIRST}, add them with "
        "ranks 0-3, and with their addresses (`hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the first)"
    )
    assert not validate(renumbered(value), product=product).errors


def test_one_device_is_numbered_0() -> None:
    message, hint = told(of_devices([3], 1, 0))

    assert message == f"no device has rank 0: each rank_id is the device_id, {_GAP}"
    assert hint.startswith(
        f"if the job uses only the listed devices, device 3 of {_FIRST} has rank 0; if it also uses "
    )


@pytest.mark.parametrize(
    ("ids", "step", "others"),
    [
        ([4, 5, 6, 7], 8, "devices 0-3 of each server, add them with ranks 0-3, 8-11"),
        ([4, 5, 6, 7], 4, "if the devices with ranks 0-3 are missing, add them"),
        ([0, 1, 2, 3], 8, "devices 4-7 of each server, add them with ranks 4-7, 12-15"),
        ([0, 2, 4, 6], 8, "devices 1,3,5,7 of each server, add them"),
    ],
)
def test_each_server_gets_its_new_ranks(ids: list[int], step: int, others: str) -> None:
    value = of_devices(ids, 2, step)

    message, hint = told(value)

    assert f": each rank_id is the device_id ({step} higher on each next server), {_GAP}" in message
    assert "number the ranks 0 to 7: " in hint
    assert f"{_SECOND} has ranks 4-7; " in hint
    assert others in hint
    assert not validate(renumbered(value), product="a2").errors


@pytest.mark.parametrize("ids", [[4, 5, 6, 7], [0, 2, 4, 6], [3]])
def test_ranks_that_are_the_device_ids_on_each_server_are_one_finding(ids: list[int]) -> None:
    value = of_devices(ids, 2, 0)

    message, hint = told(value)

    assert message == f"each rank_id is the device_id, and several servers have rank {ids[0]} and others"
    size = len(ids)
    first, second = ("rank 0", "rank 1") if size == 1 else ("ranks 0-3", "ranks 4-7")
    assert hint == (
        f"number the ranks 0 to {2 * size - 1} over all servers: {_FIRST} has {first}, {_SECOND} has {second}"
    )
    assert not validate(renumbered(value), product="a2").errors


def test_ranks_with_a_constant_offset_are_named_with_it() -> None:
    message, hint = told(of_devices([4, 5, 6, 7], 2, 8, base=16))

    assert "each rank_id is the device_id plus 16 (8 higher on each next server)" in message
    assert hint == f"number the ranks 0 to 7: {_FIRST} has ranks 0-3, {_SECOND} has ranks 4-7"


def test_a_gap_without_a_cause_names_the_ranks_that_change() -> None:
    value = of_devices([0, 1, 2, 3], 3, 4)
    for server, start in zip(value["server_list"], (0, 20, 30), strict=True):
        for rank, device in enumerate(reversed(server["device"]), start):
            device["rank_id"] = str(rank)

    _, hint = (
        validate(value, product="a2").errors[0].message,
        validate(value, product="a2").errors[0].hint or "",
    )

    assert f"{_SECOND} has ranks 4-7" in hint
    assert 'server 3 ("10.0.0.3") has ranks 8-11' in hint


def test_a_2_0_table_names_the_node() -> None:
    value = table("2.0", 1, 8)
    value["rank_list"] = value["rank_list"][4:]
    value["rank_count"] = 4

    found = {one.rule.id: one for one in validate(value).errors}["HCC202"]

    assert "each rank_id is the device_id" in found.message
    assert "number the ranks 0 to 3: devices 4-7 of node " in (found.hint or "")
    assert "`hccl-tools gen` on " in (found.hint or "")


def test_a_lost_device_is_no_such_fault() -> None:
    value = table("1.0", 2, 8)
    del value["server_list"][0]["device"][3]

    assert "each rank_id" not in told(value)[0]
