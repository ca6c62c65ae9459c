"""Entries of a rank_list that are there twice with all values: one finding, and they are removed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def only(value: Any) -> tuple[str, str, str]:
    (found,) = validate(value).findings
    return found.rule.id, found.message, found.hint or ""


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("is_counted", [False, True])
def test_an_entry_that_is_there_twice_is_removed(nodes: int, place: int, *, is_counted: bool) -> None:
    value = table("2.0", nodes, 8)
    value["rank_list"].insert(place + 1, deepcopy(value["rank_list"][place]))
    value["rank_count"] += is_counted

    rule, message, hint = only(value)

    assert rule == ("HCC203" if is_counted else "HCC204")
    assert f'entry {place + 2} of rank_list is rank {place} of node "node0" again' in message
    after = f' and write "rank_count": {nodes * 8}' if is_counted else ": rank_count is then right"
    assert hint == f"remove it{after}"


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("is_counted", [False, True])
def test_a_node_that_is_there_twice_with_its_ranks_is_removed(nodes: int, *, is_counted: bool) -> None:
    value = table("2.0", nodes, 8)
    value["rank_list"] += deepcopy(value["rank_list"][8:16])
    value["rank_count"] += 8 * is_counted

    rule, message, hint = only(value)

    assert rule == ("HCC203" if is_counted else "HCC204")
    assert (
        f'entries {nodes * 8 + 1}-{nodes * 8 + 8} of rank_list are ranks 8-15 of node "node1" again'
        in message
    )
    assert hint.startswith("remove them")
    assert "keep the ranks" not in hint


def test_a_device_more_of_a_group_list_has_no_ranks_to_number() -> None:
    value = table("group_list", 2, 8)
    devices = value["group_list"][0]["instance_list"][1]["devices"]
    devices.append(deepcopy(devices[3]))

    hints = [one.hint or "" for one in validate(value).findings]

    assert "remove it" in hints
    assert not any("ranks" in hint for hint in hints)
