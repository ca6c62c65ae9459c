"""Nodes of a 2.0 table that are listed again: one finding with sound remedies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table


def with_again(nodes: int, size: int, *which: int, is_counted: bool = True) -> Any:
    """Return a table in which a loop has written nodes a second time, with the ranks numbered on."""
    value = table("2.0", nodes, size)
    blocks = [value["rank_list"][at : at + size] for at in range(0, nodes * size, size)]
    blocks = [
        one
        for at, own in enumerate(blocks)
        for one in (own, *(deepcopy(own) for _ in range(which.count(at))))
    ]
    value["rank_list"] = [one for block in blocks for one in block]
    return numbered(value, is_counted=is_counted)


def numbered(value: Any, *, is_counted: bool = True) -> Any:
    for rank, entry in enumerate(value["rank_list"]):
        entry["rank_id"] = rank
    return {**value, "rank_count": len(value["rank_list"])} if is_counted else value


def only(value: Any, rule: str) -> tuple[str, str]:
    (found,) = validate(value).findings
    assert found.rule.id == rule
    return found.message, found.hint or ""


@pytest.mark.parametrize("size", [1, 4, 8])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_node_that_is_listed_again_is_removed(size: int, place: int) -> None:
    value, right = with_again(4, size, place), table("2.0", 4, size)

    message, hint = only(value, "HCC334")

    assert f'again (node "node{place}")' in message
    assert f'write "rank_count": {4 * size}' in hint
    assert ("number the ranks without a gap" in hint) == (place < 3)
    assert "devices" not in hint
    begin = (place + 1) * size
    del value["rank_list"][begin : begin + size]
    assert numbered(value) == right


def test_the_node_that_is_missing_is_named_by_the_order_of_the_others() -> None:
    last, inside = with_again(4, 8, 3), table("2.0", 4, 8)
    inside["rank_list"][16:24] = deepcopy(inside["rank_list"][8:16])

    assert only(last, "HCC334")[1] == (
        'remove ranks 32-39 and write "rank_count": 32; only if another node is in the job and missing '
        'here (by the order of the others, it can be "node4"), write its net_instance_id in layer 0 and '
        "its addresses in ranks 32-39 (`hccl-tools gen` on node4 prints them), and keep the ranks"
    )
    assert 'it can be "node2"' in only(numbered(inside), "HCC334")[1]
    assert "it can be" not in only(with_again(4, 8, 0), "HCC334")[1]


def test_the_missing_node_in_the_place_of_the_copy_gives_a_sound_table() -> None:
    value, right = table("2.0", 4, 8), table("2.0", 4, 8)
    value["rank_list"][16:24] = deepcopy(value["rank_list"][8:16])
    assert only(numbered(value), "HCC334")
    for own, other in zip(value["rank_list"][16:24], right["rank_list"][16:24], strict=True):
        own["level_list"] = other["level_list"]

    assert not validate(value).findings


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_a_count_without_the_copies_is_right(nodes: int) -> None:
    value = with_again(nodes, 8, nodes - 1, is_counted=False)

    message, hint = only(value, "HCC204")

    assert f'again (node "node{nodes - 1}")' in message
    assert hint.startswith(
        f"remove ranks {nodes * 8}-{nodes * 8 + 7}: rank_count is then right; only if another node"
    )
    assert f'write "rank_count": {nodes * 8 + 8}, and keep the ranks' in hint


def test_several_nodes_are_one_finding_with_one_count() -> None:
    message, hint = only(with_again(8, 8, 1, 2, 2), "HCC334")

    assert 'again (nodes "node1" and "node2")' in message
    assert 'write "rank_count": 64' in hint
    assert "only if other nodes are in the job" in hint


def test_a_part_of_a_node_can_be_its_other_devices() -> None:
    value = table("2.0", 2, 8)
    value["rank_list"][12:] = deepcopy(value["rank_list"][8:12])

    message, hint = only(numbered(value), "HCC334")

    assert "no rank of the node has devices 4-7" in message
    assert "devices 4-7" in hint


def test_the_work_grows_with_the_ranks() -> None:
    few, many = (with_again(nodes, 8, *range(nodes)) for nodes in (4, 16))

    assert steps(lambda: validate(many)) < 6 * steps(lambda: validate(few))
