"""Misplaced entries with the ranks that others lack, and tables that have only their server_list."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def errors(value: Any) -> list[tuple[str, str]]:
    return [(one.rule.id, one.message) for one in validate(value).errors]


def test_a_server_in_super_pod_list_is_one_error() -> None:
    value: Any = table("1.2", 3, 4)
    value["super_pod_list"].append(value["server_list"].pop(1))

    assert errors(value) == [("HCC521", 'server "10.0.0.2" is in super_pod_list, not in server_list')]


def test_a_server_with_devices_in_a_super_pod_is_one_error() -> None:
    value: Any = table("1.2", 3, 4)
    value["super_pod_list"][0]["server_list"][1] = value["server_list"].pop(1)

    assert [one for one, _ in errors(value)] == ["HCC524"]


def test_a_device_in_super_pod_list_is_one_error() -> None:
    value: Any = table("1.2", 3, 4)
    value["super_pod_list"].append(value["server_list"][1]["device"].pop(0))

    assert [one for one, _ in errors(value)] == ["HCC521"]


def test_another_gap_in_the_ranks_is_reported_beside_it() -> None:
    value: Any = table("1.2", 4, 4)
    value["super_pod_list"].append(value["server_list"].pop(1))
    del value["server_list"][1]

    assert {"HCC521", "HCC202"} <= {one for one, _ in errors(value)}


@pytest.mark.parametrize("table_format", ["1.0", "1.2"])
def test_a_table_that_has_only_its_server_list_is_no_super_pod(table_format: str) -> None:
    value: Any = table(table_format, 3, 4)
    value["server_list"].append({"server_list": [value["server_list"].pop()]})

    assert errors(value) == [("HCC111", "entry 3 of server_list is a whole table")]
