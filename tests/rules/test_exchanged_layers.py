"""Ranks of 2.0 tables of which two levels have exchanged their net_layer."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table


def whole() -> dict[str, Any]:
    """Return a table of two nodes with layers 0 and 1, with one and two addresses."""
    value = table("2.0", 2, 4)
    for row, rank in enumerate(value["rank_list"]):
        addresses = [
            {
                "addr_type": "IPV4", "addr": f"192.168.{9 + plane}.{row + 1}", "ports": [f"{plane}/0"],
                "plane_id": "p",
            }
            for plane in range(2)
        ]  # fmt: skip
        rank["level_list"].append(
            {
                "net_layer": 1, "net_instance_id": "az0", "net_type": "CLOS", "net_attr": "",
                "rank_addr_list": addresses,
            }
        )  # fmt: skip
    return value


def exchange(levels: list[dict[str, Any]]) -> None:
    levels[0]["net_layer"], levels[1]["net_layer"] = levels[1]["net_layer"], levels[0]["net_layer"]


@pytest.mark.parametrize("row", [0, 3, 7])
def test_exchanged_numbers_are_one_finding_and_its_remedy_restores_the_table(row: int) -> None:
    value = whole()
    assert not validate(value, product="a5").findings
    exchange(value["rank_list"][row]["level_list"])
    report = validate(value, product="a5")
    (one,) = report.findings
    assert (report.verdict, one.rule.id) == ("refused", "HCC451")
    assert 'exchange only the two numbers: write "net_layer": 0 in the 1st level' in str(one.hint)
    exchange(value["rank_list"][row]["level_list"])
    assert not validate(value, product="a5").findings


def test_exchanged_numbers_in_ascending_order_are_one_error_too() -> None:
    value = whole()
    levels = value["rank_list"][5]["level_list"]
    exchange(levels)
    levels.reverse()
    errors = [one for one in validate(value, product="a5").errors if one.rule.id != "HCC454"]
    (one,) = errors
    assert one.rule.id == "HCC464"
    assert "exchange only the two numbers" in str(one.hint)
    assert "put the level with the lower number first" in str(one.hint)


def test_whole_levels_in_another_order_are_only_to_be_sorted() -> None:
    value = whole()
    value["rank_list"][3]["level_list"].reverse()
    (one,) = validate(value, product="a5").findings
    assert (one.rule.id, one.hint) == ("HCC451", "list the levels by ascending net_layer")


def test_an_order_that_most_ranks_share_is_no_exchange() -> None:
    value = whole()
    for rank in value["rank_list"][:6]:
        exchange(rank["level_list"])
    hints = {(one.rule.id, one.hint) for one in validate(value, product="a5").errors}
    assert ("HCC451", "list the levels by ascending net_layer") in hints
    assert not any("exchange only" in (hint or "") for _, hint in hints)


@pytest.mark.parametrize("row", [0, 5])
def test_exchanged_names_of_two_levels_are_one_finding_and_its_remedy_restores_the_table(row: int) -> None:
    value = whole()
    levels = value["rank_list"][row]["level_list"]
    right = [level["net_instance_id"] for level in levels]
    for level, name in zip(levels, reversed(right), strict=True):
        level["net_instance_id"] = name
    (one,) = validate(value, product="a5").findings
    assert one.rule.id == "HCC634"
    assert one.message.startswith(f"rank {row} has exchanged the net_instance_id of two levels")
    for level, name in zip(levels, right, strict=True):
        assert f'"net_instance_id": "{name}" in layer {level["net_layer"]}' in str(one.hint)
        level["net_instance_id"] = name
    assert not validate(value, product="a5").findings


def test_a_node_of_its_own_has_no_exchanged_names() -> None:
    value = whole()
    for rank in value["rank_list"][4:]:
        rank["level_list"][1]["net_instance_id"] = "az1"
    assert "exchanged" not in " ".join(one.message for one in validate(value, product="a5").findings)


def test_exchanged_lists_of_two_levels_are_exchanged_and_not_shortened() -> None:
    value = whole()
    first, second = value["rank_list"][3]["level_list"]
    for number, entry in enumerate([*first["rank_addr_list"], *second["rank_addr_list"]]):
        entry["ports"] = [f"0/{number}"]
    for rank in value["rank_list"]:
        entries = [entry for level in rank["level_list"] for entry in level["rank_addr_list"]]
        for number, entry in enumerate(entries):
            entry["ports"] = [f"0/{number}"]
    first["rank_addr_list"], second["rank_addr_list"] = second["rank_addr_list"], first["rank_addr_list"]
    (one,) = validate(value, product="a5").errors
    assert str(one.hint).startswith("exchange the rank_addr_list of layers 0 and 1 of the rank")
    first["rank_addr_list"], second["rank_addr_list"] = second["rank_addr_list"], first["rank_addr_list"]
    assert not validate(value, product="a5").findings
