"""Entries that were copied, counted from one, or lost: one finding says what happened."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import least, steps
from tests.support.tables import table


def found(value: Any) -> list[tuple[str, str, str]]:
    """Return rule, message and hint of each error."""
    errors = [one for one in validate(value).findings if one.rule.severity == "error"]
    return [(one.rule.id, one.message, one.hint or "") for one in errors]


def with_copy(*, own_id: bool = False, count: str = "2") -> Any:
    """Return a table of two servers whose first server is listed a second time."""
    value = table("1.0", 2, 8)
    copied = deepcopy(value["server_list"][0])
    if own_id:
        copied["server_id"] = "10.0.0.9"
    value["server_list"].append(copied)
    return {**value, "server_count": count}


def test_a_copied_server_is_one_finding() -> None:
    assert found(with_copy()) == [
        (
            "HCC503",
            (
                'server 3 ("10.0.0.1") is a copy of server 1: '
                "server_id, device_ids, device_ips and rank ids repeat"
            ),
            (
                "remove it: server_count is then right; only if it stands for another server, "
                "give it its own server_id, device_ips and rank ids (16-23)"
            ),
        )
    ]


def test_a_copied_server_that_is_counted_keeps_both_ways() -> None:
    ((_, _, hint),) = found(with_copy(count="3"))

    own = "give it its own server_id, device_ips and rank ids (16-23)"
    assert hint == f'{own}, or remove it and write "server_count": "2"'


def test_a_copied_server_that_is_counted_is_removed_with_its_count() -> None:
    ((_, _, hint),) = found(with_copy(count="3"))

    assert hint.endswith('or remove it and write "server_count": "2"')
    value = with_copy(count="3")
    del value["server_list"][2]
    assert not found({**value, "server_count": "2"})


def test_a_copy_with_a_server_id_of_its_own_is_one_finding() -> None:
    ((rule, message, hint),) = found(with_copy(own_id=True, count="3"))

    assert rule == "HCC203"
    assert message.startswith(
        'server 3 ("10.0.0.9") is a copy of server 1: device_ids, device_ips and rank ids'
    )
    assert hint.startswith("give it its own device_ips and rank ids (16-23)")


def test_a_server_with_addresses_of_another_is_one_finding() -> None:
    value = table("1.0", 2, 8)
    first, second = (one["device"] for one in value["server_list"])
    for one, other in zip(first, second, strict=True):
        other["device_ip"] = one["device_ip"]

    ((rule, message, hint),) = found(value)

    assert rule == "HCC404"
    assert message == 'all device_ips of server 2 ("10.0.0.2") are those of server 1 ("10.0.0.1")'
    assert "`hccn_tool -i 0 -ip -g` on 10.0.0.2" in hint


def test_a_copied_instance_of_a_group_list_is_one_finding() -> None:
    value = table("group_list", 2, 8)
    instances = value["group_list"][0]["instance_list"]
    instances.append(deepcopy(instances[1]))

    ((rule, message, _),) = found(value)

    assert (rule, message) == (
        "HCC404",
        "instance 3 is a copy of instance 2: the device_ips are the same",
    )


def test_instances_whose_addresses_hccl_does_not_read_are_no_copies() -> None:
    value = table("group_list", 1, 8)
    other = deepcopy(value["group_list"][0])
    other["group_name"], other["instance_list"][0]["pod_name"] = "g1", "other"
    other["instance_list"][0]["server_id"] = "10.0.0.9"

    groups = [value["group_list"][0], other]

    assert "HCC404" not in {rule for rule, _, _ in found({**value, "group_count": "2", "group_list": groups})}


def test_a_device_entry_that_is_one_too_many_is_removed() -> None:
    value = table("1.0", 2, 8)
    devices = value["server_list"][1]["device"]
    devices.insert(3, deepcopy(devices[2]))

    assert [one for one in found(value) if one[0] != "HCC308"] == [
        (
            "HCC203",
            'this device is a copy of the one above: device 2 with rank "10" occurs twice',
            "remove it",
        )
    ]


def test_a_device_entry_in_place_of_another_gets_the_values_that_are_missing() -> None:
    value = table("1.0", 2, 8)
    devices = value["server_list"][1]["device"]
    devices[3] = deepcopy(devices[2])

    ((_, _, hint),) = found(value)

    assert "write device 3, rank 11 and the address of that device" in hint
    assert "`hccn_tool -i 3 -ip -g` on 10.0.0.2 shows it" in hint


def test_devices_counted_from_one_are_one_finding() -> None:
    value = table("1.0", 2, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["device_id"] = str(int(device["device_id"]) + 1)

    assert found(value) == [
        (
            "HCC302",
            "the device ids go from 1 to 8: HCCL counts devices from 0",
            "subtract 1 from each device_id, so that they go from 0 to 7",
        )
    ]
    value["server_list"][0]["device"][0]["device_id"] = "0"
    assert 'device id "8" is too high' in found(value)[0][1]


def test_of_a_device_that_occurs_twice_the_missing_one_is_named() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][4]["device_id"] = "3"

    assert found(value) == [
        (
            "HCC303",
            'device 3 occurs twice on server "10.0.0.2", device 4 not at all',
            (
                'write "4" as the device_id of the second of the two, by the order of the entries; '
                "`hccn_tool -i 4 -ip -g` on 10.0.0.2 shows the address of device 4"
            ),
        )
    ]


def test_what_a_table_needs_that_is_not_complete() -> None:
    ((rule, message, hint),) = found({**table("1.0", 1, 8), "status": "initializing"})

    assert rule == "HCC106"
    assert "the table is not complete" in message
    assert "hccl-controller or ascend-operator" in message
    assert "kubectl get pods" in hint


def test_a_table_with_super_pods_is_for_an_a3() -> None:
    (one,) = [one for one in validate(table("1.2", 2, 8), product="a2").findings if one.rule.id == "HCC608"]

    assert one.hint == (
        "if the machine is an A3, check the table with --product a3; otherwise make a new table on the hosts "
        "with `hccl-tools gen`: devices and addresses of this one are those of an A3"
    )
    older = validate({**table("1.2", 2, 8), "version": "1.0"}, product="a2").findings
    assert next(one.hint for one in older if one.rule.id == "HCC608") == (
        'on an A3 write "version": "1.2" and check the table with --product a3; '
        "on other machines omit super_pod_list"
    )


def test_each_command_names_the_device_and_its_host() -> None:
    value = table("1.2", 2, 4)
    del value["server_list"][1]["device"][3]["super_device_id"]
    plain = table("1.0", 2, 8)
    del plain["server_list"][1]["device"][5]["device_ip"]

    assert (
        found(value)[0][2] == "`npu-smi info -t spod-info -i 1 -c 1` on 10.0.0.2 shows the SDID of device 3"
    )
    assert found(plain)[0][2] == "`hccn_tool -i 5 -ip -g` on 10.0.0.2 shows the address of device 5"


@pytest.mark.slow
def test_copies_are_found_in_linear_time() -> None:
    def taken(servers: int) -> int:
        value = table("1.0", servers, 8)
        value["server_list"] *= 2
        return steps(lambda: validate(value))

    assert taken(400) < 8 * taken(100)  # the square would be 16


@pytest.mark.slow
def test_copies_of_one_device_are_found_in_linear_time() -> None:
    def taken(copies: int) -> float:
        value = table("1.0", 1, 1)
        value["server_list"][0]["device"] *= copies
        data = json.dumps(value).encode()
        return least(lambda: validate(data))

    assert taken(12_000) < 8 * taken(3_000)  # the square would be 16


def test_counts_that_count_a_copied_instance_do_not_stand_beside_it() -> None:
    value = table("group_list", 3, 8)
    (group,) = value["group_list"]
    own, copied = group["instance_list"][2], deepcopy(group["instance_list"][0])
    group["instance_list"][2] = {**copied, "server_id": own["server_id"], "pod_name": own["pod_name"]}

    report = validate(value)
    assert [one.rule.id for one in report.errors] == ["HCC404"]
    assert report.verdict == "refused"


def of_two_groups() -> Any:
    """Return a group_list with two groups of one instance each, the second with the devices of the first."""
    value = table("group_list", 1, 8)
    group = value["group_list"][0]
    again = deepcopy(group)
    again["group_name"] = "b"
    again["instance_list"][0]["pod_name"] = "other"
    return {**value, "group_count": "2", "group_list": [group, again]}


def test_an_instance_that_another_group_lists_again_is_one_finding() -> None:
    (found,) = [one for one in validate(of_two_groups(), product="a2").findings if one.rule.id == "HCC303"]

    assert found.message == (
        'instances "job0" and "other" have the same devices of server "10.0.0.1": one was probably copied'
    )
    assert (found.hint or "").startswith('write in "other" the device_ids and device_ips of its own devices')


def test_an_instance_of_another_host_is_not_a_copy() -> None:
    value = of_two_groups()
    value["group_list"][1]["instance_list"][0]["server_id"] = "10.0.0.2"

    assert "HCC303" not in {one.rule.id for one in validate(value, product="a2").findings}
