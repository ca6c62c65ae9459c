"""A server that lists all devices of a machine and one more gets the entry named that is too much."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def numbered(value: Any) -> Any:
    """Return a table with the ranks numbered again, and with the number of its servers."""
    devices = [device for server in value["server_list"] for device in server["device"]]
    for rank, device in enumerate(devices):
        device["rank_id"] = str(rank)
    value["server_count"] = str(len(value["server_list"]))
    return value


def with_entry(servers: int, index: int, device: str, address: str) -> Any:
    value = table("1.0", servers, 8)
    value["server_list"][index]["device"].append({"device_id": device, "device_ip": address, "rank_id": ""})
    return numbered(value)


def hints(value: Any, product: str) -> dict[str, str]:
    return {one.rule.id: one.hint or "" for one in validate(value, product=product).findings}


@pytest.mark.parametrize(("product", "rules"), [("a2", {"HCC639"}), ("910a", {"HCC302"})])
def test_a_ninth_device_is_removed_and_not_added_to_the_others(product: str, rules: set[str]) -> None:
    found = hints(with_entry(2, 1, "8", "192.168.1.108"), product)

    assert found.keys() == rules
    for rule in rules:
        assert found[rule].startswith(
            "remove the entry of device 8; the other ranks are then right; server_count stays"
        )


def test_the_ranks_behind_a_ninth_device_are_numbered_again() -> None:
    found = hints(with_entry(3, 0, "8", "192.168.0.108"), "910a")

    assert found["HCC302"].startswith(
        "remove the entry of device 8, and number the ranks 0 to 23 without a gap; server_count stays"
    )


def test_the_pasted_entry_of_another_server_is_one_finding() -> None:
    value = table("1.0", 3, 8)
    value["server_list"][1]["device"].append(dict(value["server_list"][2]["device"][3]))
    (found,) = validate(value, product="a2").findings

    which = 'remove the entry of device 3 with "192.168.2.103", which server 3 ("10.0.0.3") lists itself'
    assert (found.rule.id, found.hint) == (
        "HCC404",
        f"{which}; the other ranks are then right; server_count stays",
    )


def test_an_entry_that_another_server_lacks_is_moved_there() -> None:
    value = table("1.0", 3, 8)
    value["server_list"][1]["device"].append(value["server_list"][2]["device"].pop(3))

    assert hints(numbered(value), "a2") == {
        "HCC303": 'move the entry of device 3 with "192.168.2.103" to the list of server 3 ("10.0.0.3"), '
        "which lacks it, and number the ranks server by server, 0 to 23"
    }


def test_a_count_of_one_server_more_leaves_both_ways_open() -> None:
    value = with_entry(2, 1, "8", "192.168.7.100")
    value["server_count"] = "3"

    hint = hints(value, "910a")["HCC302"]
    assert "if the entry is of this server, add the server with all its devices instead" in hint


@pytest.mark.parametrize(("servers", "devices"), [(1, 8), (2, 8), (1, 16), (2, 16)])
def test_whole_machines_are_silent(servers: int, devices: int) -> None:
    assert hints(table("1.0", servers, devices), "a2") == {}


def test_nine_devices_of_a_machine_with_sixteen_are_no_entry_too_many() -> None:
    value = table("1.0", 2, 16)
    del value["server_list"][1]["device"][9:]

    assert "remove" not in hints(numbered(value), "a2")["HCC639"]


# A copied entry with the next device_id: one finding, whatever else it has of the other entry


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize(
    ("own", "rule"),
    [
        ({}, "HCC404"),
        ({"rank_id": "8"}, "HCC404"),
        ({"device_ip": "192.168.0.108"}, "HCC203"),
    ],
)
def test_a_copied_entry_with_the_next_device_id_is_named_as_the_one_too_many(
    servers: int, own: dict[str, str], rule: str
) -> None:
    value = table("1.0", servers, 8)
    devices = value["server_list"][0]["device"]
    devices.append({**devices[7], "device_id": "8", **own})

    for product, expected in (("a2", rule), ("910a", "HCC302")):
        (found,) = validate(value, product=product).findings

        assert found.rule.id == expected
        assert (found.hint or "").startswith("remove the entry of device 8; the other ranks are then right")
    devices.pop()
    assert validate(value, product="a2").findings == ()


def test_the_address_of_a_ninth_device_is_not_to_be_corrected_on_an_a3() -> None:
    value = table("1.2", 2, 16)
    devices = value["server_list"][0]["device"]
    devices.append({**devices[15], "device_id": "16", "rank_id": "16"})

    assert hints(value, "a3").keys() == {"HCC302"}


def test_an_entry_that_repeats_a_device_does_not_make_the_others_too_few() -> None:
    value = table("1.0", 2, 8)
    devices = value["server_list"][1]["device"]
    devices.append({**devices[7], "rank_id": "16"})

    assert hints(value, "910a") == {"HCC404": "remove it, and number the ranks without a gap"}
