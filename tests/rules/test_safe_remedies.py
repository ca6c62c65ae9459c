"""A remedy that is carried out literally never makes a new error, and one cause is one finding."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.diagnostics.diagnostic import Diagnostic  # noqa: TC001  (used in annotations of tests)
from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, numbered, one, report, servers
from tests.support.tables import table


def errors(value: Any, product: str | None = None) -> list[Diagnostic]:
    return [each for each in report(value, product) if each.rule.severity == "error"]


# Servers


def test_a_server_at_the_end_that_is_listed_again_is_removed_first() -> None:
    value = table("1.0", 6, 8)
    servers(value)[5] = deepcopy(servers(value)[4])

    hint = one(numbered(value), "HCC503")[1]

    assert hint.startswith("remove it")
    assert "only if another server is in the job and missing here" in hint
    assert 'server 6 can be "10.0.0.6"' in hint


@pytest.mark.parametrize("place", [1, 2, 4])
def test_a_server_in_the_place_of_another_one_gets_its_values(place: int) -> None:
    right = table("1.0", 6, 8)
    value = deepcopy(right)
    servers(value)[place] = deepcopy(servers(value)[place - 1])
    value = numbered(value)

    message, hint = one(value, "HCC503")

    assert message.startswith(f"server {place + 1} is server {place} again")
    assert f'server {place + 1} can be "10.0.0.{place + 1}", which has no entry: if it is in the job' in hint
    assert "keep the ranks; only if no server is missing, remove it" in hint
    servers(value)[place]["server_id"] = f"10.0.0.{place + 1}"
    for device, own in zip(servers(value)[place]["device"], servers(right)[place]["device"], strict=True):
        device["device_ip"] = own["device_ip"]
    assert is_sound(value)


def test_of_a_server_that_was_overwritten_with_the_next_one_the_first_is_named() -> None:
    value = table("1.0", 6, 8)
    servers(value)[2] = deepcopy(servers(value)[3])
    value = numbered(value)

    assert 'server 3 can be "10.0.0.3", which has no entry' in one(value, "HCC503")[1]


def test_a_server_in_two_entries_does_not_continue_the_addresses_of_another() -> None:
    value = table("1.0", 2, 8)
    first = deepcopy(servers(value)[0])
    servers(value)[0]["device"] = servers(value)[0]["device"][:4]
    servers(value).insert(1, {**first, "device": first["device"][4:]})

    assert {each.rule.id for each in report(numbered(value), "a2")} == {"HCC503"}


# Super pods


@pytest.mark.parametrize("damaged", ["010.0.0.3", "10.0.0.3:16666"])
def test_a_damaged_server_id_is_not_copied_to_the_super_pod(damaged: str) -> None:
    value = table("1.2", 4, 8, 2)
    servers(value)[2]["server_id"] = damaged

    (found,) = errors(value, "a3")

    assert found.rule.id == "HCC524"
    assert found.hint == f'write "server_id": "10.0.0.3" in server 3 of server_list, which has "{damaged}"'


def test_a_mistyped_server_id_is_corrected_where_it_was_mistyped() -> None:
    value = table("1.2", 6, 8, 2)
    servers(value)[2]["server_id"] = "10.0.0.30"

    (found,) = errors(value, "a3")

    assert found.hint is not None
    assert 'write "server_id": "10.0.0.3" in server 3 of server_list' in found.hint


def test_a_super_pod_with_an_unknown_server_gets_the_one_of_the_list() -> None:
    value = table("1.2", 6, 8, 2)
    value["super_pod_list"][0]["server_list"][2]["server_id"] = "10.0.0.30"

    assert errors(value, "a3")[0].hint == (
        'server 3 of server_list has "10.0.0.3", which is in no super pod: if this is the host of the job, '
        'write "10.0.0.3" here; if "10.0.0.30" is, write "10.0.0.30" in server 3, and if it replaced '
        '"10.0.0.3", also its device_ips and super_device_ids there '
        "(`hccl-tools gen` on 10.0.0.30 prints them)"
    )


@pytest.mark.parametrize("names", ["10.0.0.{}", "node-{}", "fd00::{}"])
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("changed", [1, 2])
def test_lists_that_disagree_leave_both_directions(names: str, servers: int, changed: int) -> None:
    value = table("1.2", servers, 8)
    for number, server in enumerate(value["server_list"], 1):
        server["server_id"] = names.format(number)
    pod = value["super_pod_list"][0]["server_list"]
    for number, server in enumerate(pod, 1):
        server["server_id"] = names.format(number + 70 if number > servers - changed else number)

    found = [one for one in validate(value, product="a3").findings if one.rule.id == "HCC524"]
    hints = {(one.alike if changed > 1 and one.alike else ("", one.hint or ""))[1] for one in found}

    (hint,) = hints
    assert "here; if" in hint
    assert "super_device_ids" in hint


@pytest.mark.parametrize("entry", [{}, {"server_id": None}, None])
def test_a_server_of_a_super_pod_without_server_id_is_the_one_that_is_left(entry: Any) -> None:
    value = table("1.2", 4, 8, 2)
    value["super_pod_list"][0]["server_list"][1] = entry

    (found,) = errors(value, "a3")

    assert found.hint == (
        'write "server_id": "10.0.0.2", the only server of server_list that is in no super pod'
    )


def test_a_super_pod_that_is_listed_again_is_one_finding() -> None:
    value = table("1.2", 4, 8, 2)
    value["super_pod_list"].append(deepcopy(value["super_pod_list"][0]))

    assert [(each.rule.id, each.hint) for each in errors(value, "a3")] == [("HCC523", "remove this entry")]


# Entries in the wrong list


def test_a_server_of_a_super_pod_in_a_list_of_devices_gets_no_ids() -> None:
    value = table("1.2", 4, 16, 2)
    servers(value)[1]["device"].append(value["super_pod_list"][1]["server_list"].pop())

    hints = {each.hint for each in errors(value, "a3") if each.rule.id == "HCC111"}

    assert hints == {'move it into the "server_list" of its super pod'}


def test_a_device_beside_all_devices_of_the_product_gets_no_number() -> None:
    value = table("group_list", 2, 8)
    value["group_list"][0]["instance_list"][0]["devices"].append({"device_ip": "192.168.9.9"})

    hints = [each.hint for each in errors(value) if each.rule.id == "HCC111"]

    assert hints == ["remove the entry: the other entries of the server are all devices that the product has"]


def test_a_device_that_is_listed_again_does_not_change_the_count() -> None:
    value = table("group_list", 2, 8)
    devices = value["group_list"][0]["instance_list"][0]["devices"]
    devices.append(deepcopy(devices[3]))

    (found,) = errors(value)

    assert (found.rule.id, found.hint) == ("HCC404", "remove it")


# Ranks, ids and addresses


@pytest.mark.parametrize("count", [1, 2])
def test_a_lost_first_device_is_added(count: int) -> None:
    value = table("1.0", count, 8)
    del servers(value)[0]["device"][0]

    of_ranks = [each for each in report(value, "910a") if each.rule.id == "HCC202"]
    if count > 1:  # The product requires it of each server, and says so once.
        assert not of_ranks
        (of_ranks,) = [[each] for each in report(value, "910a") if each.rule.id == "HCC306"]
        assert (of_ranks[0].hint or "").startswith("add device 0 with rank 0 ")
        return
    hint = of_ranks[0].hint or ""

    assert "has no device 0: add it with rank 0" in hint
    assert hint.endswith("number the ranks 0 to 6")


def test_ids_of_two_servers_that_changed_places_are_not_exchanged_in_one_entry() -> None:
    value = table("1.0", 2, 8)
    first, second = servers(value)[0]["device"][7], servers(value)[1]["device"][0]
    first["device_id"], second["rank_id"] = second["rank_id"], first["device_id"]

    assert not [each for each in errors(value, "a2") if "exchanged" in each.message]


def test_a_text_that_looks_like_an_address_of_another_device_is_not_corrected_to_it() -> None:
    value = table("1.0", 1, 8)
    servers(value)[0]["device"][1]["device_ip"] = "192.168.0.1O0"

    (found,) = errors(value, "910a")

    assert found.right is None
    assert found.hint == (
        '`hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1; "192.168.0.100" '
        "is that of another device"
    )


# Names, levels and addresses


def test_damaged_server_ids_get_those_by_the_order_of_the_others() -> None:
    value = table("1.0", 6, 8)
    for index in (3, 4):
        servers(value)[index]["server_id"] += "10"

    _, hint = one({**value}, "HCC619")

    assert hint.endswith('by the order of the others, that of server 4 is "10.0.0.4"')


def test_an_empty_server_id_gets_that_by_the_order_of_the_others() -> None:
    value = table("1.0", 6, 8)
    servers(value)[3]["server_id"] = ""

    assert (
        one(value, "HCC502")[1] == 'give the server its address: by the order of the others it is "10.0.0.4"'
    )


def test_a_level_that_is_a_copy_of_another_one_does_not_only_get_its_number() -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"]:
        level = {
            **deepcopy(rank["level_list"][0]),
            "net_layer": 1,
            "net_type": "CLOS",
            "net_instance_id": "0",
        }
        level["rank_addr_list"] = [
            {**each, "addr": f"10.9.0.{rank['rank_id'] + 1}"} for each in level["rank_addr_list"]
        ]
        rank["level_list"].append(level)
    value["rank_list"][1]["level_list"][1] = deepcopy(value["rank_list"][1]["level_list"][0])

    (found,) = [each for each in errors(value, "a5") if each.rule.id == "HCC451"]

    assert found.hint == (
        "level 2 of the rank is a copy of level 1: write its layer 1 in this place, "
        "which `hccl-tools gen` on its host prints"
    )


def test_an_addr_type_is_that_of_all_others() -> None:
    value = table("2.0", 2, 2)
    entry = value["rank_list"][1]["level_list"][0]["rank_addr_list"][0]
    usual, entry["addr_type"] = entry["addr_type"], "x"

    assert one(value, "HCC455", "a5")[1] == f'write "{usual}", as the other addresses have'


def test_an_address_and_its_type_in_the_place_of_the_other_are_exchanged() -> None:
    value = table("2.0", 2, 2)
    entry = value["rank_list"][1]["level_list"][0]["rank_addr_list"][0]
    entry["addr_type"], entry["addr"] = entry["addr"], entry["addr_type"]

    hints = [each.hint for each in errors(value, "a5") if each.rule.id == "HCC455"]

    assert hints == ["exchange the values of addr and addr_type"]


def test_a_rank_id_of_a_2_0_table_is_a_number() -> None:
    value = table("2.0", 2, 2)
    value["rank_list"][1]["rank_id"] = -1

    assert "write 1, the rank that no device has" in {each.hint for each in errors(value, "a5")}


def test_a_lost_server_that_is_counted_has_one_alternative() -> None:
    value = table("1.0", 3, 8)
    del value["server_list"][1]
    hints = {one.rule.id: one.hint for one in validate(value, product="a2").findings}

    assert hints["HCC202"] == (
        'server_count is "3", so add the missing server with ranks 8-15 there; if none is missing, '
        'write "server_count": "2" '
        "and number the ranks from 8 on again: 8-15"
    )


def test_fewer_devices_on_several_910a_say_what_is_usual_first() -> None:
    found = validate(table("1.0", 2, 4), product="910a").findings
    hints = [one.hint for one in found if one.rule.id == "HCC308"]

    assert hints[0] is not None
    assert hints[0].startswith("list all 8 devices of each server with the ranks 0 to 15")
    assert "; only if fewer devices are intended, allow this, which HCCL accepts: --ignore" in hints[0]


def test_a_server_renamed_in_one_of_two_lists_leaves_both_repairs() -> None:
    value = table("1.2", 4, 8, 2)
    value["server_list"][3]["server_id"] = "10.0.0.14"
    hints = [one.hint or "" for one in validate(value, product="a3").findings if one.rule.id == "HCC524"]

    assert 'write "server_id": "10.0.0.4" in server 4 of server_list, which has "10.0.0.14"' in hints[0]
    assert hints[0].startswith(
        'if "10.0.0.14" replaces "10.0.0.4" in the job, write "10.0.0.14" here; if "10.0.0.14" was mistyped'
    )


def test_a_server_that_is_another_in_each_list_gets_conditions() -> None:
    value = table("1.2", 4, 8, 2)
    value["super_pod_list"][0]["server_list"][1]["server_id"] = "10.0.0.77"
    hints = [one.hint or "" for one in validate(value, product="a3").findings if one.rule.id == "HCC524"]

    assert 'write "10.0.0.2" here; if "10.0.0.77" is, write "10.0.0.77" in server 2' in hints[0]
