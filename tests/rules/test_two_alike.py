"""Of two places that say the same, neither is blamed without a reason: both hosts are asked."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def said(value: Any, rule: str, product: str | None = None) -> list[tuple[str, str, str]]:
    """Return pointer, message and hint of the findings of a rule, each block once."""
    found = [one for one in validate(value, product=product).findings if one.rule.id == rule]
    told = [
        (one.pointer, *(one.alike if one.alike and len(found) > 1 else (one.message, one.hint or "")))
        for one in found
    ]
    return list({one[1:]: one for one in reversed(told)}.values())[::-1]


def copied(value: Any, source: int, target: int, key: str) -> Any:
    """Give a server the values of another one."""
    servers = value["server_list"]
    for device, other in zip(servers[target]["device"], servers[source]["device"], strict=True):
        device[key] = other[key]
    return value


@pytest.mark.parametrize(("source", "target"), [(6, 2), (2, 6)])
def test_the_order_of_the_others_says_whose_addresses_they_are(source: int, target: int) -> None:
    ((pointer, message, hint),) = said(copied(table("1.0", 8, 8), source, target, "device_ip"), "HCC404")

    assert pointer == f"/server_list/{target}/device/0/device_ip"
    assert message.startswith(
        f'all device_ips of server {target + 1} ("10.0.0.{target + 1}") are those of server {source + 1} '
    )
    assert f'belong to server {source + 1} ("10.0.0.{source + 1}")' in hint
    assert f'"192.168.{target}.100" to "192.168.{target}.107"' in hint
    assert f"`hccn_tool -i 0 -ip -g` on 10.0.0.{target + 1} and on 10.0.0.{source + 1} shows" in hint


def test_of_two_servers_without_others_both_are_asked() -> None:
    ((_, _, hint),) = said(copied(table("1.0", 2, 8), 1, 0, "device_ip"), "HCC404")

    assert hint.startswith("`hccn_tool -i 0 -ip -g` on 10.0.0.2 and on 10.0.0.1 shows")
    assert "if both show these" in hint
    assert "by the order" not in hint


def test_further_servers_outside_the_order_are_named() -> None:
    value = table("1.0", 16, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["device_ip"] = device["device_ip"].replace("192.168.1.", "192.168.2.")
            device["device_ip"] = device["device_ip"].replace("192.168.1", "192.168.7")

    ((_, _, hint),) = said(value, "HCC404")

    assert "those of server 2 " in hint
    assert hint.endswith(
        "the device_ips of servers 11-16 do not follow this order either: check them in the same way"
    )


def test_a_single_address_has_the_expected_one() -> None:
    value = table("1.0", 8, 8)
    value["server_list"][1]["device"][4]["device_ip"] = "192.168.5.104"

    ((_, _, hint),) = said(value, "HCC404")

    assert "on 10.0.0.6" in hint
    assert "on 10.0.0.2" in hint
    assert hint.endswith('that of device 4 of server 2 ("10.0.0.2") is "192.168.1.104"')
    two = table("1.0", 2, 2)
    two["server_list"][1]["device"][1]["device_ip"] = "192.168.0.101"
    assert "by the order" not in said(two, "HCC404")[0][2]


def test_two_instances_with_the_same_addresses_are_both_asked() -> None:
    value = table("group_list", 2, 8)
    first, second = value["group_list"][0]["instance_list"]
    for device, other in zip(first["devices"], second["devices"], strict=True):
        device["device_ip"] = other["device_ip"]
    del first["devices"][7], second["devices"][0]
    value["group_list"][0]["device_count"] = "14"

    hints = " ".join(hint for _, _, hint in said(value, "HCC404"))

    assert "on 10.0.0.1" in hints
    assert "on 10.0.0.2" in hints


def test_both_hosts_are_asked_for_super_device_ids() -> None:
    ((_, message, hint),) = said(copied(table("1.2", 2, 8), 1, 0, "super_device_id"), "HCC528")

    assert message == 'super_device_ids of server "10.0.0.2" are those of server "10.0.0.1"'
    assert all(f"`npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.{one}" in hint for one in (1, 2))
    assert (
        'only if both hosts show these SDIDs, the servers are in different super pods: give "10.0.0.2"'
        in hint
    )


@pytest.mark.parametrize(("source", "target"), [(4, 1), (1, 4)])
def test_the_order_of_the_others_says_whose_super_device_ids_they_are(source: int, target: int) -> None:
    ((pointer, message, hint),) = said(
        copied(table("1.2", 6, 8), source, target, "super_device_id"), "HCC528"
    )

    assert pointer == f"/server_list/{target}/device/0/super_device_id"
    assert (
        message
        == f'super_device_ids of server "10.0.0.{target + 1}" are those of server "10.0.0.{source + 1}"'
    )
    assert f'are probably "{target * 65536}" to "{target * 65536 + 7}"' in hint


def test_a_server_id_between_its_neighbours_is_not_taken_for_mistyped() -> None:
    value = table("1.0", 8, 8)
    copied(value, 6, 2, "device_ip")
    del value["server_list"][6]
    for rank, device in enumerate(device for server in value["server_list"] for device in server["device"]):
        device["rank_id"] = str(rank)

    ((_, message, hint),) = said({**value, "server_count": "7"}, "HCC633")

    assert message.endswith('they are probably the addresses of "10.0.0.7"')
    assert hint.startswith("`hccn_tool -i 0 -ip -g` on 10.0.0.3 shows")
    assert 'if it is not "192.168.6.100", but "192.168.2.100" or another one, correct the addresses' in hint


def test_a_server_id_out_of_the_row_was_mistyped() -> None:
    value = table("1.0", 8, 8)
    value["server_list"][2]["server_id"] = "10.0.0.33"

    ((_, message, hint),) = said(value, "HCC633")

    assert message.endswith("it was mistyped, or the machine was replaced")
    assert hint.endswith('write "10.0.0.3"')


def in_pods(sequence: str) -> Any:
    """Return a table whose servers are in these super pods, in the order of the file."""
    value, pods = table("1.2", len(sequence), 2), dict[str, list[Any]]()
    for number, pod in enumerate(sequence, 1):
        pods.setdefault(pod, []).append({"server_id": f"10.0.0.{number}"})
    value["super_pod_list"] = [{"super_pod_id": pod, "server_list": pods[pod]} for pod in sorted(pods)]
    return value


@pytest.mark.parametrize(
    ("sequence", "first", "second"), [("0101", 2, 3), ("0110", 2, 4), ("00010111", 4, 5)]
)
def test_two_exchanged_servers_of_super_pods_are_named(sequence: str, first: int, second: int) -> None:
    ((pointer, message, hint),) = said(in_pods(sequence), "HCC529", "a3")

    assert pointer == f"/server_list/{second - 1}/server_id"
    assert f'server "10.0.0.{first}" of super pod "1"' in message
    assert f"on 10.0.0.{first} and on 10.0.0.{second} shows the super pod of each" in hint
    assert 'if these are "0" and "1", exchange the two in super_pod_list' in hint


def test_a_server_in_the_wrong_super_pod_is_asked_with_the_other_that_may_be() -> None:
    ((_, message, hint),) = said(in_pods("00101111"), "HCC529", "a3")

    assert message.startswith(
        'server "10.0.0.3" of super pod "1" is listed among servers of super pod "0", and server "10.0.0.4"'
    )
    assert "on 10.0.0.3 and on 10.0.0.4 shows the super pod of each: list each server in that one" in hint


def test_super_pods_that_all_alternate_are_one_block() -> None:
    ((_, message, hint),) = said(in_pods("01010101"), "HCC529", "a3")

    assert message == "servers of different super pods alternate in server_list"
    assert "on each host" in hint
    assert said(in_pods("00001111"), "HCC529", "a3") == []


def test_a_number_that_another_super_pod_has_is_not_its_id() -> None:
    value = table("1.2", 4, 8, pods=2)
    value["super_pod_list"][0]["super_pod_id"] = 1

    ((_, _, hint),) = said(value, "HCC521", "a3")

    assert hint.startswith(
        'write a string, and not "1", which another super pod has, too: probably "super_pod_id": "0"'
    )
    assert "on 10.0.0.1 and on 10.0.0.3" in hint
    value["super_pod_list"][0]["super_pod_id"] = 0
    assert said(value, "HCC521", "a3")[0][2] == 'write it as a string: "super_pod_id": "0"'


def test_a_missing_id_of_several_super_pods_is_the_free_one() -> None:
    value = table("1.2", 4, 8, pods=2)
    del value["super_pod_list"][1]["super_pod_id"]

    ((_, _, hint),) = said(value, "HCC521", "a3")

    assert 'such as "super_pod_id": "1", which is free' in hint
    assert "on 10.0.0.3 shows its super pod" in hint


def test_hosts_of_both_entries_with_one_id_are_asked() -> None:
    value = table("1.2", 4, 8, pods=2)
    value["super_pod_list"][0]["super_pod_id"] = "1"

    ((_, _, hint),) = said(value, "HCC523", "a3")

    assert hint.startswith(
        "`npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 and on 10.0.0.3 shows the super pod of each"
    )
    assert '"super_pod_id": "0" for one of the two' in hint


def test_as_many_addresses_of_both_kinds_blame_none() -> None:
    value = table("1.0", 2, 8)
    for number, device in enumerate(value["server_list"][1]["device"]):
        device["device_ip"] = f"fd00::{number + 1}"

    ((_, _, hint),) = said(value, "HCC406")

    assert hint.startswith("write addresses of one kind, all IPv4 or all IPv6")
    assert "on 10.0.0.1" in hint
    assert "on 10.0.0.2" in hint


def test_the_server_count_of_a_parted_server_is_stated() -> None:
    value = table("1.0", 2, 8)
    second = value["server_list"][1]
    rest = {**second, "device": second["device"][4:]}
    second["device"] = second["device"][:4]
    value["server_list"].append(rest)

    assert said({**value, "server_count": "3"}, "HCC503")[0][2] == (
        'list all devices of this server in one entry, and write "server_count": "2"'
    )
    assert said(value, "HCC503")[0][2] == "list all devices of this server in one entry"


def levels(value: Any, rank: int, *layers: int) -> list[str]:
    """Return the hints of HCC451 on a table whose ranks have two layers, and one rank these."""
    for number, entry in enumerate(value["rank_list"]):
        level = entry["level_list"][0]
        own = layers if number == rank else (0, 1)
        entry["level_list"] = [{**level, "net_layer": one} for one in own]
    return [hint for _, _, hint in said(value, "HCC451", "a5")]


def test_a_layer_that_a_rank_has_twice_is_that_of_the_others() -> None:
    assert levels(table("2.0", 2, 4), 5, 0, 0) == [
        'write "net_layer": 1 here, as the other ranks have in this place'
    ]
    assert levels(table("2.0", 2, 4), 5, 1, 1) == [
        'write "net_layer": 0 in the level before it, as the other ranks have in this place'
    ]
    assert levels(table("2.0", 2, 4), 5, 1, 0) == ["list the levels by ascending net_layer"]


def test_an_old_entry_of_a_host_gets_no_series_of_its_own() -> None:
    value = copied(table("1.0", 3, 8), 1, 2, "device_ip")
    value["server_list"][2]["server_id"] = "10.0.0.45"
    ((_, _, hint),) = said(value, "HCC404")

    assert "192.168.44" not in hint
    assert 'if "10.0.0.45" is not a host of the job, remove the entry, write "server_count": "2"' in hint
