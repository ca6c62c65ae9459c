"""The groups of two tables in one group_list: one finding, whose remedy makes a table that is accepted."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table


def joined(size: int = 1, *, count: str = "1", name: str = "g0", again: bool = False) -> Any:
    """Return a table with the groups of two tables, each with so many instances."""
    value = table("group_list", 2 * size, 8)
    (group,) = value["group_list"]
    other = copy.deepcopy(group)
    group["instance_list"] = group["instance_list"][:size]
    other["instance_list"] = copy.deepcopy(group["instance_list"]) if again else other["instance_list"][size:]
    for one in (group, other):
        one.update(instance_count=str(size), device_count=str(8 * size))
    other["group_name"] = name
    value.update(group_list=[group, other], group_count=count)
    return value


def found(value: Any) -> list[tuple[str, str]]:
    return [(one.rule.id, one.hint or "") for one in validate(value, product="910a").findings]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("count", "rule"), [("1", "HCC511"), ("2", "HCC513")])
def test_the_groups_of_two_tables_become_one(size: int, count: str, rule: str) -> None:
    value = joined(size, count=count)
    change = "" if count == "1" else ', and write "group_count": "1"'

    ((own, hint),) = found(value)

    assert own == rule
    assert hint == (
        "move the instances of all groups into the instance_list of the first one, "
        f'with "instance_count": "{2 * size}" and "device_count": "{16 * size}", and remove the '
        f"other groups{change}"
    )
    first, second = value["group_list"]
    first["instance_list"] += second["instance_list"]
    first.update(instance_count=str(2 * size), device_count=str(16 * size))
    value.update(group_list=[first], group_count="1")
    assert found(value) == []


@pytest.mark.parametrize(("count", "rule"), [("1", "HCC511"), ("2", "HCC513")])
@pytest.mark.parametrize("size", [1, 2])
def test_a_table_that_was_joined_with_itself_loses_its_second_group(size: int, count: str, rule: str) -> None:
    value = joined(size, count=count, again=True)

    ((own, hint),) = found(value)

    assert own == rule
    assert hint.startswith("remove the second group, which lists the instances of the first again")
    value["group_list"].pop()
    value["group_count"] = "1"
    assert found(value) == []


def test_groups_with_names_of_their_own_are_not_joined() -> None:
    assert {rule for rule, _ in found(joined(1, count="2", name="g1"))} == {"HCC410"}
    assert found(joined(2, count="1", name="g1")) == [("HCC511", 'write "group_count": "2"')]
