"""A remedy names all that is to be done: the ranks and counts that change, and the order of the servers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.rules.test_remedies import is_sound, numbered, one, servers
from tests.support.tables import table


def _with_copy(place: int, count: str) -> Any:
    value = table("1.0", 6, 8)
    servers(value)[place] = deepcopy(servers(value)[place - 1])
    value["server_count"] = count
    return value


@pytest.mark.parametrize("count", ["5", "6"])
def test_a_copy_is_removed_with_the_gap_in_the_ranks(count: str) -> None:
    value = _with_copy(2, count)

    hint = one(value, "HCC503", "a2")[1]

    assert "number the ranks again without a gap" in hint
    del servers(value)[2]
    value["server_count"] = "5"
    assert is_sound(numbered(value), "a2")


def test_a_copy_at_the_end_is_removed_without_numbering_the_ranks() -> None:
    assert "number the ranks" not in one(_with_copy(5, "6"), "HCC503", "a2")[1]


@pytest.mark.parametrize(("place", "moves"), [(1, True), (3, False)])
def test_a_server_with_a_super_pod_of_its_own_leaves_the_middle_of_the_former_one(
    place: int, moves: bool
) -> None:
    value = table("1.2", 8, 8, 2)
    own, other = servers(value)[place]["device"], servers(value)[place - 1]["device"]
    for device, one_before in zip(own, other, strict=True):
        device["super_device_id"] = one_before["super_device_id"]

    hint = one(value, "HCC528", "a3")[1]

    words = 'move its entry of server_list behind that of "10.0.0.4", the last of its former super pod; then'
    assert (words in hint) == moves
    pods = value["super_pod_list"]
    pods.append({"super_pod_id": "9", "server_list": [pods[0]["server_list"].pop(place)]})
    if moves:
        servers(value).insert(3, servers(value).pop(place))
    assert is_sound(numbered(value), "a3")


def test_a_lost_device_of_a_group_list_is_counted_and_gets_no_rank() -> None:
    value = table("group_list", 2, 8)
    group = value["group_list"][0]
    del group["instance_list"][1]["devices"][3]
    group["device_count"] = "15"

    hint = one(value, "HCC639", "a2")[1]

    assert "check that device_count counts it" in hint
    assert "rank" not in hint


def test_super_pods_of_version_1_0_on_a_named_a3_need_version_1_2() -> None:
    value = {**table("1.2", 2, 16), "version": "1.0"}

    assert one(value, "HCC608", "a3")[1] == (
        'write "version": "1.2", in which HCCL reads it; '
        "only if the machine is not an A3, omit super_pod_list"
    )
