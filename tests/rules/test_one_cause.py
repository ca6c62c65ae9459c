"""Damages that several rules see: the cause leads, and the remedies do not contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable


def found(value: Any, product: str = "a2") -> dict[str, tuple[str, str]]:
    """Return message and hint of the first finding of each rule."""
    rules: dict[str, tuple[str, str]] = {}
    for one in validate(value, product=product).findings:
        rules.setdefault(one.rule.id, (one.message, one.hint or ""))
    return rules


# A number that HCCL reads as another one


@pytest.mark.parametrize(
    ("text", "number", "hint"),
    [
        ("2x", 2, "by the order of the others"),
        ("01", 1, "by the order of the others"),
        ("1 3", 1, "by the order of the others"),
        ("0x3", 0, 'write "3", the decimal number'),
    ],
)
def test_a_rank_that_is_read_as_another_one_is_one_finding(text: str, number: int, hint: str) -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][3]["rank_id"] = text

    rules = found(value)

    assert rules.keys() == {"HCC203"}
    assert rules["HCC203"][0] == f'rank id "{text}", read as {number}, is used by two devices'
    assert hint in rules["HCC203"][1]


def test_the_entry_with_other_signs_is_the_wrong_one_of_two_devices() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][2]["device_id"] = "1 2"

    rules = found(value)

    assert rules.keys() == {"HCC303"}
    assert rules["HCC303"][0].endswith('device 2 not at all: "1 2" is read as 1')


# A misspelt key beside the right one


@pytest.mark.parametrize(
    ("key", "own", "hint"),
    [
        ("rank_ids", "3", 'if its value "3" is the right one, write it in place of "2" in "rank_id"'),
        ("rank_ids", "2", "with the same value: delete this key"),
    ],
)
def test_a_misspelt_key_beside_the_right_one_is_not_to_be_renamed(key: str, own: str, hint: str) -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][3].update({key: own, "rank_id": "2"})

    rules = found(value)

    assert rules["HCC604"][1].startswith('"rank_id" is there, too')
    assert hint in rules["HCC604"][1]


# An entry in another place


def under_another_key(value: Any) -> None:
    devices = value["server_list"][1]["device"]
    value["server_list"][1]["Device"] = [devices.pop(3)]


def beside_server_list(value: Any) -> None:
    value["device"] = [value["server_list"][1]["device"].pop(3)]


def in_another_device(value: Any) -> None:
    devices = value["server_list"][1]["device"]
    devices[2]["device"] = [devices.pop(3)]


@pytest.mark.parametrize("product", ["a2", "910a"])
@pytest.mark.parametrize(
    ("move", "where"),
    [
        (under_another_key, 'under the key "Device" of server 2'),
        (beside_server_list, 'under the key "device", beside server_list'),
        (in_another_device, 'inside the entry of another device, under "device"'),
    ],
)
def test_an_entry_in_another_place_is_to_be_moved_and_not_written_again(
    move: Callable[[Any], None], where: str, product: str
) -> None:
    value = table("1.0", 2, 8)
    move(value)

    rules = found(value, product)

    assert "HCC202" in rules
    for rule in rules.keys() & {"HCC202", "HCC304", "HCC306"}:
        assert rules[rule][1].startswith(
            f"the entry of device 3 is {where}, where HCCL does not read it: move it into the "
            '"device" list of server 2 ("10.0.0.2")'
        )
        assert "number the ranks" not in rules[rule][1]


def test_a_half_of_a_list_under_a_misspelt_key_is_found_where_the_table_is_accepted() -> None:
    value = table("1.0", 2, 8)
    devices = value["server_list"][1]["device"]
    value["server_list"][1].update(device=devices[:4], Device=devices[4:])

    rules = found(value)

    assert rules.keys() == {"HCC604", "HCC639"}
    assert "move the entries of this list into it" in rules["HCC604"][1]
    assert "are under the key" in rules["HCC639"][1]


def test_the_ranks_are_numbered_again_if_they_went_on_without_the_entry() -> None:
    value = table("1.0", 2, 8)
    under_another_key(value)
    for rank, device in enumerate(each for server in value["server_list"] for each in server["device"]):
        device["rank_id"] = str(rank)

    assert found(value)["HCC639"][1].endswith(", and number the ranks 0 to 15 without a gap")


def test_a_device_in_server_list_is_one_finding() -> None:
    value = table("1.0", 2, 8)
    value["server_list"].append(value["server_list"][0]["device"].pop(3))

    ((rule, (message, hint)),) = found(value).items()

    assert (rule, message) == ("HCC111", 'device 3 is in server_list, not in the "device" list of a server')
    assert hint == 'move it into the "device" list of server "10.0.0.1", which does not list it'


def test_entries_at_the_beginning_of_the_next_server_are_moved_back() -> None:
    value = table("1.0", 2, 8)
    first, second = (server["device"] for server in value["server_list"])
    second[:0] = first[4:]
    del first[4:]

    for product in ("a2", "910a"):
        rules = found(value, product)

        assert rules.keys() == {"HCC303"}
        assert rules["HCC303"][1] == 'move the entry to the list of server "10.0.0.1"'


# Lost devices


def test_lost_devices_of_one_server_are_named_together_by_each_rule() -> None:
    value = table("1.0", 2, 8)
    devices = value["server_list"][0]["device"]
    value["server_list"][0]["device"] = [devices[number] for number in (0, 2, 4, 5)]

    rules = found(value, "910a")

    assert "has no devices 1,3,6,7: add them with ranks 1, 3, 6-7" in rules["HCC202"][1]
    for rule in ("HCC305", "HCC306"):
        assert rules[rule][1].startswith("add devices 1,3,6,7 ")


def test_a_gap_is_not_filled_to_a_number_of_devices_that_is_refused() -> None:
    value = table("1.0", 1, 4)
    value["server_list"][0]["device"][3].update(device_id="4", rank_id="4")

    rules = found(value, "910a")

    assert "add" not in rules["HCC202"][1]
    assert rules["HCC305"][1].startswith("use devices 0-3 or 4-7")
