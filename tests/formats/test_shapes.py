"""What ``jsonschema`` says about each shape once is what holds for each value."""

from __future__ import annotations

import copy
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hccl_tools import formats
from hccl_tools.formats import MODULES, schema
from hccl_tools.formats.schema import RULE_OF
from hccl_tools.formats.shapes import Compiled
from hccl_tools.table.format_names import SERVICE
from tests.support import host_files, schema_walk
from tests.support.strategies import damage, damaged_tables, tables
from tests.support.tables import omni_service, super_pod_service, table

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Refused

OTHERS: list[tuple[str, Any]] = [
    ("rootinfo", host_files.root_info()), ("endpoints", host_files.endpoint_file()),
    (SERVICE, table(SERVICE, 2, 4)), (SERVICE, super_pod_service(2, 4)), (SERVICE, omni_service(2, 4)),
]  # fmt: skip


def told(found: Any) -> Any:
    """Return all of some violations, without what the walk does not tell."""
    kept = [(one.path, one.keyword, one.rule_id, one.key, one.hint) for one in found.kept]
    return kept, dict(found.counts), found.keys


def agrees_with_the_walk(value: Any, name: str) -> None:
    for limit in (None, 2):
        assert told(schema.Violations(value, name, limit)) == told(schema_walk.Violations(value, name, limit))


@settings(deadline=None)
@given(st.one_of(tables(), damaged_tables()))
def test_a_table_has_the_violations_that_a_walk_finds_in_their_order(value: Any) -> None:
    for name in {formats.detect(value).format or "1.0", "2.0"}:
        agrees_with_the_walk(value, name)


@settings(deadline=None)
@given(st.sampled_from(OTHERS), st.data())
def test_another_file_has_the_violations_that_a_walk_finds(
    other: tuple[str, Any], data: st.DataObject
) -> None:
    name, value = other
    value = copy.deepcopy(value)
    damage(data.draw, value)
    agrees_with_the_walk(value, name)


SHAPES: st.SearchStrategy[list[Any]] = st.lists(
    st.dictionaries(
        st.sampled_from(["device_id", "rank_id", "device_port", "net_protocol", "x", "device", "server_id"]),
        st.sampled_from(["", 0, None, [], {}, True, 1.5, [{}], [{"rank_id": 0, "device_id": "0"}]]),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(SHAPES, SHAPES)
def test_each_shape_of_an_entry_is_judged_as_itself(servers: list[Any], devices: list[Any]) -> None:
    value = table("1.0")
    value["server_list"] = [*servers, {"server_id": "0", "device": devices}, *servers, devices]
    agrees_with_the_walk(value, "1.0")


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("value", [None, [], {}, 7, "text", True, [[{}]], {"version": []}])
def test_what_is_not_a_table_at_all(value: Any, name: str) -> None:
    agrees_with_the_walk(value, name)


#: Keywords on structure, on values, and on a value as a whole; a definition that contains itself.
RICH: dict[str, Any] = {
    "type": "object",
    "required": ["rows"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "kind": {"enum": ["a", 1, None, [1]]},
        "rows": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/row"}},
        "marks": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "any": True,
        "none": {"type": "object", "properties": {"never": False}},
    },
    "$defs": {
        "row": {
            "type": ["object", "null"],
            "required": ["id", "size"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "size": {"type": "number", "exclusiveMinimum": 0, "maximum": 10},
                "place": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                "inner": {"$ref": "#/$defs/row"},
                "text": {"type": "string"},
            },
        },
        "place": {
            "type": "object",
            "properties": {"host": {"type": "string"}},
            "additionalProperties": False,
        },
    },
}
KEYS = sorted(
    {"name", "kind", "rows", "marks", "any", "none", "never", "id", "size", "place", "inner", "host"}
)
DOCUMENTS = st.recursive(
    st.sampled_from([None, True, False, 0, -1, 1, 1.0, 1.5, 11, "a", "A", "1", ""]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        st.fixed_dictionaries({"rows": st.lists(st.fixed_dictionaries({"id": inner, "size": inner}))}),
        st.fixed_dictionaries({"rows": st.lists(inner, max_size=4), "name": inner}),
    ),
    max_leaves=12,
)


def places(value: Any) -> set[tuple[Path, str]]:
    """Return the place and the keyword of each violation of the rich schema."""
    found: set[tuple[Path, str]] = set()

    def note(path: Path, refused: Refused) -> None:
        found.update(((*path, *one.path), one.keyword) for one in refused.violations)

    JUDGED.judge(value, note)
    return found


JUDGED = Compiled(RICH, RULE_OF)


@settings(deadline=None)
@given(DOCUMENTS)
def test_any_keyword_of_a_schema_is_judged(value: Any) -> None:
    errors = list(Draft202012Validator(RICH).iter_errors(value))
    typed = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    plain = {(tuple(error.absolute_path), str(error.validator)) for error in errors}
    wanted = {(path, keyword) for path, keyword in plain if keyword == "type" or path not in typed}
    # Of the branches of `anyOf` the most likely one speaks, at the place of the value or below it.
    found = places(value)

    assert {one for one in found if "place" not in one[0]} == {one for one in wanted if "place" not in one[0]}
    of_place = [path for path, _ in wanted if "place" in path]
    assert len([path for path, _ in found if "place" in path]) == len(of_place)


def test_a_violated_value_is_named_with_what_is_wanted() -> None:
    value = {"rows": [{"id": 1, "size": 11}, {"id": 1.5, "size": 1, "place": {"host": 5}}]}

    assert places(value) == {
        (("rows", 0, "size"), "maximum"),
        (("rows", 1, "id"), "type"),
        (("rows", 1, "place", "host"), "type"),
    }


def test_a_document_is_not_kept() -> None:
    before = sys.getrefcount(key := "key" + str(id(KEYS)))
    schema.Violations({"server_list": [{key: 1}], "version": key}, "1.0")

    assert sys.getrefcount(key) == before


def test_long_and_nested_values_are_judged_by_their_kind() -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    value = table("1.0", 1, 8)
    for device in value["server_list"][0]["device"]:
        device["rank_id"] = deep
    value["server_list"].append({"device": dict.fromkeys(map(str, range(1000)), deep), "server_id": deep})
    agrees_with_the_walk(value, "1.0")
