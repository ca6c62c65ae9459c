"""One fault of a table is one finding that names it, and its remedy, done literally, makes a sound table."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Diagnostic


def report(value: Any, product: str | None = None) -> list[Diagnostic]:
    return list(validate(json.dumps(value).encode(), product=product).findings)


def one(value: Any, rule: str, product: str | None = None) -> tuple[str, str]:
    """Return message and hint of the only cause of a table, as a user sees them, and check its rule."""
    found = report(value, product)
    said = {
        (each.rule.id, *(each.alike if each.alike and len(found) > 1 else (each.message, each.hint or "")))
        for each in found
    }
    assert len(said) == 1, said
    ((own, message, hint),) = said
    assert own == rule
    return message, hint


def is_sound(value: Any, product: str | None = None) -> bool:
    return report(value, product) == []


def servers(value: Any) -> list[Any]:
    found: list[Any] = value["server_list"]
    return found


def numbered(value: Any) -> Any:
    """Number the ranks of a table on, in the order of the file, and count its servers."""
    rank = 0
    for server in servers(value):
        for device in server["device"]:
            device["rank_id"] = str(rank)
            rank += 1
    return {**value, "server_count": str(len(servers(value)))}


# Lists and entries in another shape


def by_key(entries: list[Any], key: str) -> dict[str, Any]:
    return {entry.pop(key): entry for entry in entries}


def test_servers_by_id_keep_their_ids() -> None:
    value = table("1.0", 2, 8)
    value["server_list"] = by_key(value["server_list"], "server_id")

    _, hint = one(value, "HCC112")

    assert (
        'make the key of each entry its server_id: in place of "10.0.0.1": { write { "server_id": "10.0.0.1",'
        in hint
    )


def test_devices_by_id_keep_their_ids_in_one_block() -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        server["device"] = by_key(server["device"], "device_id")

    _, hint = one(value, "HCC112")

    assert 'in place of "0": { write { "device_id": "0",' in hint


def test_ranks_by_id_get_numbers() -> None:
    value = table("2.0", 2, 2)
    value["rank_list"] = {str(entry.pop("rank_id")): entry for entry in value["rank_list"]}

    _, hint = one(value, "HCC112", "a5")

    assert 'write { "rank_id": 0,' in hint


def test_keys_that_are_no_ids_are_removed() -> None:
    value = table("1.0", 2, 8)
    value["server_list"] = {f"node{number}": entry for number, entry in enumerate(value["server_list"])}

    assert 'remove the key and colon before each entry ("node0": and so on)' in one(value, "HCC112")[1]


def test_instances_in_group_list_itself_get_their_group() -> None:
    value = table("group_list", 2, 8)
    value["group_list"] = value["group_list"][0]["instance_list"]

    _, hint = one(value, "HCC111")

    assert '"device_count": "16", "instance_count": "2"' in hint
    group = {
        "group_name": "",
        "device_count": "16",
        "instance_count": "2",
        "instance_list": value["group_list"],
    }
    assert is_sound({**value, "group_list": [group]})


def test_a_server_in_a_list_of_devices_is_named() -> None:
    value = table("1.0", 3, 8)
    servers(value)[0]["device"].append(servers(value).pop(1))

    found = report(value)

    assert found[0].rule.id == "HCC111"
    assert found[0].message == (
        'server "10.0.0.2" is in the "device" list of server "10.0.0.1", not in server_list'
    )
    assert found[0].pointer == "/server_list/0/device/8"
    assert len(found) == 1


def test_the_name_of_a_server_in_a_list_of_devices_is_shown_up_to_64_letters() -> None:
    value = table("1.0", 2, 8)
    nested = servers(value).pop(1)
    servers(value)[0]["device"].append({**nested, "server_id": "n" * 63 + "ab"})

    assert one(value, "HCC111")[0].startswith(f'server "{"n" * 63}a" is in the "device" list')


def test_ranks_in_the_entries_of_another_list_are_moved() -> None:
    value = table("2.0", 2, 2)
    ranks = value.pop("rank_list")
    nested = [{"server_id": "a", "rank_list": ranks[:2]}, {"server_id": "b", "rank_list": ranks[2:]}]
    del value["rank_count"]

    _, hint = one({**value, "server_list": nested}, "HCC111", "a5")

    assert 'delete "server_list", and write "rank_count": 4' in hint
    assert is_sound({**value, "rank_list": ranks, "rank_count": 4}, "a5")


def test_entries_of_version_1_0_in_a_2_0_table_come_from_gen() -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"][2:]:
        del rank["level_list"], rank["local_id"]
        rank["device_ip"] = "10.0.0.1"

    message, hint = one(value, "HCC111", "a5")

    assert message.startswith("the entries of ranks 2-3 are those of a table of version 1.0")
    assert "`hccl-tools gen`" in hint


def test_servers_in_super_pod_list_alone_are_moved() -> None:
    value = table("1.2", 2, 2)
    value["super_pod_list"][0]["server_list"] = value.pop("server_list")

    message, _ = one(value, "HCC111", "a3")

    assert message.startswith('"server_list" is missing, and the entries of super_pod_list have its servers')


def test_camel_case_in_all_keys_is_said_once() -> None:
    text = json.dumps(table("1.0", 2, 8))
    for key, other in (("server_list", "serverList"), ("device_id", "deviceId"), ("rank_id", "rankId")):
        text = text.replace(key, other)

    _, hint = one(json.loads(text), "HCC111")

    assert "and the other keys with such names, too (deviceId, rankId)" in hint


def test_of_two_keys_that_look_like_a_missing_one_the_same_name_is_renamed() -> None:
    value = table("1.0", 1, 8)
    for device in servers(value)[0]["device"]:
        device["deviceId"], device["deviceIp"] = device.pop("device_id"), device.pop("device_ip")

    assert {each.hint for each in report(value) if each.rule.id == "HCC111"} == {
        'rename "deviceId" to "device_id"'
    }


def test_devices_of_a_group_list_get_ranks_in_the_order_of_the_file() -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        for device in server["device"]:
            del device["rank_id"]

    _, hint = one(value, "HCC111")

    assert hint == "number the entries over all servers in the order of the file: 0 to 15, as strings"


def test_a_rank_without_id_gets_its_place() -> None:
    value = table("1.0", 2, 8)
    for place in (3, 5):
        del servers(value)[1]["device"][place]["rank_id"]

    assert [each.hint for each in report(value)] == [
        f'write "rank_id": "{rank}", its number in the order of the file' for rank in (11, 13)
    ]


def test_ranks_in_another_order_get_no_place() -> None:
    value = table("1.0", 2, 8)
    own = servers(value)[1]["device"]
    own[0]["rank_id"], own[1]["rank_id"] = "9", "8"
    del own[3]["rank_id"], own[5]["rank_id"]

    assert {each.hint for each in report(value)} == {
        'write "rank_id" with one of the numbers that no other device has: 11,13'
    }


def test_decimal_numbers_of_a_spreadsheet_are_one_block_for_each_key() -> None:
    value = table("1.0", 1, 8)
    for device in servers(value)[0]["device"]:
        device["device_id"] = float(device["device_id"])

    message, hint = one(value, "HCC112")

    assert message == '"device_id" is a decimal number, as spreadsheets write it'
    assert hint == 'write each as a string without the decimal point: 0.0 as "0"'


def test_a_count_with_a_decimal_point_is_not_missing() -> None:
    value = {**table("1.0", 2, 8), "server_count": 2.0}

    assert one(value, "HCC112")[1] == 'write "2"'


def test_a_layer_in_a_text_is_read_from_it() -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"]:
        rank["level_list"][0]["net_layer"] = "L0"

    assert one(value, "HCC112", "a5")[1] == 'write each as a number, without quotes: "L0" as 0'


def test_ports_in_one_text_are_a_list_of_texts() -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"]:
        rank["level_list"][0]["rank_addr_list"][0]["ports"] = "0/4,0/5"

    assert one(value, "HCC112", "a5")[1] == 'write each as a list of strings: "0/4,0/5" as ["0/4", "0/5"]'
    for rank in value["rank_list"]:
        rank["level_list"][0]["rank_addr_list"][0]["ports"] = ["0/4,0/5"]
    assert one(value, "HCC637", "a5")[1] == 'write a text for each port: "0/4", "0/5"'


# Servers and devices


def test_servers_that_are_listed_again_are_removed() -> None:
    right = table("1.2", 2, 8)
    value = deepcopy(right)
    value["server_list"] += deepcopy(servers(value))
    value = numbered(value)

    message, hint = one(value, "HCC503", "a3")

    assert message.startswith("servers 3-4 are servers 1-2 again")
    assert hint == 'remove them, and write "server_count": "2"'


def test_a_server_under_another_name_may_be_listed_twice() -> None:
    value = table("1.0", 3, 8)
    for device, other in zip(servers(value)[2]["device"], servers(value)[0]["device"], strict=True):
        device["device_ip"] = other["device_ip"]
    servers(value)[2]["server_id"] = "node-0001"

    _, hint = one(value, "HCC404")

    assert "`hccn_tool -i 0 -ip -g` on node-0001 and on 10.0.0.1 shows" in hint
    assert "if both show these, they may be one host: see `hccl-tools rules HCC404`" in hint


def test_addresses_that_moved_down_by_a_server_are_all_checked() -> None:
    value = table("1.0", 8, 8)
    for server in range(7, 2, -1):
        for device, other in zip(
            servers(value)[server]["device"], servers(value)[server - 1]["device"], strict=True
        ):
            device["device_ip"] = other["device_ip"]

    _, hint = one(value, "HCC404")

    assert hint.startswith('check the addresses of all servers from here to server 8 ("10.0.0.8")')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("255.255.255.0", ", which is a netmask"),
        ("10.0.0.2", ", which is the address of the host"),
        ("10.7.7.7", ""),
    ],
)
def test_one_address_for_all_devices_of_a_server_is_one_finding(text: str, words: str) -> None:
    value = table("1.0", 2, 8)
    for device in servers(value)[1]["device"]:
        device["device_ip"] = text

    assert one(value, "HCC404")[0] == f'all device_ips of server 2 ("10.0.0.2") are "{text}"{words}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("255.255.255.0", "is a netmask"),
        ("192.168.1.0", "is the first address of a network"),
        ("192.168.1.255", "is the broadcast address of a network"),
        ("127.0.0.1", "is a loopback, multicast or broadcast address"),
    ],
)
def test_an_address_that_is_of_no_device_is_one_finding(text: str, words: str) -> None:
    value = table("1.0", 3, 8)
    servers(value)[1]["device"][2]["device_ip"] = text

    assert one(value, "HCC614")[0] == f'device_ip "{text}" {words}'


def test_an_address_that_ends_in_0_and_follows_the_order_is_sound() -> None:
    value = table("1.0", 2, 8)
    for number, device in enumerate([each for server in servers(value) for each in server["device"]]):
        device["device_ip"] = f"10.1.{(250 + number) // 256}.{(250 + number) % 256}"

    assert is_sound(value)


def test_a_server_id_that_is_the_address_of_its_device_is_the_wrong_one() -> None:
    value = table("1.0", 4, 8)
    servers(value)[3]["server_id"] = "192.168.3.100"

    message, hint = one(value, "HCC614")

    assert message == 'server_id "192.168.3.100" is the address of its own device 0: one of the two is wrong'
    assert 'by the order of the others it is "10.0.0.4"' in hint


def test_of_two_equal_server_ids_the_wrong_one_is_named() -> None:
    value = table("1.0", 6, 8)
    servers(value)[4]["server_id"] = "10.0.0.4"

    _, hint = one(value, "HCC503")

    assert 'if it is "192.168.3.100", write another server_id in server 5' in hint
    assert hint.endswith('by the order of the others, server 5 is "10.0.0.5"')


def test_an_entry_that_repeats_a_device_with_a_rank_of_its_own_is_one_finding() -> None:
    right = table("1.0", 2, 8)
    value = deepcopy(right)
    own = servers(value)[1]["device"]
    own[5].update(device_id=own[4]["device_id"], device_ip=own[4]["device_ip"])

    message, hint = one(value, "HCC404")

    assert message.endswith("and device 5 is missing")
    assert hint.startswith('write "device_id": "5" in the right one of the two entries')


def test_instances_of_two_hosts_with_one_server_id_are_one_finding() -> None:
    value = table("group_list", 2, 8)
    instances = value["group_list"][0]["instance_list"]
    instances[1]["server_id"] = instances[0]["server_id"]

    message, _ = one(value, "HCC303")

    assert message.startswith('instances "job0" and "job1" both have server_id "10.0.0.1"')


def test_instances_that_share_a_host_are_sound() -> None:
    value = table("group_list", 2, 4)
    instances = value["group_list"][0]["instance_list"]
    instances[1]["server_id"] = instances[0]["server_id"]
    for device in instances[1]["devices"]:
        device["device_id"] = str(int(device["device_id"]) + 4)

    assert is_sound(value)


def test_addresses_of_lone_instances_are_there_and_not_read() -> None:
    value = table("group_list", 2, 8)
    first, second = value["group_list"][0]["instance_list"]
    groups = [
        {"group_name": name, "device_count": "8", "instance_count": "1", "instance_list": [instance]}
        for name, instance in (("a", first), ("b", second))
    ]

    found = report({**value, "group_count": "2", "group_list": groups})

    assert {each.rule.id for each in found} == {"HCC410"}
    assert all("its instance is the only one of its group" in each.message for each in found)


def test_devices_with_netmasks_or_without_addresses_are_one_block() -> None:
    value = table("1.0", 2, 8)
    for device in servers(value)[1]["device"]:
        device["device_ip"] += "/24"
    assert one(value, "HCC403")[0] == 'device_ips have the netmask "/24"'
    for device in servers(value)[1]["device"]:
        del device["device_ip"]
    assert one(value, "HCC401", "a2")[0] == "these devices have no device_ip"


def test_a_second_address_is_one_too_many_if_the_others_have_one() -> None:
    value = table("1.0", 2, 8)
    for number, device in enumerate(servers(value)[1]["device"]):
        device["device_ip"] += f";10.9.9.{number}"

    _, hint = one(value, "HCC403")

    assert hint.startswith("write one of the two: `hccn_tool -i 0 -ip -g` on 10.0.0.2")


@pytest.mark.parametrize("sign", [";", "|", " "])
def test_two_addresses_of_each_device_are_separated_by_a_comma(sign: str) -> None:
    value = table("1.0", 2, 8)
    for server, entry in enumerate(servers(value)):
        for number, device in enumerate(entry["device"]):
            device["device_ip"] += f"{sign}10.9.{server}.{number + 1}"

    message, hint = one(value, "HCC403")

    assert message == f'device_ips have "{sign}" in place of a comma between two addresses'
    assert hint.startswith('write "192.168.0.100,10.9.0.1" in place of')


def test_a_server_with_the_other_family_is_one_block() -> None:
    value = table("1.0", 4, 8)
    for number, device in enumerate(servers(value)[0]["device"]):
        device["device_ip"] = f"fd00::{number + 1}"

    message, hint = one(value, "HCC406")

    assert message == "device_ips are IPv6, and those of the other devices IPv4"
    assert hint.startswith("write the IPv4 address of each")


def test_a_list_of_another_format_beside_that_of_the_table_is_ignored() -> None:
    value = {**table("1.0", 2, 8), "group_list": table("group_list", 1, 8)["group_list"]}

    message, hint = one(value, "HCC640")

    assert message == 'HCCL reads "server_list" alone in this table, and ignores "group_list"'
    assert hint.endswith('else delete "group_list"')
    del value["group_list"]
    assert is_sound(value)


@pytest.mark.parametrize("name", ["10.0.0.300", "10.0.0.2/24", "10.0.2"])
def test_a_server_id_that_is_nearly_an_address_is_advice(name: str) -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["server_id"] = name

    assert one(value, "HCC619")[0].startswith(
        f'server_id "{name}" {"has the netmask" if "/" in name else "is not an"}'
    )


@pytest.mark.parametrize("name", ["node-2", "10.0.0.2", "fd00::2", "10-0-0-2.example", "7"])
def test_a_server_id_that_is_a_name_or_an_address_is_sound(name: str) -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["server_id"] = name

    assert is_sound(value)


# Ranks


def test_two_exchanged_ranks_are_one_finding() -> None:
    value = table("1.0", 2, 8)
    servers(value)[0]["device"][7]["rank_id"], servers(value)[1]["device"][0]["rank_id"] = "8", "7"

    message, hint = one(value, "HCC205")

    assert message == 'ranks 7 and 8 are exchanged between servers "10.0.0.1" and "10.0.0.2"'
    assert hint == 'write "rank_id": "7" here, and "rank_id": "8" in the other place'


def test_ranks_device_by_device_are_one_block() -> None:
    value = table("1.0", 3, 8)
    for index, server in enumerate(servers(value)):
        for number, device in enumerate(server["device"]):
            device["rank_id"] = str(number * 3 + index)

    message, hint = one(value, "HCC205")

    assert message == "the ranks go device by device over all servers, and not server by server"
    assert '0-7 in "10.0.0.1", 8-15 in "10.0.0.2", 16-23 in "10.0.0.3"' in hint
    assert is_sound(numbered(value))


def test_two_servers_with_mixed_ranks_are_one_block() -> None:
    value = table("1.0", 4, 8)
    first, second = (servers(value)[index]["device"] for index in (1, 2))
    for number in range(4):
        first[number]["rank_id"], second[number]["rank_id"] = (
            second[number]["rank_id"],
            first[number]["rank_id"],
        )

    assert one(value, "HCC205")[1].endswith('8-15 in "10.0.0.2", 16-23 in "10.0.0.3"')
    assert is_sound(numbered(value))


def spare(value: Any, index: int) -> Any:
    """Return a server with the ranks of another one, and its own id and addresses."""
    new = deepcopy(servers(value)[index])
    new["server_id"] = "10.0.0.99"
    for number, device in enumerate(new["device"]):
        device["device_ip"] = f"192.168.99.{100 + number}"
    return new


def test_a_spare_beside_the_failed_server_is_one_finding() -> None:
    value = table("1.0", 4, 8)
    value["server_list"].append(spare(value, 1))

    (found,) = [each for each in report(value) if each.rule.id == "HCC203"]

    assert found.message == 'server 5 ("10.0.0.99") has the ranks 8-15 of server 2 ("10.0.0.2")'
    assert found.hint is not None
    assert found.hint.startswith('if it replaces server 2 ("10.0.0.2"), remove that server')
    servers(value)[1] = servers(value).pop()
    assert is_sound(value)


def test_a_server_that_kept_the_ranks_of_its_pattern_gets_its_own() -> None:
    value = table("1.0", 5, 8)
    servers(value)[3] = spare(value, 0)

    (found,) = [each for each in report(value) if each.rule.id == "HCC203"]

    assert found.hint == "give it ranks of its own: 24-31"
    assert is_sound(numbered(value))


def test_two_joined_tables_start_at_rank_0_again() -> None:
    value = table("2.0", 4, 2)
    for rank in value["rank_list"][4:]:
        rank["rank_id"] -= 4

    message, hint = one(value, "HCC203", "a5")

    assert (
        message
        == "entry 5 of rank_list is rank 0 again (4 ranks from there on), as if two tables were joined"
    )
    assert hint.startswith("continue the rank numbers with 4")


def test_two_joined_tables_of_several_servers_are_one_finding() -> None:
    value = table("1.0", 4, 8)
    for server in servers(value)[2:]:
        for device in server["device"]:
            device["rank_id"] = str(int(device["rank_id"]) - 16)

    message, _ = one(value, "HCC203")

    assert message == 'server "10.0.0.3" starts at rank 0 again (16 ranks), as if two tables were joined'


@pytest.mark.parametrize(("product", "table_format", "size"), [("a2", "1.0", 8), ("a3", "1.2", 16)])
def test_a_lost_device_is_added_with_its_rank(product: str, table_format: str, size: int) -> None:
    right = table(table_format, 4, size)
    value = deepcopy(right)
    lost = servers(value)[2]["device"].pop(5)

    _, hint = one(value, "HCC202", product)

    lacks = 'unlike the other servers, server 3 ("10.0.0.3") has no device 5'
    assert hint.startswith(f"{lacks}: add it with rank {lost['rank_id']} and its address")
    servers(value)[2]["device"].insert(5, lost)
    assert is_sound(value, product)


def test_a_lost_device_of_a_910a_gets_its_rank_too() -> None:
    value = table("1.0", 3, 8)
    del servers(value)[1]["device"][6]

    _, hint = one(numbered(value), "HCC306", "910a")

    assert hint.startswith(
        "add device 6 with rank 14 and the address that `hccn_tool -i 6 -ip -g` on 10.0.0.2"
    )
    assert "shows, and continue the rank numbers after it from 15; or" in hint
    assert hint.endswith("or remove this server, and correct the counts and ranks")


@pytest.mark.parametrize("lost", [2, 7])
def test_a_lost_device_of_a_single_910a_is_added(lost: int) -> None:
    right = table("1.0", 1, 8)
    value = deepcopy(right)
    del servers(value)[0]["device"][lost]
    value = numbered(value)

    (found,) = [each for each in report(value, "910a") if each.rule.id == "HCC304"]

    assert found.hint is not None
    assert found.hint.startswith(
        f"add device {lost} with rank {lost} and the address that `hccn_tool -i {lost} -ip -g`"
    )
    assert found.hint.endswith("if it is missing, or use 1, 2, 4 or 8 devices")


@pytest.mark.parametrize("lost", [[3], [3, 4]])
def test_the_only_device_that_a_group_list_lacks_is_named(lost: list[int]) -> None:
    value = table("group_list", 1, 8)
    entries = value["group_list"][0]["instance_list"][0]["devices"]
    for place in reversed(lost):
        del entries[place]
    value["group_list"][0]["device_count"] = str(len(entries))

    (found,) = [each for each in report(value, "910a") if each.rule.id == "HCC304"]

    named = "add device 3 if it is missing, or " if len(lost) == 1 else ""
    assert found.hint == f"{named}use 1, 2, 4 or 8 devices"


def test_a_lost_device_with_new_ranks_is_advice_where_hccl_accepts_it() -> None:
    value = table("1.0", 4, 8)
    del servers(value)[2]["device"][5]

    assert (
        one(numbered(value), "HCC639", "a2")[0]
        == 'server 3 ("10.0.0.3") has no device 5, unlike all other servers'
    )


@pytest.mark.parametrize("sizes", [(8, 4, 4), (4, 4), (8, 6, 4)])
def test_servers_of_other_sizes_are_sound_on_an_a2(sizes: tuple[int, ...]) -> None:
    value = table("1.0", len(sizes), 8)
    for server, size in zip(servers(value), sizes, strict=True):
        del server["device"][size:]

    assert is_sound(numbered(value), "a2")


@pytest.mark.parametrize(
    ("count", "index", "lost", "message"),
    [
        (8, 7, range(3, 8), "has 3 devices (0-2), and all other servers have 8: devices 3-7"),
        (3, 0, range(4), "has 4 devices (4-7), and all other servers have 8: devices 0-3"),
        (2, 0, [5], "has no device 5, unlike the other server"),
        (2, 1, range(1, 8), "has 1 device (0), and the other server has 8: devices 1-7"),
        (5, 2, [1, 6], "has 6 devices (0,2-5,7), and all other servers have 8: devices 1,6"),
    ],
)  # fmt: skip
def test_the_only_smaller_server_is_named(count: int, index: int, lost: Any, message: str) -> None:
    value = table("1.0", count, 8)
    devices = servers(value)[index]["device"]
    servers(value)[index]["device"] = [devices[one] for one in range(8) if one not in lost]

    found, hint = one(numbered(value), "HCC639", "a2")

    more = " are perhaps missing" if len(lost) > 1 else ""
    assert found == f'server {index + 1} ("10.0.0.{index + 1}") {message}{more}'
    assert f"`hccn_tool -i {lost[0]} -ip -g` on 10.0.0.{index + 1} shows" in hint


def test_a_lost_server_can_be_added_again() -> None:
    value = table("1.0", 5, 8)
    del servers(value)[2]

    assert one({**value, "server_count": "4"}, "HCC202")[1] == (
        'if the server with ranks 16-23 was lost, add it again there with "server_count": "5"; '
        "if it was removed on purpose, number the ranks from 16 on again: 16-31"
    )


# Super pods


def test_two_super_pods_of_one_id_get_two_ids() -> None:
    value = table("1.2", 4, 8, pods=2)
    for server, other in ((2, 0), (3, 1)):
        for device, first in zip(
            servers(value)[server]["device"], servers(value)[other]["device"], strict=True
        ):
            device["super_device_id"] = first["super_device_id"]
    assert is_sound(value, "a3")
    value["super_pod_list"][1]["super_pod_id"] = "0"

    message, hint = one(value, "HCC523", "a3")

    assert message.endswith("have the same super_device_ids: they are two super pods")
    assert hint == (
        "`npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 and on 10.0.0.3 shows the super pod of each: "
        'write these ids, such as "super_pod_id": "1" for one of the two'
    )
    value["super_pod_list"][1]["super_pod_id"] = "1"
    assert is_sound(value, "a3")


def test_a_super_pod_that_is_listed_again_is_removed() -> None:
    value = table("1.2", 2, 8)
    value["super_pod_list"] *= 2

    assert {each.hint for each in report(value, "a3") if each.rule.id == "HCC523"} == {"remove this entry"}


def test_servers_of_two_pods_in_one_get_another_pod() -> None:
    value = table("1.2", 2, 8)
    for device, first in zip(servers(value)[1]["device"], servers(value)[0]["device"], strict=True):
        device["super_device_id"] = first["super_device_id"]

    _, hint = one(value, "HCC528", "a3")

    assert 'give "10.0.0.2" a super pod of its own in super_pod_list' in hint
    pods = [
        {"super_pod_id": str(number), "server_list": [{"server_id": f"10.0.0.{number + 1}"}]}
        for number in range(2)
    ]
    assert is_sound({**value, "super_pod_list": pods}, "a3")


def test_a_part_of_the_super_device_ids_is_counted() -> None:
    value = table("1.2", 2, 8)
    for device, first in list(zip(servers(value)[1]["device"], servers(value)[0]["device"], strict=True))[:3]:
        device["super_device_id"] = first["super_device_id"]

    message, hint = one(value, "HCC528", "a3")

    assert message == '3 of the 8 super_device_ids of server "10.0.0.2" are those of server "10.0.0.1"'
    assert "super pod of its own" not in hint


def test_super_device_ids_that_moved_by_a_device_are_all_named() -> None:
    value = table("1.2", 2, 8)
    own = servers(value)[1]["device"]
    for number in range(7, 3, -1):
        own[number]["super_device_id"] = own[number - 1]["super_device_id"]

    message, hint = one(value, "HCC528", "a3")

    assert message.startswith(
        'the super_device_ids of devices 4,5,6,7 of server "10.0.0.2" are those of other devices'
    )
    assert "`npu-smi info -t spod-info -i 2 -c 0` on 10.0.0.2" in hint


def test_a_server_in_two_pods_is_removed_from_the_one_with_its_super_device_ids() -> None:
    value = table("1.2", 4, 8, pods=2)
    for server, other in ((2, 0), (3, 1)):
        for device, first in zip(
            servers(value)[server]["device"], servers(value)[other]["device"], strict=True
        ):
            device["super_device_id"] = first["super_device_id"]
    value["super_pod_list"][1]["server_list"].append({"server_id": "10.0.0.2"})

    found = report(value, "a3")

    assert {each.rule.id for each in found} == {"HCC528", "HCC530"}
    (hint,) = {each.hint for each in found if each.rule.id == "HCC528"}
    assert hint is not None
    assert hint.startswith('remove it from super pod "1"')


def test_a_server_in_two_pods_belongs_to_that_of_the_servers_beside_it() -> None:
    value = table("1.2", 4, 8, pods=2)
    value["super_pod_list"][1]["server_list"].append({"server_id": "10.0.0.1"})

    assert one(value, "HCC530", "a3")[1].startswith(
        'remove it from super pod "1": the servers beside it in server_list are in super pod "0"'
    )


def test_a_list_of_servers_that_was_joined_with_itself_is_one_block() -> None:
    value = table("1.2", 3, 8)
    value["super_pod_list"][0]["server_list"] *= 2

    assert one(value, "HCC530", "a3") == (
        'servers are listed twice in super pod "0"', "remove the second entry of each",
    )  # fmt: skip


def test_a_server_that_left_the_job_is_removed_from_its_super_pod() -> None:
    value = table("1.2", 3, 8)
    value["super_pod_list"][0]["server_list"].append({"server_id": "10.0.0.9"})

    assert one(value, "HCC524", "a3")[1].startswith("remove it here if it has left the job")


def test_server_ids_of_super_pods_in_another_spelling_are_one_block() -> None:
    value = table("1.2", 2, 8)
    for number, server in enumerate(servers(value)):
        server["server_id"] = f"node-{number}"
        value["super_pod_list"][0]["server_list"][number]["server_id"] = f"Node-{number}"

    assert one(value, "HCC524", "a3")[1] == 'write each as in server_list: "Node-0" as "node-0"'


def test_a_server_of_another_generation_is_removed() -> None:
    value = table("1.2", 3, 16)
    own = servers(value)[2]
    del own["device"][8:]
    for device in own["device"]:
        del device["super_device_id"]
    value["super_pod_list"][0]["server_list"].pop()

    message, hint = one(value, "HCC525", "a3")

    assert message.endswith(
        "and 8 devices where they have 16: it is probably a machine of another generation"
    )
    assert hint.startswith("remove it if it is not an A3")
    servers(value).pop()
    assert is_sound({**value, "server_count": "2"}, "a3")


def test_a_server_among_those_of_another_pod_is_in_that_pod() -> None:
    value = table("1.2", 4, 8, pods=2)
    first, second = (pod["server_list"] for pod in value["super_pod_list"])
    first.append(second.pop(1))

    message, hint = one(value, "HCC529", "a3")

    assert 'server "10.0.0.4" of super pod "0" is listed' in message
    assert "on 10.0.0.4 shows its super pod" in hint


def test_super_device_ids_without_super_pods_are_advice() -> None:
    value = table("1.2", 2, 8)
    del value["super_pod_list"]
    assert "the table has no super_pod_list" in one(value, "HCC638", "a3")[0]
    assert is_sound(value, "a2")
    for server in servers(value):
        for device in server["device"]:
            del device["super_device_id"]
    assert "no super_pod_list and no super_device_id" in one(value, "HCC638", "a3")[0]


def test_a_table_of_version_1_0_has_no_super_pods_either() -> None:
    value = table("1.0", 2, 8)

    message, hint = one(value, "HCC638", "a3")

    assert message.startswith("version is 1.0, and the table has no super_pod_list")
    assert 'add both and write "version": "1.2"' in hint
    assert hint.endswith("else check the table with --product a3-server")
    assert is_sound(value, "a3-server")
    assert is_sound(value, "a2")
    assert is_sound(table("1.0", 1, 8), "a3")


def test_a_table_of_version_1_0_may_have_super_device_ids_alone() -> None:
    sound = table("1.2", 2, 8)
    value = {key: item for key, item in sound.items() if key != "super_pod_list"} | {"version": "1.0"}

    message, hint = one(value, "HCC638", "a3")

    assert (
        message
        == "the devices have super_device_ids, but the table has no super_pod_list: HCCL uses no super pod"
    )
    assert hint is not None
    assert hint.startswith('write "version": "1.2", and add "super_pod_list"')
    assert is_sound(value | {"version": "1.2", "super_pod_list": sound["super_pod_list"]}, "a3")


def test_a_table_whose_program_has_not_filled_it_in_is_only_awaited() -> None:
    report = validate({"status": "initializing", "version": "1.0", "server_count": "0", "server_list": []})

    assert [found.rule.id for found in report.findings] == ["HCC106"]
    assert report.verdict == "hangs"


def test_super_pods_under_another_key_are_named() -> None:
    value = table("1.2", 2, 8)
    value["superpods"] = value.pop("super_pod_list")

    assert one(value, "HCC638", "a3")[1] == 'rename it to "super_pod_list"'


def test_a_super_pod_id_that_differs_by_a_blank_is_advice() -> None:
    value = table("1.2", 4, 8, pods=2)
    value["super_pod_list"][1]["super_pod_id"] = "0 "

    assert one(value, "HCC605", "a3")[0].endswith('HCCL takes it for another super pod than "0"')


def test_an_unknown_super_device_id_is_not_called_missing() -> None:
    value = table("1.2", 2, 8)
    for device in servers(value)[1]["device"]:
        device["super_device_id"] = "4294967295"

    assert one(value, "HCC527", "a3")[0].startswith("super_device_ids are 4294967295, which stands for none")


# Version 2.0


def with_layer_1(value: Any) -> Any:
    for number, rank in enumerate(value["rank_list"]):
        level = deepcopy(rank["level_list"][0])
        level.update(net_layer=1, net_instance_id="0", net_type="CLOS")
        level["rank_addr_list"][0].update(addr=f"10.9.0.{number + 1}")
        rank["level_list"].append(level)
    return value


def odd_instance(value: Any) -> None:
    value["rank_list"][5]["level_list"][1]["net_instance_id"] = "1"


def without_layer(value: Any) -> None:
    for rank in value["rank_list"][8:]:
        rank["level_list"].pop()


def other_types(value: Any) -> None:
    for number, rank in enumerate(value["rank_list"][8:]):
        rank["level_list"][1]["rank_addr_list"][0].update(addr_type="IPV6", addr=f"fd00::{number + 1}")


def fewer_addresses(value: Any) -> None:
    for rank in value["rank_list"]:
        extra = deepcopy(rank["level_list"][1]["rank_addr_list"][0])
        extra.update(addr=f"10.8.0.{rank['rank_id'] + 1}", ports=["1/7"])
        rank["level_list"][1]["rank_addr_list"].append(extra)
    value["rank_list"][9]["level_list"][1]["rank_addr_list"].pop()


@pytest.mark.parametrize(
    ("damage", "rule", "message", "hint"),
    [
        (
            odd_instance, "HCC634", 'rank 5 is in network instance "1" of layer 1',
            'write "net_instance_id": "0" in layer 1 of rank 5',
        ),
        (
            without_layer, "HCC635", "ranks 8-11 have no layer 1, which 8 other ranks have",
            "add layer 1 to ranks 8-11",
        ),
        (
            other_types, "HCC636", "ranks 8-11 have addresses of the type IPV6",
            "write addresses of the type IPV4",
        ),
        (
            fewer_addresses, "HCC454", "rank 9 has 1 address in layer 1, and 11 other ranks",
            "write the addresses that the rank lacks",
        ),
    ],
)  # fmt: skip
def test_ranks_with_other_levels_than_all_others_are_one_finding(
    damage: Callable[[Any], None], rule: str, message: str, hint: str
) -> None:
    value = with_layer_1(table("2.0", 3, 4))
    assert is_sound(value, "a5")

    damage(value)

    found = one(value, rule, "a5")
    assert found[0].startswith(message)
    assert found[1].startswith(hint)


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 5)])
def test_addresses_of_two_ranks_that_changed_places_are_one_finding(
    nodes: int, first: int, second: int
) -> None:
    value = with_layer_1(table("2.0", nodes, 4))
    one_rank, other = (value["rank_list"][number]["level_list"] for number in (first, second))
    for level, changed in zip(one_rank, other, strict=True):
        level["rank_addr_list"], changed["rank_addr_list"] = (
            changed["rank_addr_list"],
            level["rank_addr_list"],
        )

    message, _ = one(value, "HCC644", "a5")

    assert (
        "in layer 0 and layer 1 do not follow the order of all others: they are probably exchanged" in message
    )


def test_a_network_for_each_rank_of_a_node_is_sound() -> None:
    value = with_layer_1(table("2.0", 3, 4))
    for number, rank in enumerate(value["rank_list"]):
        rank["level_list"][1]["net_instance_id"] = f"rail{number % 4}"

    assert is_sound(value, "a5")


def test_eids_of_another_node_are_one_finding() -> None:
    value = table("2.0", 3, 4)
    for rank in value["rank_list"]:
        number = rank["rank_id"] if rank["rank_id"] < 8 else rank["rank_id"] - 4
        rank["level_list"][0]["rank_addr_list"][0].update(addr_type="EID", addr=f"{number + 1:032x}")

    message, hint = one(value, "HCC615", "a5")

    assert message.startswith("ranks 8-11 have EIDs of ranks 4-7 in layer 0: by the order of the others")
    assert "`hccl-tools gen` on node2" in hint


def test_a_spare_gets_the_local_id_that_its_node_lacks() -> None:
    value = table("2.0", 1, 4)
    value["rank_list"][2]["local_id"] = 64

    assert (
        one(value, "HCC331", "a5")[1]
        == 'add "replaced_local_id": 2, the local_id that no rank of its node has'
    )


def test_a_spare_of_another_node_is_not_solved_by_removing_a_device() -> None:
    value = table("2.0", 2, 4)
    value["rank_list"][2].update(local_id=64, replaced_local_id=2)

    message, hint = one(value, "HCC332", "a5")

    assert "of another node" in message
    assert not hint.startswith("remove")


# Work


@pytest.mark.parametrize(
    "name", ["ranks mixed", "pods", "copies", "lost devices", "levels", "equal addresses"]
)
def test_the_work_is_linear(name: str) -> None:
    def damaged(number: int) -> Any:
        if name == "levels":
            value = with_layer_1(table("2.0", number, 2))
            for rank in value["rank_list"][::3]:
                rank["level_list"][1]["net_instance_id"] = f"n{rank['rank_id']}"
                rank["level_list"][0]["rank_addr_list"][0].update(addr_type="EID", addr="0" * 32)
            return value
        value = table("1.2", number, 2)
        for index, server in enumerate(servers(value)):
            server["server_id"] = f"10.1.{index // 200}.{index % 200}"
            if name == "ranks mixed":
                server["device"][0]["rank_id"] = str(index)
            elif name == "copies":
                server["server_id"] = f"10.1.0.{index % 7}"
            elif name == "lost devices" and index % 3:
                server["device"].pop()
            elif name == "equal addresses":
                server["device"][0]["device_ip"] = "10.0.0.1"
        names = [{"server_id": server["server_id"]} for server in servers(value)]
        pods = [{"super_pod_id": str(index % 5), "server_list": [each]} for index, each in enumerate(names)]
        value["super_pod_list"] = pods if name == "pods" else [{"super_pod_id": "0", "server_list": names}]
        return value

    small, large = damaged(60), damaged(120)
    product = "a5" if name == "levels" else "a3"
    less = steps(lambda: validate(small, product=product))

    assert steps(lambda: validate(large, product=product)) < 2.4 * less
