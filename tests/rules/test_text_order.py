"""Columns that were sorted as text, mistyped server_ids, and super_device_ids of other devices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Diagnostic


def found(value: Any) -> list[Diagnostic]:
    return list(validate(value).findings)


def column(value: Any, key: str) -> list[str]:
    return [device[key] for server in value["server_list"] for device in server["device"]]


def write(value: Any, key: str, texts: list[str]) -> None:
    rest = iter(texts)
    for server in value["server_list"]:
        for device in server["device"]:
            device[key] = next(rest)


def sorted_in_each(value: Any, key: str) -> None:
    for server in value["server_list"]:
        for device, text in zip(server["device"], sorted(one[key] for one in server["device"]), strict=True):
            device[key] = text


def from_8_on(servers: int = 3) -> Any:
    """Return a table whose addresses end in 8 to 15 on each server."""
    value = table("1.0", servers, 8)
    write(value, "device_ip", [f"192.168.{row // 8}.{8 + row % 8}" for row in range(8 * servers)])
    return value


def of_one_network(servers: int = 3) -> Any:
    """Return a table whose addresses end in 1 to N."""
    value = table("1.0", servers, 8)
    write(value, "device_ip", [f"192.168.0.{row + 1}" for row in range(8 * servers)])
    return value


@pytest.mark.parametrize("servers", [1, 3])
def test_addresses_sorted_as_text_on_each_server_are_reported(servers: int) -> None:
    value = from_8_on(servers)
    sorted_in_each(value, "device_ip")

    (one,) = found(value)

    assert one.rule.id == "HCC645"
    assert '"192.168.0.15" is before "192.168.0.8"' in one.message
    assert 'if it is "192.168.0.8", sort the device_ips of each server by their numbers' in (one.hint or "")


def test_addresses_sorted_as_text_over_all_servers_are_reported() -> None:
    value = of_one_network()
    write(value, "device_ip", sorted(column(value, "device_ip")))

    (one,) = found(value)

    assert one.rule.id == "HCC645"
    assert (one.hint or "").endswith("sort the device_ips of all servers together by their numbers")


def whole_rows_sorted() -> Any:
    value = from_8_on()
    for server in value["server_list"]:
        server["device"].sort(key=lambda device: device["device_ip"])
    write(value, "rank_id", [str(rank) for rank in range(24)])
    return value


def downwards() -> Any:
    value = from_8_on()
    write(value, "device_ip", [f"192.168.{row // 8}.{15 - row % 8}" for row in range(24)])
    return value


def three_devices() -> Any:
    value = table("1.0", 1, 2)
    write(value, "device_ip", ["192.168.0.10", "192.168.0.9"])
    return value


def named(names: list[str]) -> Any:
    value = from_8_on(len(names))
    for server, name in zip(value["server_list"], names, strict=True):
        server["server_id"] = name
    return value


@pytest.mark.parametrize(
    "make",
    [
        from_8_on,
        of_one_network,
        downwards,
        three_devices,
        lambda: named(["node1", "node2", "node9", "node10"]),
        lambda: named(["node01", "node02", "node10", "node11"]),
        lambda: named(["10.0.0.1", "10.0.0.2", "10.0.0.33", "10.0.0.4"]),  # mistyped
        lambda: named(["alpha", "beta", "gamma", "k10"]),
    ],
)
def test_other_orders_are_not_those_of_text(make: Callable[[], Any]) -> None:
    assert not [one for one in found(make()) if one.rule.id == "HCC645"]


def test_whole_rows_sorted_as_text_are_sound() -> None:
    assert not [one for one in found(whole_rows_sorted()) if one.rule.id in ("HCC631", "HCC645")]


def test_server_ids_sorted_as_text_alone_are_reported() -> None:
    names = [f"10.0.0.{number}" for number in range(1, 13)]

    (one,) = found(named(sorted(names)))

    assert one.rule.id == "HCC645"
    assert one.message.startswith('the server_ids are in the order of text, "10.0.0.12" before "10.0.0.2"')
    assert found(named(names)) == []


@pytest.mark.parametrize(
    ("wrong", "is_reported"), [("10.0.1.4", True), ("10.0.0.44", True), ("172.16.9.9", True)]
)
def test_a_mistyped_server_id_is_reported_and_another_one_is_not(wrong: str, *, is_reported: bool) -> None:
    value = table("1.0", 6, 8)
    value["server_list"][3]["server_id"] = wrong

    report = found(value)

    assert bool(report) == is_reported
    if is_reported:
        assert report[0].rule.id == "HCC633"
        assert report[0].pointer == "/server_list/3/server_id"
        hint = report[0].hint or ""
        assert hint.startswith(f"`hccn_tool -i 0 -ip -g` on {wrong} shows the address of device 0")
        assert 'if it is "192.168.3.100", nothing is wrong' in hint
        assert hint.endswith('on 10.0.0.4 shows "192.168.3.100", write "10.0.0.4"')


def of_pods() -> Any:
    """Return a table of 16 devices a server, as of an A3, whose super_device_ids have 1 to 6 digits."""
    value = table("1.2", 4, 16, pods=2)
    for server in value["server_list"]:
        for device in server["device"]:
            device["super_device_id"] = str(
                int(device["super_device_id"]) + int(device["device_id"]) * 262144
            )
    return value


def test_super_device_ids_sorted_as_text_on_each_server_are_reported() -> None:
    value = of_pods()
    assert found(value) == []
    sorted_in_each(value, "super_device_id")

    report = [one for one in found(value) if one.rule.id == "HCC632"]

    assert len(report) == 1
    assert "are in another order than the device_ids" in report[0].message
    assert "whose low 16 bits are its device_id" in (report[0].hint or "")


def test_super_device_ids_sorted_as_text_over_all_servers_are_reported() -> None:
    value = of_pods()
    write(value, "super_device_id", sorted(column(value, "super_device_id")))

    assert [one.rule.id for one in found(value)] == ["HCC632"]


def test_super_device_ids_without_device_ids_in_them_are_sound() -> None:
    value = of_pods()
    write(value, "super_device_id", [str(100 + row) for row in range(64)])

    assert not [one for one in found(json.loads(json.dumps(value))) if one.rule.id == "HCC632"]


@pytest.mark.parametrize(("wrong", "place"), [(2, 2), (3, 3)])
def test_the_wrong_one_of_two_equal_device_ids_is_named_by_the_order_of_the_entries(
    wrong: int, place: int
) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][wrong]["device_id"] = "3" if wrong == 2 else "2"

    (one,) = found(value)

    assert one.rule.id == "HCC303"
    assert one.pointer == f"/server_list/1/device/{place}/device_id"
    assert f'write "{wrong}" as the device_id of the {"first" if wrong == 2 else "second"} of the two' in (
        one.hint or ""
    )


def test_a_mistyped_device_id_is_told_from_a_mistyped_address() -> None:
    value = table("1.0", 4, 8)
    device = value["server_list"][1]["device"][2]
    device["device_id"] = "12"

    (by_id,) = validate(value, product="a2").findings
    device.update(device_id="2", device_ip="192.168.1.112")
    (by_address,) = validate(value, product="a2").findings

    assert by_id.pointer == "/server_list/1/device/2/device_id"
    assert (by_id.hint or "").endswith('if it is "192.168.1.102", write "device_id": "2"')
    assert by_address.pointer == "/server_list/1/device/2/device_ip"
    assert (by_address.hint or "").endswith('by the order of the others it is "192.168.1.102"')


@pytest.mark.parametrize("end", [" ", "\u00a0"])
def test_blanks_in_a_server_id_are_not_a_mistyped_server_id(end: str) -> None:
    value = table("1.0", 6, 8)
    value["server_list"][3]["server_id"] += end

    report = found(value)

    assert "HCC633" not in {one.rule.id for one in report}
    assert ("has blanks at its ends" in report[0].message) == (end == " ")


# Columns of device_ids and ranks


def of_super_pod(servers: int = 2) -> Any:
    """Return an A3 table with sixteen devices on each server, whose addresses end in 6 to 21."""
    value = table("1.2", servers, 16)
    write(value, "device_ip", [f"192.168.{row // 16}.{6 + row % 16}" for row in range(16 * servers)])
    return value


def in_server(value: Any, server: int, key: str, texts: list[str]) -> None:
    for device, text in zip(value["server_list"][server]["device"], texts, strict=True):
        device[key] = text


def of_server(value: Any, server: int, key: str) -> list[str]:
    return [device[key] for device in value["server_list"][server]["device"]]


@pytest.mark.parametrize("server", [0, 1])
def test_device_ids_in_the_order_of_text_are_the_wrong_column(server: int) -> None:
    value = of_super_pod()
    in_server(value, server, "device_id", sorted(of_server(value, server, "device_id")))

    (one,) = found(value)

    assert one.rule.id == "HCC645"
    assert one.message.startswith(
        f'the device_ids of server {server + 1} ("10.0.0.{server + 1}") are in the '
    )
    assert (one.hint or "").startswith(
        f"`hccn_tool -i 10 -ip -g` on 10.0.0.{server + 1} shows the address of device 10: if it is "
        f'"192.168.{server}.16", and not "192.168.{server}.8", write the device_ids of this server in the '
        "order of numbers, 0-15"
    )


def test_device_ids_in_the_order_of_text_need_no_addresses_beside_super_device_ids() -> None:
    value = of_super_pod()
    for server in value["server_list"]:
        for device in server["device"]:
            del device["device_ip"]
    in_server(value, 0, "device_id", sorted(of_server(value, 0, "device_id")))

    (one,) = found(value)

    assert one.rule.id == "HCC645"
    assert "hccn_tool" not in (one.hint or "")


@pytest.mark.parametrize("key", ["device_id", "super_device_id"])
def test_entries_that_were_sorted_whole_are_sound(key: str) -> None:
    value = of_super_pod()
    value["server_list"][0]["device"].sort(key=lambda device: device[key])

    assert not found(value)


@pytest.mark.parametrize(("first", "second"), [(2, 3), (0, 15)])
def test_device_ids_that_addresses_and_super_device_ids_contradict_are_exchanged(
    first: int, second: int
) -> None:
    value = of_super_pod()
    texts = of_server(value, 0, "device_id")
    texts[first], texts[second] = texts[second], texts[first]
    in_server(value, 0, "device_id", texts)

    (one,) = found(value)

    assert one.rule.id == "HCC632"
    assert "follow neither their super_device_ids nor their device_ips" in one.message
    assert f'exchange the two device_ids: "{first}", "{second}"' in (one.hint or "")


def test_super_device_ids_that_addresses_contradict_are_themselves_exchanged() -> None:
    value = of_super_pod()
    texts = of_server(value, 0, "super_device_id")
    texts[2], texts[3] = texts[3], texts[2]
    in_server(value, 0, "super_device_id", texts)

    (one,) = found(value)

    assert one.pointer == "/server_list/0/device/2/super_device_id"


def test_ranks_in_the_order_of_text_are_reported() -> None:
    value = of_super_pod()
    in_server(value, 0, "rank_id", sorted(of_server(value, 0, "rank_id")))

    (one,) = found(value)

    assert one.rule.id == "HCC645"
    assert "device 2 has rank 10" in one.message
    assert (one.hint or "").startswith("write the rank_ids 0-15 from the first entry")


@pytest.mark.parametrize("key", ["device_ip", "device_id"])
@pytest.mark.parametrize("by", [1, -1])
def test_a_column_of_one_of_two_servers_that_is_moved_by_a_row_is_reported(key: str, by: int) -> None:
    value = from_8_on(2)
    texts = of_server(value, 1, key)
    in_server(value, 1, key, [*texts[by:], *texts[:by]])

    (one,) = found(value)

    assert one.rule.id == "HCC631"
    assert one.message.startswith(f'the {key}s of server 2 ("10.0.0.2") are probably moved')
    assert '`hccn_tool -i 0 -ip -g` on 10.0.0.2 shows the address of device 0: if it is "192.168.1.8"' in (
        one.hint or ""
    )


def test_entries_of_one_of_two_servers_that_are_moved_whole_are_sound() -> None:
    value = from_8_on(2)
    devices = value["server_list"][1]["device"]
    ranks = of_server(value, 1, "rank_id")
    devices.append(devices.pop(0))
    in_server(value, 1, "rank_id", ranks)

    assert not found(value)


def sorted_as_text(devices: int, *, with_ranks: bool = True) -> Any:
    """Return a table whose entries are in the order of their device_ids as text, with ranks in this order."""
    value = table("1.0", 1, devices)
    entries = sorted(value["server_list"][0]["device"], key=lambda one: str(one["device_id"]))
    for rank, entry in enumerate(entries):
        entry["rank_id"] = str(rank) if with_ranks else entry["rank_id"]
    value["server_list"][0]["device"] = entries
    return value


def test_entries_sorted_as_text_with_their_ranks_are_reported() -> None:
    (found,) = validate(sorted_as_text(16), product="a2").findings

    assert found.rule.id == "HCC645"
    assert "device 10 after device 1, and their ranks follow this order" in found.message
    assert 'rank "2" is on device 10' in found.message
    assert found.hint is not None
    assert found.hint.startswith("unless this order is intended, sort the entries of each server")


def test_eight_entries_and_entries_with_their_own_ranks_are_in_no_order_of_text() -> None:
    assert not validate(sorted_as_text(8), product="a2").findings
    told = [one.message for one in validate(sorted_as_text(16, with_ranks=False), product="a2").findings]
    assert not any("their ranks follow this order" in one for one in told)


def test_a_netmask_among_the_addresses_is_not_an_order() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][0]["device_ip"] = "255.255.0.0"

    assert [one.rule.id for one in validate(value, product="a2").findings] == ["HCC614"]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("sorted_ones", [[1], [0, 1, 2]])
def test_device_ids_in_the_order_of_text_beside_addresses_in_that_of_numbers_are_reported(
    sorted_ones: list[int], step: int
) -> None:
    value = table("1.0", 3, 16)
    addresses = [f"192.168.{server}.{100 + step * place}" for server in range(3) for place in range(16)]
    write(value, "device_ip", addresses)
    for server in sorted_ones:
        entry = value["server_list"][server]
        for device, text in zip(entry["device"], sorted(map(str, range(16))), strict=True):
            device["device_id"] = text

    (one,) = validate(value, product="a3-server").findings

    assert one.rule.id == "HCC645"
    assert one.message.startswith(f'the device_ids of server {sorted_ones[0] + 1} ("10.0.0.')
    assert one.message.endswith("in the order of text: 15 is before 2; the column was probably sorted alone")
