"""Lost ranks of 2.0 tables: node, device and rank are named, and a lower rank_count leaves a warning."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def without(lost: list[int], nodes: int) -> Any:
    value = table("2.0", nodes, 8)
    for rank in reversed(lost):
        del value["rank_list"][rank]
    return value


@pytest.mark.parametrize(
    ("nodes", "rank", "others"), [(2, 15, "node"), (2, 7, "node"), (4, 31, "nodes"), (4, 11, "nodes")]
)
def test_the_lost_rank_is_named_with_its_node_and_device(nodes: int, rank: int, others: str) -> None:
    found = {one.rule.id: one for one in validate(without([rank], nodes)).errors}["HCC204"]

    assert (found.hint or "").startswith(
        f'unlike the other {others}, node "node{rank // 8}" has no device {rank % 8}: add the entry of rank '
        f"{rank} (`hccl-tools gen` on node{rank // 8} prints it); only if it is left out on purpose, write "
        f'"rank_count": {nodes * 8 - 1}'
    )


def test_the_last_rank_is_named_in_the_message() -> None:
    (found,) = validate(without([31], 4)).errors

    assert found.message == 'rank_count is 32, but rank_list has 31 entries, and node "node3" has no device 7'


@pytest.mark.parametrize(("nodes", "lost"), [(2, [15]), (3, [23]), (5, [15, 39])])
def test_a_lower_rank_count_leaves_the_warning(nodes: int, lost: list[int]) -> None:
    value = without(lost, nodes)
    for rank, entry in enumerate(value["rank_list"]):
        entry["rank_id"] = rank
    value["rank_count"] = len(value["rank_list"])

    found = [one for one in validate(value).findings if one.rule.id == "HCC639"]

    assert len(found) == len(lost)
    assert found[-1].message.startswith(f'node "node{nodes - 1}" has no device 7, unlike ')
    assert "correct rank_count, and number the ranks again without a gap" in (found[-1].hint or "")
    assert "`hccl-tools gen` on node" in (found[-1].hint or "")


@pytest.mark.parametrize("lost", [[4, 5, 6, 7], [0, 1, 2, 3]])
def test_nodes_of_different_halves_are_told_as_perhaps_missing(lost: list[int]) -> None:
    value = without(lost, 2)
    for rank, entry in enumerate(value["rank_list"]):
        entry["rank_id"] = rank
    value["rank_count"] = len(value["rank_list"])

    (found,) = [one for one in validate(value).findings if one.rule.id == "HCC639"]

    assert "are perhaps missing" in found.message


def test_two_of_four_nodes_that_lack_a_device_are_named_with_it() -> None:
    found = {one.rule.id: one for one in validate(without([15, 31], 4)).errors}["HCC202"]

    assert 'if it also uses device 7 of node "node1", node "node3", add them with ranks 15, 31 (' in (
        found.hint or ""
    )


def test_a_lost_device_of_the_second_group_of_four_is_added_with_its_rank() -> None:
    """A number of devices that the product does not allow is not offered."""
    value: Any = table("1.0", 1, 4)
    devices = value["server_list"][0]["device"]
    for number, device in enumerate(devices):
        device["device_id"] = str(4 + number)
    del devices[1]

    found = {one.rule.id: one.hint or "" for one in validate(value, product="910a").findings}

    assert found["HCC202"].startswith(
        'server 1 ("10.0.0.1") has no device 5: add it with rank 1 and its address'
    )
    assert "number the ranks" not in found["HCC202"]
    assert found["HCC304"].startswith("add device 5 with rank 1 and the address that")
