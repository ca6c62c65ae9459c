"""Nodes of a 2.0 table with the addresses of other nodes, and ranks of two nodes with those of each other."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def cluster(nodes: int, *, seed: int | None = None) -> Any:
    """Return a table with EIDs in two layers, which are numbered as the nodes are, or by chance."""
    value, random = table("2.0", nodes, 8), Random(seed)  # noqa: S311  (repeatable)
    bases = [[number << 12 for number in range(nodes)] for _ in range(2)]
    if seed is not None:
        bases = [[random.randrange(1 << 20) << 8 for _ in range(nodes)] for _ in range(2)]
    for row, rank in enumerate(value["rank_list"]):
        layer = rank["level_list"][0]
        layer["net_instance_id"] = f"10.0.0.{row // 8 + 1}"
        layer["rank_addr_list"] = [
            eid(0x20 << 64 | bases[0][row // 8] + 18 * (row % 8) + place, f"0/{place}") for place in range(2)
        ]
        rank["level_list"].append(
            {
                "net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "",
                "rank_addr_list": [eid(bases[1][row // 8] + 0xB6 + 4 * (row % 8), "0/4")],
            }
        )  # fmt: skip
    return value


def eid(number: int, port: str) -> dict[str, Any]:
    return {"addr_type": "EID", "addr": f"{number:032x}", "ports": [port], "plane_id": "0"}


def put(value: Any, layer: int, key: str, sources: list[int]) -> Any:
    """Give each rank what another one has in a layer."""
    own = [rank["level_list"][layer][key] for rank in value["rank_list"]]
    for rank, source in zip(value["rank_list"], sources, strict=True):
        rank["level_list"][layer][key] = own[source]
    return value


def exchanged_nodes(nodes: int, one: int, other: int) -> list[int]:
    places = list(range(nodes))
    places[one], places[other] = other, one
    return [8 * place + number for place in places for number in range(8)]


def said(value: Any) -> list[tuple[str, str, str]]:
    found = validate(value, product="a5").findings
    return [(one.rule.id, one.message, one.hint or "") for one in found]


NODES = [(2, 0, 1), (4, 1, 3), (5, 0, 1)]


@pytest.mark.parametrize(("nodes", "one", "other"), NODES)
@pytest.mark.parametrize("layer", [0, 1])
def test_addresses_of_two_nodes_exchanged_in_one_layer_are_named(
    nodes: int, one: int, other: int, layer: int
) -> None:
    assert said(cluster(nodes)) == []
    value = put(cluster(nodes), layer, "rank_addr_list", exchanged_nodes(nodes, one, other))

    ((rule, message, hint),) = said(value)

    assert rule == "HCC644"
    named = f'nodes "10.0.0.{one + 1}" and "10.0.0.{other + 1}" in layer {layer}'
    assert message.startswith(
        f"the addresses of {named} do not follow the order of the nodes, which the other"
    )
    assert message.endswith("they are probably exchanged")
    assert f"on 10.0.0.{one + 1} prints the addresses of its ranks" in hint
    assert f"those that rank {8 * other} has here, and not those of rank {8 * one}, exchange" in hint


@pytest.mark.parametrize(("nodes", "one", "other"), NODES)
def test_addresses_exchanged_in_all_layers_may_be_exchanged_names(nodes: int, one: int, other: int) -> None:
    sources = exchanged_nodes(nodes, one, other)
    value = put(put(cluster(nodes), 0, "rank_addr_list", sources), 1, "rank_addr_list", sources)

    ((_, message, hint),) = said(value)
    ((_, by_name, _),) = said(put(cluster(nodes), 0, "net_instance_id", sources))

    for text in (message, by_name):
        assert "probably either the addresses are exchanged, or the net_instance_ids of these nodes" in text
    assert "or exchange the net_instance_ids, so that each rank keeps its addresses" in hint


@pytest.mark.parametrize("nodes", [2, 4])
def test_one_rank_of_each_of_two_nodes_is_named(nodes: int) -> None:
    sources = list(range(8 * nodes))
    sources[3], sources[11] = 11, 3
    value = put(put(cluster(nodes), 0, "rank_addr_list", sources), 1, "rank_addr_list", sources)

    ((_, message, _),) = said(value)

    assert message.startswith("the addresses of ranks 3, 11 in layer 0 and layer 1 do not follow the order")


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_addresses_moved_by_a_rank_are_named(nodes: int, step: int) -> None:
    ranks = list(range(8 * nodes))
    value = put(cluster(nodes), 1, "rank_addr_list", ranks[step:] + ranks[:step])

    ((_, message, hint),) = said(value)

    assert message.endswith("they are probably moved by one rank")
    assert f"{'down' if step > 0 else 'up'} by one rank" in hint


def test_half_of_the_ranks_of_two_nodes_may_be_either_half() -> None:
    ranks = [*range(8, 12), *range(4, 8), *range(4), *range(12, 16)]

    ((_, message, _),) = said(put(cluster(2), 1, "rank_addr_list", ranks))

    assert message.endswith("probably either they are exchanged, or those of ranks 0-3, 8-11")


@pytest.mark.parametrize("nodes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_addresses_without_an_order_are_sound(nodes: int, seed: int) -> None:
    assert said(cluster(nodes, seed=seed)) == []


@pytest.mark.parametrize(
    ("layer", "right"),
    [(0, "write TOPO_FILE_DESC, which the guide requires on layer 0"), (1, 'write "CLOS"')],
)
def test_a_misspelt_net_type_gets_one_that_its_layer_takes(layer: int, right: str) -> None:
    value = cluster(2)
    value["rank_list"][3]["level_list"][layer]["net_type"] = "CLOSE"

    (finding,) = (one for one in validate(value, product="a5").findings if one.rule.id == "HCC453")

    assert finding.hint == right


@pytest.mark.parametrize("text", ["topo_file_desc", "TOPO-FILE-DESC", "Topo_File_Desc ", "TOPOFILEDESC"])
def test_another_spelling_of_a_net_type_has_one_correction(text: str) -> None:
    value = cluster(2)
    value["rank_list"][3]["level_list"][0]["net_type"] = text

    (finding,) = (one for one in validate(value, product="a5").findings if one.rule.id == "HCC453")

    assert finding.message.endswith("it is another spelling of TOPO_FILE_DESC")
    assert (finding.hint, finding.right) == ('write "TOPO_FILE_DESC"', "TOPO_FILE_DESC")
