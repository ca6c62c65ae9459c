"""Columns that a spreadsheet has filled on, moved or shortened, which HCCL accepts."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def cluster(servers: int = 2, devices: int = 16) -> Any:
    """Return a table of an A3 whose super_device_ids are numbered as on the machines."""
    value = table("1.2", servers, devices)
    for number, server in enumerate(value["server_list"]):
        for device in server["device"]:
            own = int(device["device_id"])
            device["super_device_id"] = str(number << 22 | own // 2 << 18 | own % 2 << 16 | own)
    return value


def column(value: Any, server: int, key: str) -> list[str]:
    return [device[key] for device in value["server_list"][server]["device"]]


def put(value: Any, server: int, key: str, texts: list[str]) -> Any:
    for device, text in zip(value["server_list"][server]["device"], texts, strict=True):
        device[key] = text
    return value


def said(value: Any, product: str | None = None) -> list[tuple[str, str, str, str]]:
    found = validate(value, product=product).findings
    return [(one.rule.id, one.pointer, one.message, one.hint or "") for one in found]


@pytest.mark.parametrize("last", [9, 10, 12])
def test_super_device_ids_counted_on_are_named_with_the_right_ones(last: int) -> None:
    value = cluster()
    own = column(value, 1, "super_device_id")
    right = list(own)
    for place in range(9, last + 1):
        own[place] = str(int(own[place - 1]) + 1)

    ((rule, pointer, message, hint),) = said(put(value, 1, "super_device_id", own))

    assert (rule, pointer) == ("HCC632", "/server_list/1/device/9/super_device_id")
    assert message.endswith("they are counted on from the row above, as a spreadsheet does")
    assert hint.endswith(", ".join(f'"{one}"' for one in right[9 : last + 1]))
    assert "`npu-smi info -t spod-info -i 4 -c 1` on 10.0.0.2" in hint


def test_another_numbering_of_half_the_devices_is_not_a_fault() -> None:
    value = cluster()
    own = column(value, 1, "super_device_id")

    assert said(value) == []
    assert (
        said(put(value, 1, "super_device_id", [*own[:8], *(str(int(one) + (1 << 21)) for one in own[8:])]))
        == []
    )


@pytest.mark.parametrize("server", [0, 1])
@pytest.mark.parametrize("by", [1, 15])
def test_a_column_of_super_device_ids_moved_by_a_row_is_named(server: int, by: int) -> None:
    value = cluster()
    own = column(value, server, "super_device_id")

    ((rule, _, message, hint),) = said(put(value, server, "super_device_id", own[by:] + own[:by]))

    assert rule == "HCC632"
    assert message.endswith("they are probably moved by one row")
    assert f'if it is "{own[0]}"' in hint


def lost_zero(servers: int) -> Any:
    """Return a table with the addresses .6 to .13 of each server: .10 has lost its 0 on the first ones."""
    value = table("1.0", 4, 8)
    for number, server in enumerate(value["server_list"]):
        texts = [f"192.168.{number}.{last}" for last in range(6, 14)]
        if number < servers:
            texts[4] = f"192.168.{number}.1"
        put(value, number, "device_ip", texts)
        assert server["server_id"] == f"10.0.0.{number + 1}"
    return value


@pytest.mark.parametrize("servers", [1, 3, 4])
def test_a_lost_zero_is_one_finding(servers: int) -> None:
    ((rule, pointer, message, hint),) = said(lost_zero(servers))

    assert (rule, pointer) == ("HCC631", "/server_list/0/device/4/device_ip")
    assert 'the last 0 of "192.168.0.10" was probably dropped' in message
    assert ("other place" in message) == (servers > 1)
    assert 'if it is "192.168.0.10"' in hint


def test_addresses_without_a_lost_zero_are_silent() -> None:
    assert said(lost_zero(0)) == []
    value = lost_zero(0)
    for number in range(4):
        own = column(value, number, "device_ip")
        put(value, number, "device_ip", [*own[:4], f"192.168.{number}.2", *own[5:]])
    assert said(value) == []


def test_decimal_numbers_in_strings_are_one_block() -> None:
    value = table("1.0", 2, 8)
    for device in value["server_list"][1]["device"]:
        device["rank_id"] += ".0"

    found = [one for one in validate(value).findings if one.rule.id == "HCC603"]

    assert len(found) == 8
    assert {one.alike for one in found} == {
        (
            "rank_ids are decimal numbers, as spreadsheets write them",
            'write each without the decimal point: "8.0" as "8"',
        )
    }


# Values of the row above


def rows(value: Any) -> list[dict[str, Any]]:
    return [device for server in value["server_list"] for device in server["device"]]


def fill(value: Any, key: str, begin: int, end: int) -> Any:
    """Give the rows from one on the value of the row before."""
    devices = rows(value)
    for row in range(begin, end):
        devices[row][key] = devices[row - 1][key]
    return value


@pytest.mark.parametrize(
    ("begin", "end", "where"),
    [
        (3, 5, 'devices 3-4 of server 1 ("10.0.0.1") are all that of device 2 in the row above'),
        (8, 16, 'devices 0-7 of server 2 ("10.0.0.2") are all that of device 7 of server 1 ("10.0.0.1")'),
        (6, 11, 'server 1 ("10.0.0.1") and server 2 ("10.0.0.2") are all that of device 5 of server 1'),
    ],
)
def test_addresses_of_the_row_above_are_one_finding(begin: int, end: int, where: str) -> None:
    ((rule, pointer, message, hint),) = said(fill(table("1.0", 4, 8), "device_ip", begin, end))

    assert rule == "HCC404"
    assert pointer == f"/server_list/{begin // 8}/device/{begin % 8}/device_ip"
    assert where in message
    assert message.endswith("the column was probably filled down, as a spreadsheet does")
    assert hint.startswith(f"write that of each device: `hccn_tool -i {begin % 8} -ip -g` on 10.0.0.")


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_one_address_for_all_rows_is_one_finding(servers: int) -> None:
    found = said(fill(table("1.0", servers, 8), "device_ip", 1, 8 * servers))

    assert len(found) == 1
    assert "filled down" in found[0][2] + found[0][3]
    assert "copy of a disk" not in found[0][3]


def test_the_right_addresses_follow_from_the_order_of_the_others() -> None:
    ((_, _, _, hint),) = said(fill(table("1.0", 4, 8), "device_ip", 10, 12))

    assert hint.endswith('; by the order of the others they are "192.168.1.102", "192.168.1.103"')


def test_one_address_of_the_row_above_is_named_as_such() -> None:
    ((_, _, message, hint),) = said(fill(table("1.0", 2, 8), "device_ip", 3, 4))

    assert message == 'device_ip "192.168.0.102" is used twice'
    assert "(this is that of the row above, which was perhaps filled down)" in hint


@pytest.mark.parametrize(("begin", "end"), [(3, 5), (1, 16), (16, 32), (1, 32)])
def test_super_device_ids_of_the_row_above_are_one_finding(begin: int, end: int) -> None:
    ((rule, _, message, _),) = said(fill(cluster(), "super_device_id", begin, end), "a3")

    assert rule == "HCC528"
    assert message.endswith("the column was probably filled down, as a spreadsheet does")


def test_one_server_id_for_all_servers_is_one_finding() -> None:
    value = table("1.0", 4, 8)
    for server in value["server_list"]:
        server["server_id"] = "10.0.0.1"

    ((rule, _, message, hint),) = said(value)

    assert rule == "HCC503"
    assert message.startswith('servers 1-4 all have the server_id "10.0.0.1": the column was probably filled')
    assert "write in each of the others the server_id of its own host" in hint


# Server_ids that go up row by row


def counted_on(hosts: int, devices: int = 8, *, restart: bool = False, table_format: str = "1.0") -> Any:
    """Return a table with an entry for each device, whose server_ids go up row by row."""
    value = table(table_format, hosts, devices)
    entries: list[Any] = []
    for place, server in enumerate(value["server_list"]):
        for number, device in enumerate(server["device"]):
            end = place + number + 1 if restart else len(entries) + 1
            entries.append({"server_id": f"10.0.0.{end}", "device": [device]})
    return {**value, "server_list": entries, "server_count": str(len(entries))}


@pytest.mark.parametrize("hosts", [1, 3])
def test_server_ids_that_go_up_with_the_devices_are_advice(hosts: int) -> None:
    found = [one for one in said(counted_on(hosts), "a2") if one[0] == "HCC649"]

    ((_, pointer, message, hint),) = found
    assert pointer == "/server_list/1/server_id"
    assert 'the server_ids go up with them from "10.0.0.1" to "10.0.0.8"' in message
    assert 'if it shows "192.168.0.101", devices 0-7 are of this host: list them in one entry' in hint
    assert f'write "server_count": "{hosts}"' in hint
    assert hint.endswith("if each of these hosts has one device in the job, nothing is wrong")
    assert validate(counted_on(hosts), product="a2").ok


@pytest.mark.parametrize("product", ["a2", "a3-server"])
def test_server_ids_that_go_up_again_in_each_server_are_one_error(product: str) -> None:
    found = said(counted_on(3, restart=True), product)

    assert [rule for rule, _, _, _ in found] == ["HCC503"]
    assert "and so in 2 other blocks of entries" in found[0][2]
    assert "give every entry the server_id of its own host" in found[0][3]


def test_errors_that_follow_from_counted_server_ids_name_them() -> None:
    across, *_ = [one for one in said(counted_on(2), "910a") if one[0] == "HCC308"]
    (pods,) = [one for one in said(counted_on(2, table_format="1.2"), "a3") if one[0] == "HCC525"]

    assert "devices 0-7 are of this host: list them in one entry" in across[3]
    assert across[3].endswith("--ignore HCC308")
    assert "the server_ids were probably counted on row by row" in pods[2]
    assert 'if each of these hosts has one device in the job, add {"server_id"' in pods[3]


@pytest.mark.parametrize("change", ["one device number", "other hosts"])
def test_one_device_of_each_host_is_sound(change: str) -> None:
    value = counted_on(1)
    for place, server in enumerate(value["server_list"]):
        if change == "one device number":
            server["device"][0]["device_id"] = "0"
        else:
            server["server_id"] = f"10.0.0.{3 * place + 1}"

    assert [one for one in said(value, "a2") if one[0] == "HCC649"] == []


@pytest.mark.parametrize(("product", "rule"), [("a2", "HCC649"), ("910a", "HCC306")])
def test_server_ids_counted_on_beside_a_whole_server_are_one_finding(product: str, rule: str) -> None:
    value: Any = table("1.0", 2, 8)
    first, second = value["server_list"]
    rows = [
        {"server_id": f"10.0.0.{2 + place}", "device": [one]} for place, one in enumerate(second["device"])
    ]
    value |= {"server_list": [first, *rows], "server_count": "9"}

    found = [one for one in validate(value, product=product).findings if one.rule.id == rule]

    assert len(found) == 1
    assert "entries 2-9 of server_list have one device each" in found[0].message
    assert 'the server_id "10.0.0.2", write "server_count": "2"; if each of these hosts has one' in str(
        found[0].hint
    )


def test_hosts_with_one_device_beside_whole_servers_are_sound() -> None:
    value: Any = table("1.0", 2, 8)
    first, second = value["server_list"]
    rows = [
        {"server_id": f"10.0.0.{9 - place}", "device": [one]} for place, one in enumerate(second["device"])
    ]
    value |= {"server_list": [first, *rows], "server_count": "9"}

    assert "HCC649" not in [one.rule.id for one in validate(value, product="a2").findings]
