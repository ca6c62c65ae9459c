"""Many findings of one cause are one block that says the cause; its remedy leads to a sound table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.diagnostics import render
from hccl_tools.validation.checker import validate
from hccl_tools.validation.correction import correct
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator


def blocks(value: Any, product: str | None = None) -> list[str]:
    """Return the findings of a table as a user sees them: "error[HCC203]: ..." with all lines of each."""
    report = validate(json.dumps(value, indent=1, ensure_ascii=False).encode(), product=product)
    text = "".join(render([report], "text", show_all=False, color=False))
    return [one for one in text.split("\n\n") if one.startswith(("error[", "warning["))]


def help_of(block: str) -> str:
    return block.partition("= help: ")[2].rstrip()


def fixed(value: Any) -> Any:
    return json.loads(correct(json.dumps(value).encode(), lambda data: validate(data, limit=None)).data)


def devices(value: Any, server: int = 1) -> Iterator[dict[str, Any]]:
    return iter(value["server_list"][server]["device"])


def test_numbers_of_a_spreadsheet_are_lost() -> None:
    value = table("1.2", 2, 8)
    for number, device in enumerate(devices(value)):
        device["super_device_id"] = f"1.{number}0E+06"

    (error,) = blocks(value)

    assert "exponent notation: a spreadsheet has rounded the numbers" in error
    assert "`npu-smi info -t spod-info" in help_of(error)
    assert 'write "1"' not in error
    assert "\nHCC603 says the same as HCC528, of 8 places" in error
    assert "in 8 places" in error  # Device 1 of the first server has the super_device_id 1, too.


@pytest.mark.parametrize("text", ["1.05E+06", "4,19E+06", "1e6"])
def test_a_number_in_exponent_notation_gets_no_value(text: str) -> None:
    value = table("1.2", 1, 2)
    value["server_list"][0]["device"][1]["super_device_id"] = text

    (block,) = blocks(value)

    assert block.startswith("warning[HCC603]")
    assert "shows the SDID of device 1" in help_of(block)
    assert "write" not in help_of(block)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (" 07", 'write "7"'),
        ("1,048,576", 'write "1048576", without signs between the digits'),
        ("0x10", 'write "16", the decimal number; HCCL does not read hexadecimal ones'),
        ("7.5", "write the number without other signs; `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1"),
    ],
)
def test_a_value_is_offered_only_if_it_is_certain(text: str, hint: str) -> None:
    value = table("1.2", 1, 2)
    value["server_list"][0]["device"][0]["super_device_id"] = text

    block = blocks(value)[-1]

    assert help_of(block).startswith(hint)


def test_super_device_ids_of_another_server_are_one_block() -> None:
    value = table("1.2", 2, 8)
    for own, other in zip(devices(value), devices(value, 0), strict=True):
        own["super_device_id"] = other["super_device_id"]

    (block,) = blocks(value)

    assert 'super_device_ids of server "10.0.0.2" are those of server "10.0.0.1"' in block
    assert "in 8 places" in block


@pytest.mark.parametrize("key", ["superDeviceId", "super-device-id", "SUPER_DEVICE_ID"])
def test_a_key_that_is_misspelt_in_many_devices_is_one_block_and_is_renamed(key: str) -> None:
    value = table("1.2", 2, 8)
    for device in devices(value):
        device[key] = device.pop("super_device_id")

    (block,) = blocks(value)

    assert block.startswith(f'error[HCC527]: "super_device_id" is missing, and "{key}" looks like it')
    assert "in 8 places" in block
    assert fixed(value) == table("1.2", 2, 8)


def test_an_optional_key_that_is_misspelt_is_one_block_and_is_renamed() -> None:
    value = table("1.0", 2, 8)
    for device in devices(value):
        device["devicePort"] = "16666"

    (block,) = blocks(value)

    assert block.startswith('warning[HCC604]: key "devicePort" is ignored')
    assert "in 8 places" in block
    assert {device["device_port"] for device in devices(fixed(value))} == {"16666"}


def test_a_misspelt_key_beside_the_right_one_is_not_renamed() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][0].update(device_port="16666", devicePort="16667")

    assert fixed(value) == value


def test_ranks_that_repeat_those_of_another_node_have_its_net_instance_id() -> None:
    value = table("2.0", 2, 2)
    names = [one["level_list"][0]["net_instance_id"] for one in value["rank_list"]]
    for rank in value["rank_list"][2:]:
        rank["level_list"][0]["net_instance_id"] = names[0]

    (block,) = blocks(value)

    assert block.startswith("error[HCC334]: ranks 2-3 and ranks 0-1 have the same local_ids and device_ids")
    assert "/rank_list/2/level_list/0/net_instance_id" in block
    assert "write the net_instance_id of their own node in layer 0 of ranks 2-3" in help_of(block)
    assert "device_id" not in help_of(block)


def test_a_single_device_id_that_repeats_is_that_of_its_rank() -> None:
    value = table("2.0", 1, 2)
    value["rank_list"][1]["device_id"] = 0

    (block,) = blocks(value)

    assert help_of(block) == "give every rank of a node its own device_id"


def test_servers_of_a_pod_as_strings_are_one_block() -> None:
    value = table("1.2", 2, 2)
    value["super_pod_list"][0]["server_list"] = ["10.0.0.1", "10.0.0.2"]

    (block,) = blocks(value)

    assert "servers of super pods are strings, not objects with server_id" in block
    assert help_of(block) == 'write {"server_id": ...} around each string'


def test_a_single_server_of_a_pod_as_string_gets_its_own_value() -> None:
    value = table("1.2", 1, 2)
    value["super_pod_list"][0]["server_list"] = ["10.0.0.1"]

    (block,) = blocks(value)

    assert help_of(block) == 'write an object in place of the string: {"server_id": "10.0.0.1"}'


def test_super_pods_by_id_get_the_form_of_the_list() -> None:
    value = table("1.2", 2, 2, pods=2)
    value["super_pod_list"] = {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}

    (block,) = blocks(value)

    assert '[{"super_pod_id": "a", "server_list": [{"server_id": "10.0.0.1"}, ...]}, ...]' in help_of(block)
    assert "leave" not in help_of(block)


@pytest.mark.parametrize("pods", [1, 2])
def test_an_id_of_a_super_pod_is_offered_only_if_there_is_one(pods: int) -> None:
    value = table("1.2", 2, 2, pods=pods)
    for pod in value["super_pod_list"]:
        del pod["super_pod_id"]

    block = blocks(value)[0]

    assert ('"super_pod_id": "0"' in help_of(block)) == (pods == 1)


def test_another_product_is_not_offered_for_a_table_of_an_a3() -> None:
    value = table("1.2", 2, 8)
    value["super_pod_list"][0]["server_list"].pop()

    assert validate(value).accepted_on == ""


@pytest.mark.parametrize(
    ("source", "target", "numbers"), [(1, 0, [3]), (0, 1, [0]), (2, 0, [2, 5]), (1, 2, [0, 7])]
)
def test_entries_in_the_list_of_another_server_are_moved(
    source: int, target: int, numbers: list[int]
) -> None:
    value = table("1.0", 3, 8)
    own = value["server_list"][source]["device"]
    value["server_list"][target]["device"] += [own[number] for number in numbers]
    value["server_list"][source]["device"] = [one for number, one in enumerate(own) if number not in numbers]

    found = blocks(value)

    assert len(found) == len(numbers)
    for block, number in zip(found, numbers, strict=True):
        assert f'device {number} with rank "{source * 8 + number}", is in the list of server' in block
        assert help_of(block) == f'move the entry to the list of server "10.0.0.{source + 1}"'


def test_entries_of_two_servers_that_changed_places_are_named() -> None:
    value = table("1.0", 2, 8)
    first, second = (one["device"] for one in value["server_list"])
    first[3], second[3] = second[3], first[3]

    found = blocks(value)

    assert [one.partition(" is in the list")[0] for one in found] == [
        'error[HCC205]: rank "11"',
        'error[HCC205]: rank "3"',
    ]
    assert help_of(found[0]).startswith(
        "`hccn_tool -i 3 -ip -g` on 10.0.0.1 shows the address of device 3: if"
    )


def test_a_server_with_more_devices_than_others_keeps_its_errors() -> None:
    """Its device with a rank of the other server is not listed twice, and HCCL refuses the counts."""
    value = table("1.0", 2, 4)
    for number, device in enumerate(devices(value)):
        device["device_id"] = str(number + 4)
    value["server_list"][0]["device"].append(value["server_list"][1]["device"].pop(0))

    assert validate(value, product="910a").verdict == "refused"


def exchange(device: dict[str, Any]) -> None:
    device["device_id"], device["rank_id"] = device["rank_id"], device["device_id"]


@pytest.mark.parametrize("numbers", [[3], [0, 5], list(range(8))])
def test_exchanged_ids_are_one_block(numbers: list[int]) -> None:
    value = table("1.0", 2, 8)
    for number in numbers:
        exchange(value["server_list"][1]["device"][number])

    (block,) = blocks(value)

    assert block.startswith("error[HCC203]: device_id ")
    assert "exchanged" in block
    if len(numbers) == 1:
        assert help_of(block) == 'write "device_id": "3" and "rank_id": "11"'


def test_exchanged_ids_of_a_2_0_table_are_one_block() -> None:
    value = table("2.0", 2, 4)
    exchange(value["rank_list"][6])

    (block,) = blocks(value)

    assert "device_id 6 and rank_id 2 are exchanged" in block


def test_a_device_id_that_is_too_high_gets_the_missing_one_and_no_other_chip() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][3]["device_id"] = "11"

    (block,) = blocks(value)

    assert help_of(block) == 'write "3", the device that the server does not list'


def test_another_chip_is_offered_if_the_table_has_all_its_devices() -> None:
    report = validate(table("1.0", 1, 16), product="910a")

    assert [one.hint for one in report.findings if one.rule.id == "HCC302"] == [
        "write the physical device id, 0 to 7"
    ] * 8


def test_a_device_that_repeats_gets_no_id_that_its_product_lacks() -> None:
    value = table("1.0", 1, 8)
    extra = {**value["server_list"][0]["device"][3], "rank_id": "8", "device_ip": "192.168.0.200"}
    value["server_list"][0]["device"].append(extra)

    block = next(one for one in blocks(value, "a2") if "HCC303" in one)

    assert "write" not in help_of(block)
    assert help_of(block).startswith("remove the one of the two entries of device 3 with another address")


def test_a_device_that_repeats_gets_the_id_that_other_servers_have() -> None:
    value = table("1.0", 2, 4)
    for server in value["server_list"]:
        for number, device in enumerate(server["device"]):
            device["device_id"] = str(number + 4)
    value["server_list"][1]["device"][3]["device_id"] = "6"

    block = next(one for one in blocks(value) if "HCC303" in one)

    assert help_of(block).startswith('write "7" as the device_id')


def test_a_lost_rank_of_a_2_0_table_gets_no_contradicting_remedies() -> None:
    value = table("2.0", 1, 4)
    del value["rank_list"][1]

    for block in blocks(value):
        assert "add the" in help_of(block).partition("if none is missing")[0]


def test_servers_with_too_few_devices_are_one_block() -> None:
    found = blocks(table("1.0", 3, 7), "910a")

    assert [one.partition(":")[0] for one in found] == ["error[HCC304]", "error[HCC308]"]
    assert all("in 3 places" in one for one in found)


@pytest.mark.parametrize(
    ("path", "key", "hint"),
    [
        (("server_list", 1), "super_pod_list", "move it to the table itself, beside server_list"),
        (
            ("server_list", 1, "device", 0),
            "super_pod_list",
            "move it to the table itself, beside server_list",
        ),
        (("server_list", 1, "device", 0), "host_ip", "move it to the entry of server_list in which it is"),
        (
            ("server_list", 1, "device", 0),
            "server_id",
            "delete it: the entry of server_list in which it is has one of its own",
        ),
        ((), "rank_id", "write it in each entry of device with the value of that entry, and delete it here"),
        (
            ("server_list", 1),
            "device_ip",
            "write it in each entry of device with the value of that entry, and delete it here",
        ),
    ],
)
def test_a_key_in_the_wrong_object_is_told_where_it_belongs(path: Any, key: str, hint: str) -> None:
    value = table("1.0", 2, 8)
    holder: Any = value
    for step in path:
        holder = holder[step]
    holder[key] = "1"

    report = validate(value)
    (found,) = [one for one in report.findings if one.rule.id == "HCC617"]

    assert found.path == (*path, key)
    assert found.hint == hint
    assert (report.verdict, report.ok) == ("accepted", True)


@pytest.mark.parametrize(("table_format", "path"), [("2.0", ("rank_list", 0)), ("group_list", ())])
def test_a_key_in_the_wrong_object_of_other_formats(table_format: str, path: Any) -> None:
    value = table(table_format, 2, 8)
    holder: Any = value
    for step in path:
        holder = holder[step]
    holder["rank_count" if table_format == "2.0" else "pod_name"] = 1

    assert [one.rule.id for one in validate(value).findings] == ["HCC617"]


def test_a_misplaced_key_that_the_table_lacks_is_one_finding() -> None:
    value = table("1.2", 2, 2)
    value["server_list"][0]["status"] = value.pop("status")

    assert [one.rule.id for one in validate(value).findings] == ["HCC105"]


def test_sound_tables_have_no_misplaced_key() -> None:
    for table_format in ("1.0", "1.2", "2.0", "group_list"):
        assert not validate(table(table_format, 2, 8)).findings


@pytest.mark.parametrize("sign", ["\u200b", "\ufeff", "\u00a0", "\u200f", "\u2060"])
@pytest.mark.parametrize("place", ["value", "escaped", "key", "server"])
def test_invisible_characters_are_named_and_deleted(sign: str, place: str) -> None:
    value = table("1.2", 2, 2)
    if place == "key":
        device = value["server_list"][0]["device"][0]
        device[f"device_ip{sign}"] = device.pop("device_ip")
    elif place == "server":
        value["server_list"][1]["server_id"] += sign
    else:
        value["server_list"][0]["device"][0]["device_ip"] += sign
    data = json.dumps(value, ensure_ascii=place == "escaped").encode()

    report = validate(data)
    rule = "HCC403" if place in ("value", "escaped") else "HCC618"  # An error says it alone.
    found = [one for one in report.findings if one.rule.id in ("HCC618", rule)]

    assert len(found) == 1
    assert f"U+{ord(sign):04X}" in found[0].message
    assert fixed(value) == table("1.2", 2, 2) or place == "key"
    assert not validate(fixed(value)).findings


def test_other_letters_are_no_invisible_characters() -> None:
    value = table("group_list", 2, 8)
    value["group_list"][0]["group_name"] = "\u8bad\u7ec3"
    value["note"] = "\U0001f468\u200d\U0001f469"

    assert not validate(value).findings


def test_optional_keys_of_a_2_0_table_are_renamed() -> None:
    value = table("2.0", 2, 2)
    text = json.dumps(value)
    for key, other in (("net_type", "netType"), ("plane_id", "planeId"), ("rank_id", "rankId")):
        text = text.replace(f'"{key}"', f'"{other}"')

    found = validate(text.encode()).findings

    assert "HCC604" in {one.rule.id for one in found}
    assert fixed(json.loads(text)) == value


@pytest.mark.parametrize("key", ["rank_list", "server_list", "device"])
def test_a_list_as_an_object_by_key_gets_its_right_form(key: str) -> None:
    value = table("2.0" if key == "rank_list" else "1.0", 1, 2)
    holder = value["server_list"][0] if key == "device" else value
    holder[key] = {str(number): one for number, one in enumerate(holder[key])}

    (block,) = blocks(value)

    assert "under keys, not a list" in block
    assert help_of(block) == (
        'write [ ] in place of its { }, and remove the key and colon before each entry ("0": and so on)'
    )


def test_a_single_entry_without_brackets_gets_them() -> None:
    value = table("2.0", 1, 1)
    value["rank_list"] = value["rank_list"][0]

    (block,) = blocks(value)

    assert help_of(block).startswith("write [ before its { and ] after its }")


def test_ports_as_a_string_get_a_list() -> None:
    value = table("2.0", 1, 1)
    value["rank_list"][0]["level_list"][0]["rank_addr_list"][0]["ports"] = "0/0, 0/1"

    (block,) = blocks(value)

    assert help_of(block) == 'write a list of strings: ["0/0", "0/1"]'


@pytest.mark.parametrize(
    ("holder", "key", "hint"),
    [
        ("rank", "local_id", 'write "local_id": 1, the number that no other rank of the node has'),
        ("rank", "device_id", 'write "device_id": 1, the number that no other rank of the node has'),
        ("level", "net_layer", 'write "net_layer": 0, the number that no other level of the rank has'),
    ],
)
def test_a_number_that_is_missing_in_a_2_0_table_is_offered(holder: str, key: str, hint: str) -> None:
    value = table("2.0", 2, 2)
    rank = value["rank_list"][3]
    del (rank if holder == "rank" else rank["level_list"][0])[key]

    (block,) = blocks(value)

    assert help_of(block) == hint


def test_a_server_in_an_entry_for_each_device_keeps_its_count() -> None:
    value = table("1.0", 2, 8)
    value["server_list"] = [
        {"server_id": server["server_id"], "device": [device]}
        for server in value["server_list"]
        for device in server["device"]
    ]

    found = [one for one in blocks(value) if "HCC308" not in one]

    assert help_of(found[0]) == "list the devices of each server in one entry; server_count is then right"
    assert {help_of(one) for one in found[1:]} == {"list all devices of this server in one entry"}
    assert fixed(value) == value


@pytest.mark.parametrize("table_format", ["1.0", "2.0"])
def test_joined_entries_are_the_cause_of_counts_and_ranks(table_format: str) -> None:
    text = json.dumps(table(table_format, 2, 8), indent=1)
    parts = "\n  },\n  {\n"
    assert parts in text
    cut = text.rindex(parts) if table_format == "2.0" else text.index(parts)
    report = validate(f"{text[:cut]},\n{text[cut + len(parts) :]}".encode())

    assert report.errors
    for one in report.errors:
        if one.rule.id in ("HCC501", "HCC202", "HCC204"):
            assert one.hint is not None
            assert one.hint.startswith("two entries are joined: write }, { in place of the comma")
            assert one.right is None


def test_of_two_devices_with_one_address_both_are_asked() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][4]["device_ip"] = "192.168.0.105"

    (block,) = blocks(value)

    assert "`hccn_tool -i 4 -ip -g`" in help_of(block)
    assert "`hccn_tool -i 5 -ip -g`" in help_of(block)


@pytest.mark.parametrize("text", ["10.0.0.1 slots=8", "[10.0.0.1](http://10.0.0.1/)", '"10.0.0.1"'])
def test_a_server_id_that_is_no_name_is_accepted_with_a_warning(text: str) -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["server_id"] = text

    report = validate(value)

    assert [one.rule.id for one in report.findings] == ["HCC619"]
    assert report.verdict == "accepted"


@pytest.mark.parametrize("text", ["10.0.0.1", "node_0", "worker-1.cluster", "fd00::1", " 10.0.0.1"])
def test_names_and_addresses_of_hosts_are_no_reason_for_it(text: str) -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["server_id"] = text

    assert "HCC619" not in {one.rule.id for one in validate(value).findings}


def test_an_eid_that_lost_its_zeros_gets_them() -> None:
    value = table("2.0", 1, 2)
    for rank, end in zip(value["rank_list"], ("1", "2"), strict=True):
        address = rank["level_list"][0]["rank_addr_list"][0]
        address.update(addr_type="EID", addr=f"0x2000100000dfdf000{end}")

    (block,) = blocks(value)

    assert "have lost their leading zeros" in block
    assert "in 2 places" in block
    value["rank_list"].pop()
    value["rank_count"] = 1
    assert help_of(blocks(value)[0]) == 'write "000000000000002000100000dfdf0001"'


def test_addresses_without_dots_are_one_block() -> None:
    value = table("1.0", 2, 8)
    for device in devices(value):
        device["device_ip"] = device["device_ip"].replace(".", "")

    (block,) = blocks(value)

    assert "device_ips of server 2 are not IP addresses: the dots are missing in each" in block
    assert "in 8 places" in block


def test_a_server_of_a_pod_that_is_certain_is_named() -> None:
    value = table("1.2", 2, 2)
    value["super_pod_list"][0]["server_list"][1]["server_id"] = "node_1"

    assert (
        help_of(blocks(value)[0])
        == 'write "10.0.0.2", the only server of server_list that is in no super pod'
    )


def test_a_server_of_a_pod_by_its_host_ip_is_named() -> None:
    value = table("1.2", 2, 2)
    for number, server in enumerate(value["server_list"]):
        server["host_ip"] = f"172.16.0.{number}"
        value["super_pod_list"][0]["server_list"][number]["server_id"] = server["host_ip"]

    assert help_of(blocks(value)[0]) == 'write "10.0.0.1", the server_id of the server with this host_ip'


@pytest.mark.parametrize("port", ["05.Jan", "5-Jan", "Jan 05", "2026-01-05", "1\u67085\u65e5"])
def test_ports_that_a_spreadsheet_took_for_dates_are_named(port: str) -> None:
    value = table("2.0", 1, 1)
    value["rank_list"][0]["level_list"][0]["rank_addr_list"][0]["ports"] = [port]

    assert [one.rule.id for one in validate(value).findings] == ["HCC620"]


def test_keys_of_a_translated_page_are_named() -> None:
    (block,) = blocks({"\u7248\u672c": "1.0", "\u72b6\u6001": "completed"})

    assert "its keys are translated" in block


@pytest.mark.parametrize("command", [":wq", ":q!", ":w"])
def test_a_command_of_an_editor_is_a_line_to_remove(command: str) -> None:
    text = json.dumps(table("1.0"), indent=1).replace("\n", f"\n{command}\n", 1)

    (finding,) = validate(text.encode()).findings

    assert finding.message == f"the line is a command of an editor: {command}"
    assert finding.hint == "remove the line"
