"""Values that were exchanged or copied, or lost their beginning: what the remedy says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.test_remedies import is_sound, one
from tests.support.commands import run_here
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path


def exchange(instance: dict[str, object]) -> None:
    device = instance["devices"][0]  # type: ignore[index]
    instance["server_id"], device["device_ip"] = device["device_ip"], instance["server_id"]


def test_server_id_and_device_ip_of_a_host_are_exchanged() -> None:
    value = table("lab", servers=2, devices=8)
    instances = value["group_list"][0]["instance_list"]
    for instance in instances[8:]:
        exchange(instance)

    message, hint = one(value, "HCC115")

    assert "server_id and device_ip are exchanged in instances 9-16" in message
    assert hint.startswith("exchange the two values in each of these instances")
    for instance in instances[8:]:
        exchange(instance)
    assert is_sound(value)


def test_a_number_of_servers_that_hccl_does_not_take_is_not_proposed() -> None:
    value = table("lab", servers=2, devices=8)
    value["group_list"][0]["instance_list"][15]["server_id"] = "10.0.0.99"

    _, hint = one(value, "HCC115")

    assert "server_num" not in hint
    assert "instances of one host have the same one" in hint


@pytest.mark.parametrize("is_one_host", [True, False])
def test_another_port_is_proposed_on_one_host_alone(is_one_host: bool) -> None:
    value = table("server_group_list", servers=2, devices=2)
    first, second = (group["server_list"][0] for group in value["server_group_list"][2:4])
    second["server_ip"] = first["server_ip"]
    if is_one_host:
        second["server_id"] = first["server_id"]
        for number, device in enumerate(second["device"], 2):
            device["device_id"] = str(number)

    _, hint = one(value, "HCC716")

    assert ("mgmt_port" in hint) == is_one_host
    assert ("their server_ids differ" in hint) != is_one_host


def test_an_eid_without_its_zeros_is_padded(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    done = run_here("gen", "--simulate", "a5", "--servers", "2", "-o", str(file))
    assert done.returncode == 0, done.stderr
    value = json.loads(file.read_text())
    address = value["rank_list"][1]["level_list"][0]["rank_addr_list"][0]
    right = address["addr"]
    address["addr"] = right.lstrip("0")

    message, hint = one(value, "HCC456")

    assert "has lost its leading zeros" in message
    assert hint == f'write "{right}"'
    for entry in value["rank_list"][1]["level_list"][0]["rank_addr_list"][1:]:
        entry["addr"] = entry["addr"].lstrip("0")
    message, hint = one(value, "HCC456")  # All of them are one block.
    assert message.startswith("addrs have lost their leading zeros")
    assert hint.endswith(f'write "{right}" in place of "{address["addr"]}", and the others in the same way')


@pytest.mark.slow
@pytest.mark.parametrize("key", ["server_list", "device"])
def test_lists_in_a_list_take_linear_time(key: str) -> None:
    def of(number: int) -> int:
        value = table("1.0")
        holder = value if key == "server_list" else value["server_list"][0]
        holder[key] = [[{"device_id": "", "rank_id": ""}]] * number
        return steps(lambda: is_sound(value))

    of(10)  # The first one loads modules.
    assert of(800) < 3 * of(400)


def test_ranks_of_a_service_table_that_begin_again_are_numbered_on() -> None:
    value = table("server_group_list", servers=2, devices=2)
    second = value["server_group_list"][2]["server_list"][1]
    for number, device in enumerate(second["device"]):
        device["rank_id"] = str(number)
    second["device"][0]["device_logical_id"] = "0"

    message, hint = one(
        {**value, "server_group_list": [*value["server_group_list"], other_group(value)]}, "HCC723"
    )

    assert message == "the ranks of group 2 begin with 0 again on each server"
    assert hint == f'number them on: 2 to 3 on server "{second["server_ip"]}"'


def other_group(value: Any) -> Any:
    """Return a sound group of instances beside group 2: its servers are then no instances of their own."""
    text = json.dumps(value["server_group_list"][2]["server_list"][0])
    for old, new in (("10.0.0.", "10.0.9."), ("192.168.3.", "192.168.9."), ("10.20.", "10.29.")):
        text = text.replace(old, new)
    server = json.loads(text)
    return {"group_id": "4", "deploy_server": "0", "server_count": "1", "server_list": [server]}


def test_a_copied_server_of_a_service_table_gets_its_own_host_first() -> None:
    value = table("server_group_list", servers=1, devices=8)
    copy = other_group(value)
    server, own = copy["server_list"][0], value["server_group_list"][2]["server_list"][0]
    server["server_id"], server["device"] = own["server_id"], own["device"]
    value["server_group_list"].append(copy)

    _, hint = one(value, "HCC656")

    assert hint.startswith(
        "the entry was probably copied, and only its server_ip was changed: write in group 4"
    )
