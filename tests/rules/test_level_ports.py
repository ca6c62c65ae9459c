"""Ports, planes, ids and addresses of a rank of a 2.0 table that are not those of the other ranks."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Diagnostic


def sound(nodes: int = 2) -> Any:
    """Return a table with three addresses of each rank, each with a port of its own."""
    value = table("2.0", nodes, 4)
    for rank, entry in enumerate(value["rank_list"]):
        entry["level_list"][0]["rank_addr_list"] = [
            {
                "addr_type": "EID",
                "addr": f"{0x20_0000_0000_0000 + rank * 16 + port:032x}",
                "ports": [f"0/{port}"],
                "plane_id": str(port // 2),
            }
            for port in range(3)
        ]
    return value


def addresses(value: Any, rank: int) -> list[Any]:
    found: list[Any] = value["rank_list"][rank]["level_list"][0]["rank_addr_list"]
    return found


def found(value: Any) -> list[Diagnostic]:
    return list(validate(value, product="a5").findings)


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_port_of_two_addresses_is_reported_with_the_right_one(nodes: int) -> None:
    value = sound(nodes)
    addresses(value, 2)[1]["ports"] = ["0/0"]

    (one,) = found(value)

    assert one.rule.id == "HCC646"
    assert one.message == 'rank 2 has port "0/0" twice in layer 0: a port belongs to one address'
    assert (one.hint or "").startswith('write "ports": ["0/1"], as the other ranks have')


def test_one_port_in_two_layers_is_sound() -> None:
    value = sound()
    for rank in value["rank_list"]:
        level = deepcopy(rank["level_list"][0])
        level.update(net_layer=1, net_instance_id="0", net_type="CLOS")
        for address in level["rank_addr_list"]:
            address["addr"] = f"1{address['addr'][1:]}"
        rank["level_list"].append(level)

    assert found(value) == []


@pytest.mark.parametrize(
    ("change", "key", "hint"),
    [
        ({"ports": ["0/7"]}, "ports", 'write "ports": ["0/1"]'),
        ({"plane_id": "1"}, "plane_id", 'write "plane_id": "0"'),
    ],
)
def test_another_port_or_plane_than_on_all_other_ranks_is_reported(
    change: dict[str, Any], key: str, hint: str
) -> None:
    value = sound()
    addresses(value, 5)[1].update(change)

    (one,) = found(value)

    assert one.rule.id == "HCC647"
    assert one.path[-2:] == (1, key)
    assert (one.hint or "").startswith(f"{hint}, as the other ranks have")


def in_another_order(value: Any) -> None:
    addresses(value, 5).reverse()


def by_place_in_the_node(value: Any) -> None:
    for rank in (1, 5):
        addresses(value, rank)[1]["ports"] = ["0/7"]


@pytest.mark.parametrize("change", [lambda _value: None, in_another_order, by_place_in_the_node])
def test_entries_in_another_order_and_ports_of_a_place_are_sound(change: Callable[[Any], None]) -> None:
    value = sound()
    change(value)

    assert found(value) == []


def test_another_port_in_the_only_node_is_sound() -> None:
    value = sound(1)
    addresses(value, 3)[1]["ports"] = ["0/7"]

    assert found(value) == []


def run_on(devices: int, keys: list[str]) -> list[Diagnostic]:
    value = table("2.0", 2, devices)
    for rank in value["rank_list"]:
        rank.update(dict.fromkeys(keys, rank["rank_id"]))
    return [each for each in found(value) if each.rule.id == "HCC648"]


@pytest.mark.parametrize("keys", [["local_id"], ["device_id"], ["local_id", "device_id"]])
def test_ids_that_run_on_over_the_nodes_are_reported(keys: list[str]) -> None:
    (one,) = run_on(8, keys)

    assert f"the {'s and '.join(keys)}s run on over the 2 nodes" in one.message
    assert one.pointer == f"/rank_list/8/{keys[0]}"


def test_other_devices_of_two_nodes_are_sound_and_one_id_alone_that_runs_on_is_not() -> None:
    assert run_on(4, ["local_id", "device_id"]) == []
    assert len(run_on(4, ["local_id"])) == 1


def test_ids_of_one_node_and_of_a_part_of_a_node_are_sound() -> None:
    value = sound()
    for rank in value["rank_list"]:
        rank["local_id"] = rank["device_id"] = rank["rank_id"] % 4 + 4

    assert found(sound(1)) == []
    assert found(value) == []


def test_exchanged_local_ids_are_one_finding() -> None:
    value = sound()
    for rank, other in ((5, 2), (6, 1)):
        value["rank_list"][rank]["local_id"] = other

    (one,) = found(value)

    assert one.rule.id == "HCC648"
    assert one.message.startswith("local_id and device_id differ in rank 5 (2 and 1), rank 6 (1 and 2)")


def test_exchanged_addresses_of_one_rank_are_reported() -> None:
    value = sound(3)
    one, other = addresses(value, 5)[:2]
    one["addr"], other["addr"] = other["addr"], one["addr"]

    (report,) = found(value)

    assert report.rule.id == "HCC644"
    assert report.message.endswith("2 of them are probably exchanged")
    assert (report.hint or "").endswith(f'"{other["addr"]}", "{one["addr"]}"')


@pytest.mark.parametrize(("digit", "is_reported"), [("7", True), ("75", False)])
def test_a_mistyped_address_is_reported_and_another_one_is_not(digit: str, *, is_reported: bool) -> None:
    value = sound(3)
    entry = addresses(value, 5)[1]
    right = entry["addr"]
    entry["addr"] = right[:9] + digit + right[9 + len(digit) :]

    report = found(value)

    assert [one.rule.id for one in report] == ["HCC644"] * is_reported
    assert all((one.hint or "").endswith(f'by the order of the others it is "{right}"') for one in report)


def test_an_address_of_another_type_outside_the_order_is_not_written() -> None:
    value = sound(3)
    addresses(value, 5)[1].update(addr_type="IPV4", addr="10.0.0.1")

    assert not [one for one in found(value) if one.rule.id == "HCC644"]


# Values that are exchanged within a rank


def of_layers(nodes: int = 1) -> Any:
    """Return a table with three addresses of each rank in layer 0, and two in layer 1."""
    value = table("2.0", nodes, 8)
    for rank, entry in enumerate(value["rank_list"]):
        levels = entry["level_list"]
        levels.append({**levels[0], "net_layer": 1, "net_instance_id": "0", "net_type": "CLOS"})
        for layer, ports in enumerate((["0/0", "0/1", "1/0"], ["0/4", "1/4"])):
            levels[layer]["rank_addr_list"] = [
                {
                    "addr_type": "EID",
                    "addr": f"{(layer + 1) * 0x1000_0000_0000 + rank * 16 + place:032x}",
                    "ports": [port],
                    "plane_id": port[0],
                }
                for place, port in enumerate(ports)
            ]
    return value


def entry(value: Any, rank: int, layer: int, place: int) -> Any:
    return value["rank_list"][rank]["level_list"][layer]["rank_addr_list"][place]


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("other", [(1, 0), (0, 1)])
def test_exchanged_ports_of_a_rank_are_one_finding(nodes: int, other: tuple[int, int]) -> None:
    value = of_layers(nodes)
    assert not found(value)
    first, second = entry(value, 3, 0, 0), entry(value, 3, *other)
    first["ports"], second["ports"] = second["ports"], first["ports"]

    (one,) = found(value)

    assert one.rule.id == "HCC647"
    assert one.message.startswith("rank 3 has exchanged the ports of 2 addresses: ")
    assert f'"ports": ["0/0"] for "{first["addr"]}" in layer 0' in (one.hint or "")


def test_exchanged_planes_of_a_rank_are_reported() -> None:
    value = of_layers()
    first, second = entry(value, 5, 0, 1), entry(value, 5, 0, 2)
    first["plane_id"], second["plane_id"] = second["plane_id"], first["plane_id"]

    assert [one.message.partition(":")[0] for one in found(value)] == [
        "rank 5 has exchanged the plane_ids of 2 addresses"
    ]


def test_entries_of_a_layer_may_stand_in_any_order() -> None:
    value = of_layers()
    entries = value["rank_list"][3]["level_list"][0]["rank_addr_list"]
    entries[0], entries[1] = entries[1], entries[0]

    assert not found(value)


def test_whole_entries_in_the_place_of_each_other_go_back_whole() -> None:
    value = of_layers()
    lists = [level["rank_addr_list"] for level in value["rank_list"][3]["level_list"]]
    lists[0][0], lists[1][0] = lists[1][0], lists[0][0]

    (one,) = found(value)

    assert (one.hint or "").startswith("exchange these entries, each with its addr, ports and plane_id")


def test_ports_that_differ_in_half_of_the_ranks_are_not_exchanged() -> None:
    value = of_layers()
    for rank in range(4):
        first, second = entry(value, rank, 0, 0), entry(value, rank, 1, 0)
        first["ports"], second["ports"] = second["ports"], first["ports"]

    assert not found(value)


@pytest.mark.parametrize("other", [(1, 0), (0, 1)])
def test_exchanged_addresses_of_a_rank_are_told_from_exchanged_ports(other: tuple[int, int]) -> None:
    value = of_layers()
    first, second = entry(value, 3, 0, 0), entry(value, 3, *other)
    right = first["addr"], second["addr"]
    first["addr"], second["addr"] = right[1], right[0]

    (one,) = found(value)

    assert one.rule.id == "HCC644"
    assert (one.hint or "").endswith(f'these are "{right[0]}", "{right[1]}"')
