"""The commonest damages of rank ids get the sentence that solves them."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def renumbered(ranks: list[int], servers: int = 2) -> list[tuple[str, str, str]]:
    """Number the devices of a table of 8 devices a server; return the rank findings."""
    value = table("1.0", servers, 8)
    devices = [device for server in value["server_list"] for device in server["device"]]
    for device, rank in zip(devices, ranks, strict=True):
        device["rank_id"] = str(rank)
    return found_in(value)


def found_in(value: Any) -> list[tuple[str, str, str]]:
    report = validate(value)
    return [
        (one.rule.id, one.message, one.hint or "") for one in report.findings if one.rule.id[:4] == "HCC2"
    ]


def test_servers_that_start_at_rank_0_again_are_one_finding_each() -> None:
    found = renumbered([*range(8)] * 3, servers=3)

    assert [rule for rule, _, _ in found] == ["HCC203", "HCC203"]
    assert found[0][1] == 'server "10.0.0.2" starts at rank 0 again (8 ranks)'
    assert found[0][2].startswith("continue the rank numbers with 8, or ")
    assert "`hccl-tools merge`" in found[0][2]
    assert found[1][1] == 'server "10.0.0.3" starts at rank 0 again (8 ranks)'
    assert found[1][2].startswith("continue the rank numbers with 16, or ")


def test_many_servers_that_start_at_rank_0_again_are_told_once() -> None:
    value = table("1.0", 20, 8)
    for server in value["server_list"]:
        for rank, device in enumerate(server["device"]):
            device["rank_id"] = str(rank)

    said = {one.alike for one in validate(value).findings}

    assert len(said) == 1
    message, hint = said.pop() or ("", "")
    assert message.startswith("the ranks start at 0 again in 19 servers (8 ranks each)")
    assert "here with 8, at the next place with 16, and so on" in hint


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (1, 'rank ids of server "10.0.0.2" are used by two devices'),
        (0, 'rank ids of server "10.0.0.2" are used by devices of server "10.0.0.1", too'),
    ],
)
def test_several_ranks_that_are_used_twice_are_told_by_their_servers(source: int, message: str) -> None:
    value = table("1.0", 2, 8)
    second = value["server_list"][1]["device"]
    for place in range(1, 8, 2):
        of_other = value["server_list"][source]["device"][place - 1]
        second[place]["rank_id"] = of_other["rank_id"]

    told = {one.alike[0] for one in validate(value).findings if one.rule.id == "HCC203" and one.alike}

    assert told == {message}


def test_ranks_that_each_server_counts_from_1_are_named_as_such() -> None:
    ((rule, message, hint),) = renumbered([*range(1, 9)] * 2)

    assert (rule, message) == ("HCC203", 'server "10.0.0.2" starts at rank 1 again (8 ranks)')
    assert hint.endswith("write those at the beginning lower by 1, and continue here with 8")
    assert "merge" not in hint
    ((rule, message, _),) = renumbered([*range(1, 17)])
    assert (rule, message) == ("HCC202", "no device has rank 0: the ranks start at 1")


def test_following_the_hint_leaves_no_finding() -> None:
    assert renumbered([*range(8), *range(8), *range(16, 24)], servers=3)
    assert renumbered([*range(24)], servers=3) == []


def test_a_server_with_one_wrong_rank_does_not_start_again() -> None:
    found = renumbered([*range(8), *range(7), 15])

    assert [message for _, message, _ in found] == [f'rank id "{n}" is used by two devices' for n in range(7)]
    assert found[0][2].endswith(
        'by the order of the others, devices 0-6 of server 2 ("10.0.0.2") have ranks 8-14'
    )


@pytest.mark.parametrize(
    ("wrong", "place", "hint"),
    [
        ({1: 2}, 1, "device 1 of {1} has rank 1"),
        ({11: 20}, 11, "device 3 of {2} has rank 11"),
        ({11: 41}, 11, "device 3 of {2} has rank 11"),
        ({11: 41, 19: 9}, 11, "device 3 of {2} has rank 11, device 3 of {3} has rank 19"),
        ({row: row + 1 for row in range(8, 16)}, 15, "devices 0-7 of {2} have ranks 8-15"),
        ({row: row + 1 for row in range(16, 24)}, 23, "devices 0-7 of {3} have ranks 16-23"),
        (dict.fromkeys(range(8, 16), 8), 9, "devices 1-7 of {2} have ranks 9-15"),
    ],
)
def test_the_wrong_one_of_two_ranks_is_named_by_the_order_of_the_others(
    wrong: dict[int, int], place: int, hint: str
) -> None:
    value = table("1.0", 3, 8)
    devices = [device for server in value["server_list"] for device in server["device"]]
    for row, rank in wrong.items():
        devices[row]["rank_id"] = str(rank)

    first = validate(value).findings[0]

    names = [f'server {number} ("10.0.0.{number}")' for number in range(4)]
    assert first.path == ("server_list", place // 8, "device", place % 8, "rank_id")
    assert (first.hint or "").endswith(f"by the order of the others, {hint.format(*names)}")


def test_ranks_that_are_too_high_from_a_server_on_are_moved_together() -> None:
    found = renumbered([*range(8), *range(9, 25)], servers=3)

    assert [hint.partition(": ") for _, _, hint in found] == [
        (
            'the ranks from device 0 of server 2 ("10.0.0.2") on are each too high by 1',
            ": ",
            "by the order of the others they are 8-23",
        )
    ]


def test_ranks_without_an_order_are_not_named() -> None:
    found = renumbered([3, 0, 2, 1, 7, 5, 4, 6, 11, 8, 9, 15, 13, 12, 10, 10])

    assert [hint for _, _, hint in found] == [
        "give every device its own rank id, 0 to N-1: no device has rank 14"
    ]


def test_ranks_that_start_at_1_are_one_finding() -> None:
    assert renumbered([*range(1, 9)], servers=1) == [
        (
            "HCC202",
            "no device has rank 0: the ranks start at 1",
            "number the ranks 0 to 7: each rank id is too high by 1",
        )
    ]


@pytest.mark.parametrize(
    ("ranks", "absent"),
    [
        ([*range(11), *range(12, 17)], "rank 11"),
        ([*range(1, 16), 17], "rank 0"),
        ([*range(14), 16, 17], "ranks 14, 15"),
    ],
)
def test_a_gap_is_named(ranks: list[int], absent: str) -> None:
    found = renumbered(ranks)

    assert {rule for rule, _, _ in found} == {"HCC202"}
    assert all(
        message.endswith(f"is too high for 16 ranks: no device has {absent}") for _, message, _ in found
    )


def test_a_2_0_table_names_its_missing_rank() -> None:
    value = table("2.0", 1, 8)
    value["rank_list"][3]["rank_id"] = 9

    assert found_in(value)[0][1] == "rank id 9 is too high for 8 ranks: no device has rank 3"


@pytest.mark.parametrize(("order", "found"), [((0, 2, 3), False), ((0, 3, 2), True)])
def test_a_sorted_list_that_lacks_a_rank_need_not_be_sorted(order: tuple[int, ...], found: bool) -> None:
    value = table("2.0", 1, 4)
    value["rank_list"] = [value["rank_list"][number] for number in order]
    value["rank_count"] = 3

    ids = {finding.rule.id for finding in validate(value).findings}

    assert ("HCC333" in ids) == found
