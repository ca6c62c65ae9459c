from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from hccl_tools import formats
from hccl_tools.formats import StructureError, schema
from hccl_tools.table.hccl_numbers import NULL
from hccl_tools.validation.checker import validate
from tests.support import schema_engines
from tests.support.strategies import damaged_tables, tables
from tests.support.tables import table


def written(value: Any) -> Any:
    return json.loads("".join(formats.write(formats.read(value))))


@given(tables())
def test_a_table_comes_back_as_it_was(value: Any) -> None:
    once = formats.read(value)

    assert formats.read(written(value)) == once


@given(tables())
def test_what_is_written_has_no_finding(value: Any) -> None:
    assert validate(written(value)).findings == ()


@given(damaged_tables())
def test_reader_refuses_exactly_what_the_schema_refuses(value: Any) -> None:
    found = formats.detect(value).format
    if found is None:
        return
    violations = schema.Violations(value, found).kept
    try:
        formats.read(value, found)
    except StructureError:
        assert violations
    else:
        assert violations == []


@settings(deadline=None)  # the first example loads the engines
@given(damaged_tables())
def test_general_validators_find_the_same(value: Any) -> None:
    found = formats.detect(value).format
    if found is not None:
        # The other engines do not tell what is wanted.
        kept = [one._replace(wanted=None) for one in schema.Violations(value, found).kept]
        own = schema_engines.in_order(kept)

        for engine in schema_engines.ENGINES:
            assert own == schema_engines.violations(value, found, engine)


def test_1_0_is_written_as_users_know_it() -> None:
    assert "".join(formats.write(formats.read(table("1.0", 1, 1)))) == (
        '{\n    "version": "1.0",\n    "server_count": "1",\n    "server_list": [\n        {\n'
        '            "server_id": "10.0.0.1",\n            "device": [\n                {\n'
        '                    "device_id": "0",\n                    "device_ip": "192.168.0.100",\n'
        '                    "rank_id": "0"\n                }\n            ],\n'
        '            "host_nic_ip": "reserve"\n        }\n    ],\n    "status": "completed"\n}\n'
    )


def test_unknown_keys_survive() -> None:
    value = table("1.0")
    value["IsMindIEEPJob"] = True
    value["server_list"][0]["container_ip"] = "10.0.0.9"
    value["server_list"][0]["device"][1]["device_logical_id"] = None

    back = written(value)

    assert back["IsMindIEEPJob"] is True
    assert back["server_list"][0]["container_ip"] == "10.0.0.9"
    assert back["server_list"][0]["device"][1]["device_logical_id"] is None
    assert "device_logical_id" not in back["server_list"][0]["device"][0]


def test_null_is_not_absent() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][0]["device_ip"] = None
    del value["server_list"][0]["device"][1]["device_ip"]

    assert formats.read(value).device_ips == [NULL, None]


def test_group_list_is_numbered_as_hccl_does() -> None:
    value = table("group_list", 2, 2)
    value["group_list"][0]["instance_list"][0]["server_id"] = "node_2"
    value["group_list"][0]["instance_list"][1]["server_id"] = "node_10"

    read = formats.read(value)

    assert read.rank_numbers == [2, 3, 0, 1]


def test_servers_of_2_0_are_its_nodes() -> None:
    read = formats.read(table("2.0", 2, 4))

    assert [(server.server_id, list(server.rows)) for server in read.servers] == [
        ("node0", [0, 1, 2, 3]),
        ("node1", [4, 5, 6, 7]),
    ]


@pytest.mark.parametrize(
    ("value", "table_format", "reason"),
    [
        (table("1.0"), "1.0", 'version is "1.0"'),
        (table("1.2"), "1.2", 'version is "1.2"'),
        (table("2.0"), "2.0", 'version is "2.0"'),
        (table("group_list"), "group_list", "the file has group_list and no version"),
        ({"server_list": []}, "1.0", "no version, but the file has server_list"),
        ({"version": 1.0, "rank_list": []}, "2.0", "version is not a string, but the file has rank_list"),
        ([], None, "it is a list, not an object"),
        ("text", None, "it is a string, not an object"),
        (None, None, "it is null, not an object"),
        (7, None, "it is a number, not an object"),
        ({}, None, "it is empty, and none of server_list, group_list, rank_list"),
        ({"a": 1}, None, 'it has "a", and none of server_list, group_list, rank_list'),
        (
            {"version": "1.0", "server_group_list": []},
            None,
            "it is a MindIE service table (server_group_list); HCCL does not read it",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap"},
            None,
            "it is a Kubernetes object",
        ),
    ],
)
def test_detection_says_why(value: Any, table_format: str | None, reason: str) -> None:
    found = formats.detect(value)

    assert (found.format, found.reason) == (table_format, reason)
