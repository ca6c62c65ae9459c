"""An entry appended for a replaced machine or a restarted pod: both cases are told, none is certain."""

from __future__ import annotations

import copy
from typing import Any

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def told(value: dict[str, Any]) -> dict[str, Any]:
    return {one.rule.id: one for one in validate(value, product="a2").findings}


def test_a_counted_server_with_the_ranks_of_another_one_may_replace_it() -> None:
    value = table("1.0", 4, 8)
    new = copy.deepcopy(value["server_list"][2])
    new["server_id"] = "192.0.2.9"
    for number, device in enumerate(new["device"]):
        device["device_ip"] = f"192.168.9.{8 + number}"
    value["server_list"].append(new)
    value["server_count"] = "5"

    found = told(value)

    hint = found["HCC203"].hint
    assert hint.startswith("either it replaces server 3 (")
    assert '"server_count": "4"' in hint
    assert hint.endswith("or both are in the job: give it ranks of its own: 32-39")
    assert "HCC633" not in found


def test_one_of_three_servers_may_replace_another_one() -> None:
    value = table("1.0", 3, 8)
    for old, new in zip(*(one["device"] for one in value["server_list"][1:]), strict=True):
        new["rank_id"] = old["rank_id"]

    hint = told(value)["HCC203"].hint

    assert hint.startswith('either it replaces server 2 ("10.0.0.2"): remove that server')
    assert hint.endswith('write "server_count": "2"; or both are in the job: give it ranks of its own: 16-23')


def test_of_two_servers_with_equal_ranks_the_second_numbers_on() -> None:
    value = table("1.0", 2, 8)
    for old, new in zip(*(one["device"] for one in value["server_list"]), strict=True):
        new["rank_id"] = old["rank_id"]

    assert "replaces" not in (told(value)["HCC203"].hint or "")


def test_two_pods_of_one_name_are_perhaps_one_pod_in_two_places() -> None:
    value = table("group_list", 2, 8)
    instances = value["group_list"][0]["instance_list"]
    instances.append(copy.deepcopy(instances[1]))
    instances[2]["server_id"] = "192.0.2.8"
    for number, device in enumerate(instances[2]["devices"]):
        device["device_ip"] = f"192.168.9.{8 + number}"

    findings = [one for one in validate(value).findings if one.rule.id in {"HCC512", "HCC514"}]

    assert len(findings) == 3
    assert all(one.right is None for one in findings)
    assert all((one.hint or "").startswith("either instance 3 (") for one in findings)
    assert all("or both are in the job" in (one.hint or "") for one in findings)


def test_a_server_that_is_listed_again_with_another_container_ip_was_restarted() -> None:
    value = table("1.0", 2, 8)
    again = copy.deepcopy(value["server_list"][1])
    value["server_list"][1]["container_ip"], again["container_ip"] = "10.244.2.17", "10.244.5.31"
    for number, device in enumerate(again["device"]):
        device["rank_id"] = str(16 + number)
    value["server_list"].append(again)
    value["server_count"] = "3"

    hint = told(value)["HCC503"].hint

    assert hint.startswith('container_ip differs ("10.244.2.17" and "10.244.5.31"), as after a restart')
    assert "keep the entry of the present one; remove the other" in hint
    assert "which is missing" not in hint


def test_a_copied_instance_needs_its_own_pod_name_too() -> None:
    value = table("group_list", 2, 8)
    instances = value["group_list"][0]["instance_list"]
    instances[1] = {**copy.deepcopy(instances[0]), "server_id": instances[1]["server_id"]}

    found = told(value)["HCC404"]

    assert found.message.endswith("pod_name and device_ips repeat")
    assert found.hint.startswith("if it is in the job, give it its own pod_name and device_ips; else remove ")
