from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hccl_tools import schema
from hccl_tools.errors import UsageError
from hccl_tools.rules.registry import all_rules
from hccl_tools.rules.spelling import READ_KEYS
from tests.support.tables import table


@pytest.mark.parametrize("table_format", schema.NAMES)
def test_published_schema_is_a_schema(table_format: str) -> None:
    Draft202012Validator.check_schema(schema.load(table_format))


@pytest.mark.parametrize("table_format", schema.NAMES)
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


@pytest.mark.parametrize("table_format", schema.NAMES)
def test_schema_holds_no_string_patterns(table_format: str) -> None:
    assert not any(
        f'"{keyword}"' in schema.text(table_format) for keyword in ("pattern", "format", "maxLength")
    )


def test_keys_that_are_read_are_those_of_the_schemas() -> None:
    keys = set()
    for table_format in ("1.0", "1.2", "group_list"):
        parts = [schema.load(table_format), *schema.load(table_format)["$defs"].values()]
        keys |= {key for part in parts for key in part["properties"]}

    assert keys == READ_KEYS


@pytest.mark.parametrize("engine", ["jsonschema", "jsonschema-rs"])
def test_a_wrong_type_says_all(engine: str) -> None:
    value = table("1.0")
    value["version"] = 1.0

    (found,) = schema.violations(value, "1.0", engine=engine)

    assert (found.path, found.keyword, found.rule_id) == (("version",), "type", "HCC107")


def test_missing_keys_are_named_one_by_one() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][1] = {}

    found = schema.violations(value, "1.0")

    assert [(one.path, one.key) for one in found] == [
        (("server_list", 0, "device", 1), "device_id"),
        (("server_list", 0, "device", 1), "rank_id"),
    ]


def test_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r'no format "3\.0"'):
        schema.text("3.0")
