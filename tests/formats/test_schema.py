from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hccl_tools.errors import UsageError
from hccl_tools.formats import MODULES, schema
from hccl_tools.rules.key_names import READ_KEYS
from hccl_tools.rules.registry import all_rules
from tests.support.tables import table


@pytest.mark.parametrize("table_format", MODULES)
def test_published_schema_is_a_schema(table_format: str) -> None:
    Draft202012Validator.check_schema(schema.load(table_format))


@pytest.mark.parametrize("table_format", MODULES)
def test_schema_names_rules_that_exist(table_format: str) -> None:
    named: set[str] = set()

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            for rules in part.get("x-rules", {}).values():
                named.update(rules.values() if isinstance(rules, dict) else [rules])
            for item in part.values():
                collect(item)

    collect(schema.load(table_format))

    assert named <= set(all_rules())


@pytest.mark.parametrize("table_format", MODULES)
def test_schema_holds_no_string_patterns(table_format: str) -> None:
    assert not any(
        f'"{keyword}"' in schema.schema_text(table_format) for keyword in ("pattern", "format", "maxLength")
    )


def test_keys_that_are_read_are_those_of_the_schemas() -> None:
    keys = set()
    for table_format in ("1.0", "1.2", "group_list"):
        parts = [schema.load(table_format), *schema.load(table_format)["$defs"].values()]
        keys |= {key for part in parts for key in part["properties"]}

    assert keys == READ_KEYS


def test_a_wrong_type_says_all() -> None:
    value = table("1.0")
    value["version"] = 1.0

    (found,) = schema.Violations(value, "1.0").kept

    assert (found.path, found.keyword, found.rule_id) == (("version",), "type", "HCC107")


def test_missing_keys_are_named_one_by_one() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][1] = {}

    found = schema.Violations(value, "1.0").kept

    assert [(one.path, one.key) for one in found] == [
        (("server_list", 0, "device", 1), "device_id"),
        (("server_list", 0, "device", 1), "rank_id"),
    ]


def test_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r'unknown format "3\.0"'):
        schema.schema_text("3.0")


def test_violations_are_counted_and_the_first_of_each_rule_kept() -> None:
    value = table("1.0")
    value["server_list"] = [{}] * 1000 + [7] * 500

    found = schema.Violations(value, "1.0", limit=3)

    assert found.counts == {"HCC111": 2000, "HCC112": 500}
    assert [(one.rule_id, one.path) for one in found.kept] == [
        ("HCC111", ("server_list", 0)),
        ("HCC111", ("server_list", 0)),
        ("HCC111", ("server_list", 1)),
        *(("HCC112", ("server_list", index)) for index in (1000, 1001, 1002)),
    ]
