"""What HCCL's rank graph makes of 2.0 tables that its parser accepts (observed with hcomm 9.2.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

Levels = list[dict[str, Any]]


def found(change: Callable[[list[Levels]], object]) -> list[str]:
    """Return the errors in a table of two ranks with layers 0 and 1 after a change of the levels."""
    value = table("2.0", 1, 2)
    levels = [rank["level_list"] for rank in value["rank_list"]]
    for row, own in enumerate(levels):
        own.append(_second_layer(row))
    change(levels)
    return [
        f"{one.rule.id} {'/'.join(map(str, one.path[1:]))}" for one in validate(value, product="a5").errors
    ]


def _second_layer(row: int) -> dict[str, Any]:
    address = {"addr_type": "IPV4", "addr": f"192.168.9.{row + 1}", "ports": ["0/0"], "plane_id": "p"}
    return {
        "net_layer": 1, "net_instance_id": "az0", "net_type": "CLOS", "net_attr": "",
        "rank_addr_list": [address],
    }  # fmt: skip


def number_layer(number: int) -> Callable[[list[Levels]], object]:
    return lambda levels: [own[1].update(net_layer=number) for own in levels]


def set_type(layer: int, kind: str, *rows: int) -> Callable[[list[Levels]], object]:
    return lambda levels: [levels[row][layer].update(net_type=kind) for row in rows or (0, 1)]


@pytest.mark.parametrize(
    "change", [lambda _: None, number_layer(3), number_layer(7)], ids=["0 and 1", "0 and 3", "0 and 7"]
)
def test_layers_may_have_a_gap(change: Callable[[list[Levels]], object]) -> None:
    assert found(change) == []


def test_clos_on_layer_0_is_forbidden_by_the_guide_only() -> None:
    everywhere = ["HCC462 0/level_list/0", "HCC462 1/level_list/0"]
    assert found(set_type(0, "CLOS")) == everywhere
    assert found(lambda levels: [own[0].pop("net_type") for own in levels]) == everywhere


@pytest.mark.parametrize("kind", ["1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER"])
@pytest.mark.parametrize("layer", [0, 1])
def test_types_without_a_rank_graph_fail_on_each_layer(kind: str, layer: int) -> None:
    assert found(set_type(layer, kind)) == [f"HCC464 {row}/level_list/{layer}/net_type" for row in (0, 1)]


def test_a_topology_file_is_read_for_layer_0_only() -> None:
    assert found(set_type(1, "TOPO_FILE_DESC", 1)) == ["HCC464 1/level_list/1/net_type"]


def test_the_ranks_of_an_instance_have_one_type_on_layer_0() -> None:
    assert found(set_type(0, "CLOS", 1)) == ["HCC465 1/level_list/0"]
    assert found(set_type(0, "CLOS", 0)) == ["HCC465 1/level_list/0"]


def test_each_rank_needs_layer_0() -> None:
    assert found(lambda levels: levels[1].pop(0)) == ["HCC463 1/level_list"]
    assert found(lambda levels: levels[0].__delitem__(slice(None))) == ["HCC463 0/level_list"]


def test_nodes_are_not_known_without_layer_0() -> None:
    """The network of layer 1 is not one node with doubled device ids."""
    value = table("2.0", 2, 1)
    for row, rank in enumerate(value["rank_list"]):
        rank["level_list"] = [_second_layer(row)]

    assert {one.rule.id for one in validate(value, product="a5").errors} == {"HCC463"}
