from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import repair, schema, validate
from tests.support.tables import table


def repaired(value: Any, table_format: Any) -> repair.Repaired | None:
    return repair.without(value, schema.Violations(value, table_format), table_format)


def test_the_document_itself_stays_as_it_is() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][0]["rank_id"] = 0

    found = repaired(value, "1.0")

    assert found is not None
    assert found.damaged == {"rank_id"}
    assert found.value["server_list"][0]["device"][0]["rank_id"] == "0"
    assert value["server_list"][0]["device"][0]["rank_id"] == 0


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
