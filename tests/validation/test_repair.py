from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import validate
from hccl_tools.formats import schema
from hccl_tools.validation import repair
from tests.support.tables import table


def repaired(value: Any, table_format: Any) -> repair.Repaired | None:
    return repair.without_damage(value, schema.Violations(value, table_format), table_format)


def test_the_document_itself_stays_as_it_is() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][0]["rank_id"] = None

    found = repaired(value, "1.0")

    assert found is not None
    assert found.damaged == {"rank_id"}
    assert found.value["server_list"][0]["device"][0]["rank_id"] == "0"
    assert value["server_list"][0]["device"][0]["rank_id"] is None


def test_a_number_of_the_wrong_type_is_no_damage() -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["device"][1]["rank_id"] = 1
    v2 = table("2.0", 1, 2)
    v2["rank_list"][1]["rank_id"] = "1"

    assert repaired(value, "1.0") == repair.Repaired(table("1.0", 1, 2), frozenset())
    assert repaired(v2, "2.0") == repair.Repaired(table("2.0", 1, 2), frozenset())


def test_a_decimal_number_and_a_number_with_a_name_are_no_damage() -> None:
    value, v2 = table("1.0", 1, 2), table("2.0", 1, 2)
    value["server_list"][0]["device"][1]["rank_id"] = 1.0
    value["server_count"] = 1.0
    v2["rank_list"][1]["level_list"][0]["net_layer"] = "L0"
    v2["rank_count"] = "2"

    assert repaired(value, "1.0") == repair.Repaired(table("1.0", 1, 2), frozenset())
    assert repaired(v2, "2.0") == repair.Repaired(table("2.0", 1, 2), frozenset())


@pytest.mark.parametrize("value", [None, "two", [2]])
def test_a_count_that_has_no_number_is_not_repaired(value: Any) -> None:
    assert repaired(table("2.0", 1, 2) | {"rank_count": value}, "2.0") is None


@pytest.mark.parametrize("value", [None, 2, ["x"]])
def test_an_optional_value_that_is_damaged_is_left_out(value: Any) -> None:
    whole, broken = table("2.0", 1, 2), table("2.0", 1, 2)
    broken["rank_list"][1]["level_list"][0]["net_attr"] = value
    del whole["rank_list"][1]["level_list"][0]["net_attr"]

    assert repaired(broken, "2.0") == repair.Repaired(whole, frozenset({"net_attr"}))


def test_a_count_of_the_wrong_type_does_not_hide_other_faults() -> None:
    value = table("2.0", 1, 2) | {"rank_count": "2"}
    value["rank_list"][1]["rank_id"] = 0

    assert {one.rule.id for one in validate(value).findings} == {"HCC112", "HCC203"}


@pytest.mark.parametrize("value", [True, -1, 1.5, 1e12, [0], {"a": 0}])
def test_what_is_no_whole_number_is_damage(value: Any) -> None:
    broken = table("1.0", 1, 2)
    broken["server_list"][0]["device"][1]["rank_id"] = value

    found = repaired(broken, "1.0")

    assert found is not None
    assert found.damaged == {"rank_id"}


def test_duplicate_numbers_show_before_they_are_strings() -> None:
    value = table("1.0", 1, 8)
    for device in value["server_list"][0]["device"]:
        device["rank_id"] = 0
    value["server_list"][0]["device"][7]["rank_id"] = 7
    report = validate(value)

    hints = [finding.hint for finding in report.findings if finding.rule.id == "HCC112"]
    assert hints == ['write it as a string: "rank_id": "0"'] * 7 + ['write it as a string: "rank_id": "7"']
    assert [finding.rule.id for finding in report.findings if finding.rule.id == "HCC203"] == ["HCC203"] * 6


def test_damage_beyond_single_values_is_left() -> None:
    value = table("1.0")
    value["server_list"][0]["device"] = "none"

    assert repaired(value, "1.0") is None


@pytest.mark.parametrize(
    ("table_format", "break_it", "also"),
    [
        ("1.0", lambda value: value.update(version=1.0, server_count="9"), {"HCC107", "HCC501"}),
        ("group_list", lambda value: value.update(status=7, group_count="9"), {"HCC105", "HCC511"}),
        ("2.0", lambda value: value["rank_list"][0].update(local_id="0", device_id=70), {"HCC112", "HCC302"}),
    ],
)
def test_one_fault_does_not_hide_another(table_format: str, break_it: Any, also: set[str]) -> None:
    value = table(table_format)
    break_it(value)

    assert {finding.rule.id for finding in validate(value).findings} >= also
