"""Messages that name a plain cause, without its consequences, in few words."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def found(value: Any, product: str) -> list[tuple[str, str, str]]:
    return [(one.rule.id, one.message, one.hint or "") for one in validate(value, product=product).findings]


@pytest.mark.parametrize("product", ["910a", "a2"])
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("lost", [[5], [0, 1, 2], [*range(8)]])
def test_devices_without_an_address_are_one_cause(product: str, servers: int, lost: list[int]) -> None:
    value = table("1.0", servers, 8)
    for device in lost:
        del value["server_list"][-1]["device"][device]["device_ip"]

    assert {rule for rule, _, _ in found(value, product)} == {"HCC401"}


def test_an_address_that_is_lost_is_added_and_no_other_is_removed() -> None:
    value = table("1.0", 1, 8)
    del value["server_list"][0]["device"][5]["device_ip"]

    ((_, _, hint),) = found(value, "910a")

    assert hint == "add the address: `hccn_tool -i 5 -ip -g` on 10.0.0.1 shows the address of device 5"


@pytest.mark.parametrize(("text", "letter"), [("2O", "O"), ("1o", "o"), ("l2", "l"), ("O", "O")])
def test_a_letter_in_a_rank_is_named(text: str, letter: str) -> None:
    value = table("1.0", 4, 8)
    value["server_list"][2]["device"][4]["rank_id"] = text

    ((_, message, hint),) = found(value, "910a")

    assert f'"{text}" (with the letter "{letter}" in place of a digit)' in message
    assert "20" in hint


def test_a_letter_in_a_device_id_is_named() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][0]["device_id"] = "O"

    ((_, message, hint),) = found(value, "910a")

    assert '"O" (with the letter "O" in place of a digit)' in message
    assert '"0"' in hint


def test_a_spare_takes_the_place_of_the_server_that_it_replaces() -> None:
    value = table("1.0", 4, 8)
    spare = deepcopy(value["server_list"][1])
    spare["server_id"] = "10.0.0.5"
    for device in spare["device"]:
        device["device_ip"] = device["device_ip"].replace(".1.", ".4.")
    value["server_list"].append(spare)

    (_, _, hint) = found({**value, "server_count": "5"}, "910a")[0]

    assert 'remove that server, put this entry in its place, and write "server_count": "4"' in hint
    value["server_list"][1] = value["server_list"].pop()
    assert "HCC610" not in {rule for rule, _, _ in found(value, "910a")}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0/0", ("0/0",)),
        ("0/0,0/1", ("0/0", "0/1")),
        ("0/0 0/1", None),
        ("", None),
        ("eth0", None),
        ("[0/0]", None),
    ],
)
def test_a_port_that_is_a_string_is_corrected_if_it_is_certain(
    text: str, right: tuple[str, ...] | None
) -> None:
    value = table("2.0", 2, 8)
    value["rank_list"][3]["level_list"][0]["rank_addr_list"][0]["ports"] = text

    (one,) = validate(value).findings

    assert one.rule.id == "HCC112"
    assert one.right == right


@pytest.mark.parametrize("servers", [1, 4])
def test_a_super_pod_list_in_a_server_is_missing_in_the_table(servers: int) -> None:
    value = table("1.2", servers, 8)
    value["server_list"][-1]["super_pod_list"] = value.pop("super_pod_list")

    messages = [message for rule, message, _ in found(value, "a3") if rule == "HCC617"]

    assert len(messages) == 1
    assert messages[0].endswith("beside server_list, which has no super_pod_list")


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_node_that_is_missing_beside_its_count_is_one_finding(nodes: int) -> None:
    value = table("2.0", nodes, 8)
    del value["rank_list"][:8]

    ((rule, message, _),) = found(value, "a5")

    assert rule == "HCC204"
    assert "no device has ranks 0-7" in message


@pytest.mark.parametrize("servers", [4, 8])
def test_servers_with_the_devices_of_each_other_are_not_only_reordered(servers: int) -> None:
    value = table("1.0", servers, 8)
    first, second = value["server_list"][:2]
    first["device"], second["device"] = second["device"], first["device"]

    assert {rule for rule, _, _ in found(value, "910a")} == {"HCC633"}


def test_an_address_without_a_dot_is_asked_of_the_host() -> None:
    value = table("2.0", 2, 8)
    for rank in value["rank_list"][8:]:
        address = rank["level_list"][0]["rank_addr_list"][0]
        address["addr"] = address["addr"].replace(".", "", 1)

    assert all("`hccl-tools gen` on the host of the rank" in hint for _, _, hint in found(value, "a5"))


@pytest.mark.parametrize("product", ["910a", "a3"])
def test_a_machine_without_a_set_address_is_one_cause(product: str) -> None:
    value = table("1.0" if product == "910a" else "1.2", 3, 8)
    for device in value["server_list"][1]["device"]:
        device["device_ip"] = "0.0.0.0"

    found = {(one.rule.id, one.alike) for one in validate(value, product=product).errors}

    assert [rule for rule, _ in found] == ["HCC403"]
    assert all(alike and alike[0] == 'HCCL reads "0.0.0.0" as no address' for _, alike in found)


def test_numbers_that_a_spreadsheet_has_rounded_are_not_filled_down() -> None:
    value = table("1.2", 2, 8)
    for device in value["server_list"][1]["device"]:
        device["super_device_id"] = "1.01E+08"

    messages = [one.message for one in validate(value, product="a3").findings]

    assert any("exponent notation" in message for message in messages)
    assert not any("filled down" in message for message in messages)
