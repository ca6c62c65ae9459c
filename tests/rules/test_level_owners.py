"""Of two ranks or nodes with the same EIDs, that outside the order of the others is named, else both are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table

SIZE = 8


def with_eids(nodes: int) -> Any:
    value = table("2.0", nodes, SIZE)
    for rank in value["rank_list"]:
        node, number = rank["rank_id"] // SIZE, rank["device_id"] + 1
        address = rank["level_list"][0]["rank_addr_list"][0]
        address.update(addr_type="EID", addr=f"000000000000002000100000df{node:02x}{number:04x}")
    return value


def finding(value: Any) -> tuple[str, str, str]:
    (one,) = [one for one in validate(value, product="a5").findings if one.rule.id == "HCC615"]
    return one.message, one.pointer, one.hint or ""


def with_address_of(nodes: int, source: int, target: int) -> Any:
    value = with_eids(nodes)
    ranks = value["rank_list"]
    ranks[target]["level_list"][0]["rank_addr_list"] = copy.deepcopy(
        ranks[source]["level_list"][0]["rank_addr_list"]
    )
    return value


def with_node_of(nodes: int, source: int, target: int) -> Any:
    value = with_eids(nodes)
    for device in range(SIZE):
        own = value["rank_list"][target * SIZE + device]["level_list"][0]
        other = value["rank_list"][source * SIZE + device]["level_list"][0]
        own["rank_addr_list"] = copy.deepcopy(other["rank_addr_list"])
    return value


@pytest.mark.parametrize(
    ("nodes", "source", "target"), [(1, 5, 2), (2, 2, 5), (2, 9, 2), (3, 2, 9), (3, 20, 1)]
)
def test_the_rank_outside_the_order_is_named(nodes: int, source: int, target: int) -> None:
    message, pointer, hint = finding(with_address_of(nodes, source, target))

    assert message.startswith(f"rank {target} has EIDs of rank {source} in layer 0")
    assert pointer.startswith(f"/rank_list/{target}/")
    assert hint.startswith(f"write the EIDs of the devices themselves in rank {target}")


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (1, 3), (3, 1)])
@pytest.mark.parametrize("nodes", [4, 6])
def test_the_node_outside_the_order_is_named(nodes: int, source: int, target: int) -> None:
    message, pointer, hint = finding(with_node_of(nodes, source, target))

    assert message.startswith(
        f"ranks {target * SIZE}-{target * SIZE + 7} have EIDs of ranks {source * SIZE}-"
    )
    assert pointer.startswith(f"/rank_list/{target * SIZE}/")
    assert f"on node{target} " in hint


@pytest.mark.parametrize(("nodes", "source", "target"), [(2, 0, 1), (2, 1, 0), (3, 0, 1)])
def test_both_nodes_are_named_if_nothing_says_which_is_wrong(nodes: int, source: int, target: int) -> None:
    message, _, hint = finding(with_node_of(nodes, source, target))

    assert (
        message == "ranks 0-7 and ranks 8-15 have the same EIDs in layer 0: those of one of the two are wrong"
    )
    assert "on node0 and on node1" in hint


def test_equal_eids_at_places_that_others_do_not_have_name_both() -> None:
    value = with_address_of(3, 5, 2)
    value["rank_list"][20]["level_list"][0]["rank_addr_list"].append(
        {"addr_type": "EID", "addr": "f" * 32, "ports": ["0/7"], "plane_id": "plane0"}
    )

    assert finding(value)[0].startswith("rank 2 has EIDs of rank 5")


def test_a_copied_level_list_is_one_finding_for_all_its_layers() -> None:
    value = with_eids(3)
    for rank in value["rank_list"]:
        upper = copy.deepcopy(rank["level_list"][0])
        upper |= {"net_layer": 1, "net_instance_id": "all"}
        upper["rank_addr_list"][0]["addr"] = "1" + upper["rank_addr_list"][0]["addr"][1:]
        rank["level_list"].append(upper)
    assert not [one for one in validate(value, product="a5").findings if one.rule.id == "HCC615"]
    value["rank_list"][4]["level_list"] = copy.deepcopy(value["rank_list"][3]["level_list"])

    assert finding(value)[0] == (
        "rank 4 has EIDs of rank 3 in layers 0 and 1, as if its level_list was copied: "
        "by the order of the others, the EIDs of rank 4 are probably wrong"
    )


def test_an_entry_that_was_copied_as_the_ninth_may_be_one_too_many() -> None:
    value = with_eids(2)
    value["rank_list"].append(
        copy.deepcopy(value["rank_list"][15]) | {"rank_id": 16, "device_id": 8, "local_id": 8}
    )
    value["rank_count"] = 17

    message, _, hint = finding(value)

    assert message.endswith("the level_list of one of the two was probably copied")
    assert "an entry that stands for no device is removed, with a lower rank_count" in hint
