"""Ranks that are missing in the middle of a table: the place is that of the hole, and not the last ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Diagnostic


def lost(table_format: str, servers: int, *without: int) -> Any:
    """Return a table of servers with 8 devices each, without some of them; its count is right."""
    value = table(table_format, servers, 8)
    for index in sorted(without, reverse=True):
        if table_format == "2.0":
            del value["rank_list"][8 * index : 8 * index + 8]
        else:
            del value["server_list"][index]
    left = servers - len(without)
    value.update({"rank_count": 8 * left} if table_format == "2.0" else {"server_count": str(left)})
    return value


def on_ranks(value: Any, product: str | None = None) -> Diagnostic:
    (found,) = [one for one in validate(value, product=product).findings if one.rule.id == "HCC202"]
    return found


def test_a_server_that_is_lost_is_missing_between_its_neighbours() -> None:
    found = on_ranks(lost("1.0", 64, 36))

    assert found.message == (
        'ranks 288-295 are missing between server 36 ("10.0.0.36", ranks 280-287) and '
        'server 37 ("10.0.0.38", ranks 296-303)'
    )
    assert found.path == ("server_list", 36, "device", 0, "rank_id")
    assert found.hint == (
        'if the server with ranks 288-295 was lost, add it again there with "server_count": "64"; '
        "if it was removed on purpose, number the ranks from 288 on again: 288-503"
    )


def test_a_node_that_is_lost_is_missing_between_its_neighbours() -> None:
    found = on_ranks(lost("2.0", 6, 2))

    assert found.message == (
        'ranks 16-23 are missing between node "node1" (ranks 8-15) and node "node3" (ranks 24-31)'
    )
    assert found.path == ("rank_list", 16, "rank_id")
    assert '"rank_count": 48' in (found.hint or "")


def test_rank_count_says_where_the_node_is_missing() -> None:
    value = {**lost("2.0", 6, 2), "rank_count": 48}

    (found,) = validate(value).errors

    assert found.rule.id == "HCC204"
    assert found.message.endswith('between node "node1" (ranks 8-15) and node "node3" (ranks 24-31)')
    assert [one.path for one in found.related] == [("rank_list", 16, "rank_id")]


@pytest.mark.parametrize("without", [(2, 3), (2, 4), (1, 3)])
def test_several_servers_can_be_lost(without: tuple[int, ...]) -> None:
    found = on_ranks(lost("1.0", 8, *without))

    assert found.message.count(" between ") == (1 if without == (2, 3) else 2)
    assert found.path == ("server_list", without[0], "device", 0, "rank_id")
    assert (found.hint or "").startswith("if the 2 servers with ranks ")
    assert 'add them again there with "server_count": "8"' in (found.hint or "")


def test_the_added_servers_make_the_table_sound() -> None:
    value, whole = lost("1.0", 8, 2, 3), table("1.0", 8, 8)
    value["server_list"][2:2] = whole["server_list"][2:4]
    value["server_count"] = "8"

    assert not validate(value).errors


@pytest.mark.parametrize("table_format", ["1.0", "2.0"])
def test_a_device_that_is_lost_is_missing_between_its_neighbours(table_format: str) -> None:
    value = table(table_format, 1, 8)
    own = value["rank_list"] if table_format == "2.0" else value["server_list"][0]["device"]
    del own[3]
    if table_format == "2.0":
        value["rank_count"] = 7
    name = 'node "node0"' if table_format == "2.0" else 'server 1 ("10.0.0.1")'

    found = on_ranks(value, "a5" if table_format == "2.0" else "a2")

    assert found.message == f"rank 3 is missing between device 2 (rank 2) and device 4 (rank 4) of {name}"
    assert found.path[-2:] == (3, "rank_id")


def test_a_device_at_the_end_of_a_node_is_missing_between_two_nodes() -> None:
    value = table("2.0", 4, 8)
    del value["rank_list"][15]

    found = on_ranks(value)

    assert found.message == (
        'rank 15 is missing between rank 14, device 6 of node "node1", and rank 16, device 0 of node "node2"'
    )
    assert found.path == ("rank_list", 15, "rank_id")


@pytest.mark.parametrize("ranks", [["0", "1", "2", "70"], ["0", "2", "1", "4"], ["3", "2", "1", "4"]])
def test_other_ranks_that_are_too_high_stay_the_place(ranks: list[str]) -> None:
    value = table("1.0", 1, 4)
    for device, rank in zip(value["server_list"][0]["device"], ranks, strict=True):
        device["rank_id"] = rank

    assert "between" not in on_ranks(value).message


def test_ranks_that_start_above_0_are_shown_at_the_first() -> None:
    value = table("1.0", 8, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["rank_id"] = str(int(device["rank_id"]) + 1)

    assert on_ranks(value).path == ("server_list", 0, "device", 0, "rank_id")


def test_the_counts_of_a_group_name_the_instance_that_the_row_lacks() -> None:
    value = table("group_list", 6, 8)
    del value["group_list"][0]["instance_list"][2]

    found = validate(value).errors

    assert {one.rule.id for one in found} == {"HCC512"}
    assert all(
        one.message.endswith(
            '1 instance is missing, probably that of "10.0.0.3" between "10.0.0.2" and "10.0.0.4"'
        )
        for one in found
    )
    assert {one.path for first in found for one in first.related} == {
        ("group_list", 0, "instance_list", 2, "server_id")
    }


def test_no_instance_is_named_if_the_row_lacks_none() -> None:
    value = table("group_list", 6, 8)
    del value["group_list"][0]["instance_list"][5]

    assert all("probably" not in one.message for one in validate(value).errors)


def test_a_server_of_an_instance_of_a_service_table_can_be_lost() -> None:
    value = table("server_group_list", 4, 8)
    group = value["server_group_list"][2]
    del group["server_list"][1]
    group["server_count"] = "3"

    (found,) = [one for one in validate(value).findings if one.rule.id == "HCC655"]

    assert found.path == ("server_group_list", 2, "server_list", 1, "device", 0, "rank_id")
    assert found.hint == (
        "if the server with ranks 8-15 was lost, add it again before this one; else number the devices of "
        "the instance from 0"
    )
