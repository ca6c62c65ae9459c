"""Invalid super_pod_list values, and how HCCL reads them."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table


@pytest.mark.parametrize(
    "entries", [None, False, True, 0, 1.5, "", "x", {}, {"a": 1}, [], [None], [[]], ["x"]], ids=repr
)
@pytest.mark.parametrize(
    ("product", "verdict"), [("a3", "refused"), ("a3-server", "accepted"), ("a2", "accepted")]
)
def test_a_list_that_is_none_is_refused_where_it_is_read(entries: Any, product: str, verdict: str) -> None:
    report = validate({**table("1.2", 1, 2), "super_pod_list": entries}, product=product)

    assert report.verdict == verdict
    assert ("HCC521" in {finding.rule.id for finding in report.findings}) == (verdict == "refused")


def test_a_server_without_a_super_pod_does_not_part_those_of_another() -> None:
    value = table("1.2", 3, 2)
    del value["super_pod_list"][0]["server_list"][1]

    found = {finding.rule.id for finding in validate(value, product="a3").findings}

    assert "HCC525" in found
    assert "HCC529" not in found


def test_servers_of_a_super_pod_that_was_deleted_need_an_entry_of_their_own() -> None:
    value = table("1.2", 4, 8, pods=2)
    del value["super_pod_list"][1]

    found = validate(value, product="a3").findings

    assert [one.rule.id for one in found] == ["HCC525", "HCC525"]
    for one, name in zip(found, ("10.0.0.3", "10.0.0.4"), strict=True):
        assert (one.hint or "").startswith(
            f'add {{"server_id": "{name}"}} to the server_list of its super pod'
        )
        assert (one.hint or "").endswith('such as {"super_pod_id": "1", "server_list": [...]}')
    assert found[0].alike == found[1].alike


@pytest.mark.parametrize("place", [0, 1])
def test_the_server_that_is_in_no_super_pod_is_named_beside_the_one_that_is_twice(place: int) -> None:
    value = table("1.2", 4, 8, 2)
    listed = value["super_pod_list"][1]["server_list"]
    listed[place]["server_id"] = "10.0.0.2" if place == 0 else "10.0.0.3"

    (found,) = validate(value, product="a3").findings

    assert found.rule.id == "HCC525"
    assert f'server "10.0.0.{3 + place}" is not in any super pod' in found.message
    assert f'"10.0.0.{3 + place}" in place of' in (found.hint or "")


def test_a_super_device_id_that_is_read_wrong_and_so_used_twice_is_written_in_decimal() -> None:
    value = table("1.2", 2, 8)
    value["server_list"][0]["device"][3]["super_device_id"] = "0x3"

    (found,) = [one for one in validate(value, product="a3").findings if one.rule.id == "HCC528"]

    assert (found.message, found.hint) == (
        'super_device_id "0x3", read as "0", is used twice in super pod "0"',
        "write the decimal numbers: 0x3 is 3",
    )
