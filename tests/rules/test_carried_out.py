"""Remedies of damages, carried out literally: the table is accepted, or was never in doubt."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, numbered, one, report, servers
from tests.support.growth import steps
from tests.support.tables import table


def rules(value: Any, product: str | None = None) -> set[str]:
    return {each.rule.id for each in report(value, product)}


def first_layer(value: Any, rank: int) -> dict[str, Any]:
    layer: dict[str, Any] = value["rank_list"][rank]["level_list"][0]
    return layer


# The rank of another node


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_rank_in_another_node_is_found_by_the_ranks_around_it(size: int, *, is_late: bool) -> None:
    right = table("2.0", 3, size)
    for place in range(size):
        value = deepcopy(right)
        own, other = (size + place, place) if is_late else (place, size + place)
        name = first_layer(value, own)["net_instance_id"]
        first_layer(value, own)["net_instance_id"] = first_layer(value, other)["net_instance_id"]

        message, hint = one(value, "HCC334")

        assert message.startswith(f"rank {own} is in node ")
        assert f"where rank {other} has local_id {place} already" in message
        assert hint == f'write "net_instance_id": "{name}" in layer 0 of rank {own}'
        first_layer(value, own)["net_instance_id"] = name
        assert is_sound(value)


def test_whole_nodes_with_one_name_are_not_decided_by_the_order() -> None:
    value = table("2.0", 2, 4)
    for rank in range(4, 8):
        first_layer(value, rank)["net_instance_id"] = "node0"

    assert "probably that of another node" in one(value, "HCC334")[0]


# Layers


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_rank_that_lacks_a_layer_is_named_in_one_node_too(nodes: int) -> None:
    value = table("2.0", nodes, 4)
    layer = {
        "net_layer": 1,
        "net_instance_id": "pod0",
        "net_type": "CLOS",
        "net_attr": "",
        "rank_addr_list": [],
    }
    for entry in value["rank_list"]:
        entry["level_list"].append(dict(layer))
    assert "HCC635" not in rules(value)
    del value["rank_list"][2]["level_list"][1]

    assert one(value, "HCC635")[0].startswith("rank 2 has no layer 1, which ")


# Servers and devices


@pytest.mark.parametrize(("place", "seen"), [(2, 1), (3, 1), (3, 2)])
def test_a_server_with_the_ranks_of_another_is_not_removed_if_all_are_counted(place: int, seen: int) -> None:
    value = table("1.0", 4, 8)
    for device, own in zip(servers(value)[place]["device"], servers(value)[seen]["device"], strict=True):
        device["rank_id"] = own["rank_id"]

    hint = one(value, "HCC203")[1]

    own = f"give it ranks of its own: {8 * place}-{8 * place + 7}"
    assert hint == own if place < 3 else hint.endswith(f"or both are in the job: {own}")


@pytest.mark.parametrize("product", ["910a", "a2"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_second_half_that_is_numbered_again_is_not_that_of_another_server(product: str, place: int) -> None:
    right = table("1.0", 3, 8)
    value = deepcopy(right)
    for number in range(4, 8):
        servers(value)[place]["device"][number]["device_id"] = str(number - 4)

    (found,) = [each for each in report(value, product) if each.rule.id == "HCC303"]

    assert "devices 4,5,6,7 not at all" in found.message
    assert (found.hint or "").startswith("write 4 to 7 as the device_ids of the second half; `hccn_tool -i 4")
    assert is_sound(right)


@pytest.mark.slow
def test_second_halves_are_found_in_linear_time() -> None:
    def taken(number: int) -> int:
        value = table("1.0", number, 8)
        for server in servers(value):
            for device in server["device"][4:]:
                device["device_id"] = str(int(device["device_id"]) - 4)
        return steps(lambda: validate(json.dumps(value).encode()))

    assert taken(240) < 6 * taken(60)  # the square would be 16


def test_a_second_half_is_that_of_another_server_if_one_is_not_counted() -> None:
    value = table("1.0", 3, 8)
    lost = servers(value).pop(2)
    servers(value)[1]["device"] += lost["device"]

    assert "of another server" in report(value, "a2")[0].message + report(value, "a2")[-1].message


def test_the_remedy_on_a_joined_list_leaves_no_comma() -> None:
    value = table("1.0", 2, 8)
    lost = servers(value).pop(1)
    servers(value)[0]["device"] += lost["device"]

    (found,) = [each for each in report(value, "a2") if each.rule.id == "HCC303"]
    part = (found.hint or "").partition("write ")[2].partition(" in place of the comma before entry 9")[0]
    text = json.dumps(value)
    at = [at for at in range(len(text)) if text.startswith(', {"device_id"', at)][7]
    mended = text[:at] + part.replace("...", "10.0.0.2") + text[at + 1 :]

    assert is_sound(json.loads(mended))


def test_an_uneven_server_of_a_910a_has_no_remedy_that_another_rule_refuses() -> None:
    value = table("1.0", 3, 8)
    del servers(value)[2]["device"][4:]

    (found,) = [each for each in report(value, "910a") if each.rule.id == "HCC306"]

    assert found.hint == (
        "list all 8 devices of every server; or remove this server, and correct the counts and ranks"
    )
    del servers(value)[2]
    value["server_count"] = "2"
    assert is_sound(numbered(value))


def test_a_misspelt_address_is_one_finding() -> None:
    value = table("1.0", 1, 8)
    device = servers(value)[0]["device"][5]
    device["device_lp"] = device.pop("device_ip")

    assert rules(value, "a2") == {"HCC604"}
    del device["device_lp"]
    assert rules(value, "a2") == {"HCC612"}


def test_a_key_that_is_null_is_deleted_and_not_moved() -> None:
    value = table("1.0", 2, 8)
    value["host_nic_ip"] = None
    for server in servers(value):
        server.pop("host_nic_ip", None)
    found = [each.hint or "" for each in report(value, "a2") if each.rule.id == "HCC617"]

    assert found in ([], ["delete it: its value is null"])


def test_of_two_lists_with_the_same_devices_the_old_one_is_deleted() -> None:
    right = table("1.0", 2, 4)
    value = deepcopy(right)
    old = [
        {**one, "device_ip": one["device_ip"].replace("192.168", "172.30")}
        for one in servers(value)[1]["device"]
    ]
    text = json.dumps(value, indent=1)
    at = text.rindex('"device": [')
    damaged = text[:at] + f'"device": {json.dumps(old)},\n   ' + text[at:]

    (found,) = [
        each for each in validate(damaged.encode(), product="a2").findings if each.rule.id == "HCC601"
    ]

    assert "both lists have device 0, so that one of them is old" in (found.hint or "")
    new = servers(right)[1]["device"][0]["device_ip"]
    assert f'if it is "{new}", delete the first list' in (found.hint or "")


# A list of devices


@pytest.mark.parametrize(
    "names",
    [
        ("rank", "host", "device", "ip"), ("global_rank", "node_ip", "local_rank", "device_ip"),
        ("rankId", "serverId", "npu_id", "addr"), ("rank_id", "hostname", "card", "npu-ip"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 8])
def test_a_list_of_devices_gets_the_command_that_makes_its_table(names: tuple[str, ...], size: int) -> None:
    right = table("1.0", 2, size)
    flat = [
        dict(zip(names, (each["rank_id"], server["server_id"], *list(each.values())[:2]), strict=True))
        for server in servers(right)
        for each in server["device"]
    ]

    (found,) = validate(json.dumps(flat).encode()).findings

    assert f"it is a list of devices, {2 * size} entries with " in found.message
    words = shlex.split((found.hint or "").partition("of it: ")[2].removesuffix(" < OLD > NEW"))
    assert words[0] == "python3"
    made = subprocess.run(
        [sys.executable, *words[1:]], input=json.dumps(flat), capture_output=True, text=True, check=True
    )
    entries = [{"server_id": one["server_id"], "device": one["device"]} for one in servers(right)]
    assert json.loads(made.stdout)["server_list"] == entries


@pytest.mark.parametrize(
    "value", [[{"rank": 0, "host": "a"}], [{"a": 1}], [], [1], [{"rank": 0, "host": [], "device": 0}]]
)
def test_other_lists_are_not_lists_of_devices(value: Any) -> None:
    assert "list of devices" not in validate(json.dumps(value).encode()).findings[0].message


def test_a_table_without_ranks_has_no_layers_to_compare() -> None:
    value = table("2.0", 1, 2)
    value["rank_list"] = []

    assert "HCC635" not in rules(value)
