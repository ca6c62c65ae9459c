"""Servers that are one host, addresses that no other host reaches, and lists that an entry has twice."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.rules.pages import page
from hccl_tools.rules.registry import rule_by_id
from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, numbered, one, report, servers
from tests.support.tables import table

# One host_ip


def pods(first: str, second: str, begin: int) -> Any:
    """Return two servers of four devices with these host_ips, the second with devices from a number on."""
    value = table("1.0", 2, 4)
    for server, address in zip(servers(value), (first, second), strict=True):
        server["host_ip"] = address
    for place, device in enumerate(servers(value)[1]["device"]):
        device["device_id"] = str(begin + place)
    return value


def test_two_pods_of_one_host_are_one_server() -> None:
    message, hint = one(pods("10.9.0.1", "10.9.0.1", 4), "HCC616", "a2")

    assert message.startswith('servers 1 and 2 have one host_ip, "10.9.0.1", and different devices')
    assert 'in one server with the server_id "10.9.0.1", and write "server_count": "1"' in hint
    value = pods("10.9.0.1", "10.9.0.1", 4)
    own, other = servers(value)
    own.update(server_id="10.9.0.1", device=[*own["device"], *other["device"]])
    assert is_sound({**value, "server_list": [own], "server_count": "1"}, "a2")


def test_a_copied_host_ip_is_not_that_of_another_host() -> None:
    message, hint = one(pods("10.9.0.1", "10.9.0.1", 0), "HCC616", "a2")

    assert message == 'servers 1 and 2 have one host_ip, "10.9.0.1", and list the same devices'
    assert hint.startswith("write in each the address of its own host")


@pytest.mark.parametrize("hosts", [("10.9.0.1", "10.9.0.2"), ("0.0.0.0", "0.0.0.0")])
def test_other_and_unset_host_ips_are_sound(hosts: tuple[str, str]) -> None:
    assert is_sound(pods(*hosts, 4), "a2")


# One server_id in two spellings


def test_a_host_in_two_entries_is_one_server() -> None:
    value = table("1.0", 3, 8)
    parted = deepcopy(servers(value)[1])
    parted["server_id"] += " "
    parted["device"], servers(value)[1]["device"] = parted["device"][4:], parted["device"][:4]
    servers(value).insert(2, parted)

    hint = one(numbered(value), "HCC616", "a2")[1]

    assert hint.startswith('list all devices of the host in one server, "10.0.0.2", remove the other entry')
    assert hint.endswith('write "server_count": "3"')


def test_two_entries_with_the_same_devices_are_not_joined() -> None:
    value = table("1.0", 2, 8)
    servers(value)[0]["server_id"], servers(value)[1]["server_id"] = "fd00::1", "fd00:0::1"

    assert one(value, "HCC616", "a2")[1].startswith("write the address of its own host in one of the two")


# Link-local addresses


@pytest.mark.parametrize("address", ["fe80::{}", "169.254.7.{}"])
def test_link_local_addresses_of_a_server_are_one_finding(address: str) -> None:
    value = table("1.0", 2, 4)
    for number, each in enumerate(servers(value)[0]["device"] + servers(value)[1]["device"]):
        each["device_ip"] = address.replace("fe80", "fd00").replace("169.254", "10.254").format(1 + number)
    for number, device in enumerate(servers(value)[1]["device"]):
        device["device_ip"] = address.format(1 + number)

    found = validate(json.dumps(value).encode(), product="a2")

    assert {each.rule.id for each in found.findings} == {"HCC614"}
    assert len({each.alike for each in found.findings}) == 1
    query = "-ip -inet6 -g" if ":" in address else "-ip -g"
    assert f"`hccn_tool -i 0 {query}` on 10.0.0.2" in (found.findings[0].hint or "")
    assert found.ok


@pytest.mark.parametrize("address", ["fec0::{}", "fdfe::{}", "169.253.7.{}"])
def test_addresses_beside_the_link_local_ones_are_sound(address: str) -> None:
    value = table("1.0", 1, 4)
    for number, device in enumerate(servers(value)[0]["device"]):
        device["device_ip"] = address.format(1 + number)

    assert is_sound(value, "a2")


# A list that an entry has twice


def twice(second: int) -> bytes:
    """Return a table whose first server has its devices in two lists, the second from a device on."""
    value = table("1.0", 2, 8)
    devices = servers(value)[0]["device"]
    text = json.dumps(value)
    both = f'"device": {json.dumps(devices[:4])}, "device": {json.dumps(devices[second : second + 4])}'
    return text.replace(f'"device": {json.dumps(devices)}', both).encode()


def test_the_second_list_of_an_entry_continues_the_first() -> None:
    hints = [each.hint or "" for each in validate(twice(4), product="a2").errors]

    assert len(hints) == 1
    assert hints[0].startswith(
        'an entry has "device" twice, and HCCL reads only the second list: move the entries of the first'
    )


def test_lists_that_repeat_a_device_are_of_two_entries() -> None:
    hints = [each.hint or "" for each in validate(twice(3), product="a2").errors]

    assert any("two entries are joined" in hint for hint in hints)


# Equal addresses of two hosts


def test_hosts_with_equal_addresses_are_told_apart_before_one_is_removed() -> None:
    value = table("1.0", 2, 8)
    for own, other in zip(servers(value)[1]["device"], servers(value)[0]["device"], strict=True):
        own["device_ip"] = other["device_ip"]

    (found,) = report(value, "a2")

    hint = found.hint or ""
    assert "on 10.0.0.2 and on 10.0.0.1 shows the address of device 0" in hint
    assert "`hccl-tools rules HCC404`" in hint
    assert "remove" not in hint
    assert len(hint.split()) <= 60
    assert "compare what `cat /proc/sys/kernel/random/boot_id` prints on both" in page(rule_by_id("HCC404"))


# One container_ip, a stand-in, names in the order of text


def containers(*addresses: str) -> Any:
    value = table("1.0", 2, 2)
    for server, address in zip(servers(value), addresses, strict=True):
        server["container_ip"] = address
    return value


def for_mindie(value: Any) -> list[tuple[str, Any]]:
    found = validate(json.dumps(value).encode(), product="a2", target="mindie").findings
    return [(each.rule.id, each.path) for each in found]


def test_one_container_ip_of_two_servers_is_that_of_the_first() -> None:
    wrong = ("server_list", 1, "container_ip")

    assert for_mindie(containers("10.0.0.1", "10.0.0.1")) == [("HCC682", wrong)]
    assert for_mindie(containers("10.0.0.2", "10.0.0.2")) == [("HCC682", ("server_list", 0, "container_ip"))]
    assert for_mindie(containers("10.0.0.1", "10.0.0.2")) == []


def test_container_ips_are_examined_without_a_target() -> None:
    (shared,) = validate(containers("10.0.0.1", "10.0.0.1"), product="a2").findings
    (no_address,) = validate(containers("10.0.0.1", "10.0.0.2/24"), product="a2").findings

    assert (shared.rule.id, shared.path) == ("HCC682", ("server_list", 1, "container_ip"))
    assert (no_address.rule.id, no_address.path) == ("HCC683", ("server_list", 1, "container_ip"))
    assert validate(containers("10.0.0.1", "10.0.0.2"), product="a2").findings == ()


def test_the_container_ip_of_a_server_that_is_listed_twice_is_not_reported() -> None:
    value = containers("10.0.0.1", "10.0.0.1")
    servers(value)[1]["server_id"] = servers(value)[0]["server_id"]

    assert "HCC682" not in {one.rule.id for one in validate(value, product="a2").findings}


@pytest.mark.parametrize(
    "text", ["10.0.0.2 ", "10\u30020.0.2", "[10.0.0.2](http://10.0.0.2)", "<http://10.0.0.2|10.0.0.2>"]
)
def test_a_container_ip_that_is_no_address_is_told_with_the_right_one(text: str) -> None:
    value = containers("10.0.0.1", text)

    assert for_mindie(value) == [("HCC683", ("server_list", 1, "container_ip"))]
    (found,) = validate(value, product="a2", target="mindie").findings
    assert (found.hint or "").startswith('write "10.0.0.2", if MIES_CONTAINER_IP has this value')


def test_a_container_ip_of_impossible_numbers_gets_the_command_alone() -> None:
    (found,) = validate(containers("10.0.0.1", "10.0.0.300"), product="a2", target="mindie").findings

    assert (found.hint or "").startswith("write the address that MIES_CONTAINER_IP has on that server: run")


def test_a_link_of_a_chat_names_each_place_of_an_entry() -> None:
    value = containers("10.0.0.1", "10.0.0.2")
    for key in ("server_id", "container_ip"):
        servers(value)[1][key] = "[10.0.0.2](http://10.0.0.2)"

    (name,) = (one for one in validate(value, product="a2").findings if one.rule.id == "HCC619")

    assert "has the form of a link, as a chat writes it" in name.message
    assert [one.path for one in name.related] == [("server_list", 1, "container_ip")]


def stand_in(number: int, name: str) -> Any:
    value = table("1.0", number, 8)
    servers(value)[2]["server_id"] = name
    return value


def test_a_stand_in_with_the_addresses_of_the_host_before_it_is_advice() -> None:
    message, hint = one(stand_in(6, "10.0.0.77"), "HCC633", "a2")

    assert 'by the order of the others they are those of "10.0.0.3", which is not in the table' in message
    assert hint.startswith("`hccn_tool -i 0 -ip -g` on 10.0.0.77 shows the address of device 0: if it is not")
    assert hint.endswith('if it is "192.168.2.100", nothing is wrong')


def test_a_server_with_the_addresses_of_no_host_of_the_row_is_sound() -> None:
    value = stand_in(6, "10.0.0.77")
    for number, device in enumerate(servers(value)[2]["device"]):
        device["device_ip"] = f"192.168.80.{100 + number}"

    assert is_sound(value, "a2")


def test_few_servers_are_no_pattern() -> None:
    assert is_sound(stand_in(4, "10.0.0.77"), "a2")


def instances(*names: str) -> Any:
    value = table("group_list", len(names), 8)
    listed = value["group_list"][0]["instance_list"]
    for place, entry in enumerate(listed):
        entry["server_id"] = names[place]
    return value


def test_instances_that_are_sorted_as_text_are_advice() -> None:
    message, hint = one(instances("node_9", "node_10"), "HCC645", "910a")

    assert '"node_10" is before "node_9"' in message
    assert hint.startswith('write all numbers with 2 digits ("node_09" in place of "node_9")')


@pytest.mark.parametrize("names", [("node_8", "node_9"), ("node_09", "node_10"), ("10.0.0.9", "10.0.0.10")])
def test_instances_in_the_order_of_the_file_and_addresses_are_sound(names: tuple[str, ...]) -> None:
    assert is_sound(instances(*names), "910a")


# A server without its host, versions, equal findings


def without_host(name: str, address: str) -> Any:
    value = table("1.0", 4, 8)
    servers(value)[2]["server_id"] = name
    for device in servers(value)[2]["device"]:
        device["device_ip"] = address and address + device["device_ip"].rpartition(".")[2]
    return value


@pytest.mark.parametrize("address", [".", ""])
def test_the_empty_values_of_a_template_are_one_finding(address: str) -> None:
    message, hint = one(without_host("", address), "HCC502", "a2")

    assert message.startswith("server_id of server 3 is empty, and ")
    assert 'by the order of the others it is "10.0.0.3"' in hint


def test_two_empty_servers_are_not_copies_of_each_other() -> None:
    value = table("1.0", 4, 8)
    for server in servers(value)[1:3]:
        server["server_id"] = ""
        for device in server["device"]:
            device["device_ip"] = "." + device["device_ip"].rpartition(".")[2]

    assert [each.rule.id for each in report(value, "910a")] == ["HCC502", "HCC502"]


def test_an_empty_server_of_a_service_table_is_one_finding() -> None:
    value = table("server_group_list", 2, 4)
    server = value["server_group_list"][2]["server_list"][0]
    server["server_id"] = ""
    for device in server["device"]:
        device["device_ip"] = "." + device["device_ip"].rpartition(".")[2]

    (found,) = report(value)

    assert found.message.startswith("server_id is empty, and its device_ips lack their beginning")
    assert "`hccn_tool -i 0 -ip -g`" in (found.hint or "")


def test_an_empty_server_id_alone_says_nothing_of_the_addresses() -> None:
    assert one(without_host("", "192.168.2."), "HCC502", "a2")[0] == "server_id is empty"


def test_a_version_that_the_product_does_not_read_is_not_advised() -> None:
    value = {**table("1.2", 2, 8, 1), "version": "2.0"}

    hints = {each.hint or "" for each in report(value, "a5") if each.rule.id == "HCC111"}

    (hint,) = hints
    assert (
        "which Ascend 950 does not read: make a new 2.0 table on its hosts, `hccl-tools gen --product a5`"
        in hint
    )
    assert 'write "version": "1.2"' in {each.hint or "" for each in report(value, "a3")}.pop()
    (assumed,) = {each.hint or "" for each in report(value)}
    assert assumed.startswith(
        'this is a table of version 1.2 (it has server_list): write "version": "1.2"; only if'
    )


def test_devices_that_occur_twice_are_one_block() -> None:
    value = table("1.0", 1, 8)
    for place, device in enumerate(servers(value)[0]["device"]):
        device["device_id"] = str(place // 2)
        device.pop("device_ip")

    message, hint = one(value, "HCC303", "300i")

    assert message == 'devices 0,1,2,3 occur more than once on server "10.0.0.1", devices 4,5,6,7 not at all'
    assert "each of 0-7 once; a card may have two devices" in hint


def test_an_invisible_sign_that_is_refused_is_one_finding() -> None:
    value = table("1.0", 1, 4)
    servers(value)[0]["device"][1]["device_ip"] += "\u200b"

    assert [each.rule.id for each in report(value, "a2")] == ["HCC403"]


@pytest.mark.parametrize(
    ("number", "known", "is_said"), [(1, False, True), (1, True, False), (2, False, False)]
)
def test_one_server_without_addresses_needs_none(number: int, known: bool, is_said: bool) -> None:
    value = table("1.0", number, 4)
    for server in servers(value):
        for device in server["device"][int(known) :]:
            device["device_ip"] = "-.-.-.-"

    hint = one(value, "HCC403", "a2")[1]

    assert ("if the host shows none, remove device_ip from all devices" in hint) == is_said


@pytest.mark.parametrize(
    ("table_format", "product", "is_needless"), [("1.2", "a3", True), ("1.0", "a2", False)]
)
def test_a_table_of_a_plug_in_that_reads_no_address(
    table_format: str, product: str, is_needless: bool
) -> None:
    value = table(table_format, 2, 4)
    for server in servers(value):
        for device in server["device"]:
            device["device_ip"] = "-1"

    message, hint = one(value, "HCC403", product)

    assert message.startswith(
        'device_ips are "-1", not IP addresses: MindCluster\'s device plug-in writes it'
    )
    assert hint.startswith("`hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0, and so on")
    assert ('HCCL takes "" here' in hint) == is_needless
    if is_needless:
        assert is_sound(json.loads(json.dumps(value).replace('"-1"', '""')), product)


def test_addresses_with_a_netmask_are_one_block() -> None:
    value = table("1.0", 1, 4)
    for device in servers(value)[0]["device"]:
        device["device_ip"] += "/255.255.255.0"

    message, hint = one(value, "HCC403", "a2")

    assert message == 'device_ips have the netmask "/255.255.255.0"'
    assert hint.startswith('write "192.168.0.100" in place of "192.168.0.100/255.255.255.0"')
