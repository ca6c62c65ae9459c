"""Ids that the entries of service tables lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation.checker import validate
from tests.support.tables import JSON, table

if TYPE_CHECKING:
    from collections.abc import Iterator


def of_a_pod() -> Any:
    """Return two instances, with the devices 4-7 of their hosts."""
    value: Any = table(SERVICE, 1, 4)
    for device in devices(value, 2, 3):
        device["device_id"] = str(4 + int(device["device_logical_id"]))
    return value


def devices(value: Any, *groups: int) -> Iterator[Any]:
    for group in groups:
        for server in value[SERVICE][group]["server_list"]:
            yield from server["device"]


def without(value: Any, *paths: str) -> JSON:
    """Return a table without the values at some paths."""
    for path in paths:
        *around, last = path.split("/")
        holder = value[SERVICE]
        for step in around:
            holder = holder[int(step) if step.isdecimal() else step]
        del holder[last]
    found: JSON = value
    return found


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("0/group_id", 'write "group_id": "0", a number that no other group has'),
        ("1/group_id", 'write "group_id": "1", a number that no other group has'),
        ("3/group_id", 'write "group_id": "3", a number that no other group has'),
        (
            "2/server_list/0/device/2/device_id",
            'write "device_id": "6", the number that no other device of the server has',
        ),
        (
            "2/server_list/0/device/1/rank_id",
            'write "rank_id": "1", the number that no other device of the group has',
        ),
    ],
)
def test_a_missing_id_gets_a_free_number(path: str, hint: str) -> None:
    (found,) = validate(without(of_a_pod(), path)).errors

    assert (found.rule.id, found.hint) == ("HCC701", hint)


def test_several_missing_ranks_get_the_free_numbers() -> None:
    device = "2/server_list/0/device"

    found = validate(without(of_a_pod(), f"{device}/0/rank_id", f"{device}/2/rank_id")).errors

    assert {one.hint for one in found} == {
        'write "rank_id" with one of the numbers that no other device of the group has: 0,2'
    }


def test_servers_that_are_instances_number_their_ranks_each() -> None:
    value: Any = table(SERVICE, 1, 4)
    value[SERVICE][2]["server_list"] += value[SERVICE].pop(3)["server_list"]
    value[SERVICE][2]["server_count"] = "2"

    (found,) = validate(without(value, "2/server_list/1/device/3/rank_id")).errors

    assert found.hint == 'write "rank_id": "3", the number that no other device of the server has'
