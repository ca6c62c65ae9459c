"""Entries in another form, lists in strings, keys of other programs: what the remedy says of their values."""

from __future__ import annotations

import json
import subprocess
import sys
from ipaddress import ip_address
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, one, servers
from tests.support.growth import steps
from tests.support.tables import table


def after_the_command(hint: str, text: str) -> Any:
    """Return what the command of a remedy makes of a file."""
    program = hint.partition("python3 -I -c '")[2].partition("' < OLD")[0]
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def nested(value: Any) -> None:
    value["server_list"] = [value["server_list"][:2], value["server_list"][2:]]


def rows(value: Any) -> None:
    for server in servers(value):
        server["device"] = [list(device.values()) for device in server["device"]]


def addresses(value: Any) -> None:
    for server in servers(value):
        server["device"] = [device["device_ip"] for device in server["device"]]


def ids(value: Any) -> None:
    for server in servers(value):
        server["device"] = [int(device["device_id"]) for device in server["device"]]


def names(value: Any) -> None:
    value["server_list"] = [server["server_id"] for server in servers(value)]


def with_null(value: Any) -> None:
    servers(value)[1]["device"].append(None)


@pytest.mark.parametrize(
    ("damage", "message", "hint"),
    [
        (nested, "entries of server_list are lists of servers", "remove the inner [ and ]"),
        (rows, "entries of device are rows of values", '"0"} in place of ["0", "192.168.0.100", "0"]'),
        (addresses, "entries of device are addresses", '"192.168.0.100", "rank_id": "0"} in place of'),
        (ids, "entries of device are device_ids", "`hccn_tool -i 0 -ip -g` on the host shows the address"),
        (names, "entries of server_list are the names", "`hccl-tools gen --hosts 10.0.0.1,10.0.0.2,10.0"),
        (with_null, "entry 9 of device is null", "delete each null with the comma before it"),
    ],
)  # fmt: skip
def test_an_entry_in_another_form_says_what_becomes_of_it(damage: Any, message: str, hint: str) -> None:
    value = table("1.0", 3, 8)
    damage(value)

    said = one(value, "HCC112")

    assert said[0].startswith(message)
    assert hint in said[1]


@pytest.mark.parametrize("part", ["list", "lists", "entries"])
def test_json_in_a_string_is_taken_out_by_the_command_of_the_remedy(part: str) -> None:
    value = table("1.0", 2, 8)
    if part == "list":
        value["server_list"] = json.dumps(value["server_list"])
    elif part == "entries":
        value["server_list"] = [json.dumps(server) for server in servers(value)]
    else:
        for server in servers(value):
            server["device"] = json.dumps(server["device"])

    _, hint = one(value, "HCC112")

    assert after_the_command(hint, json.dumps(value)) == table("1.0", 2, 8)


@pytest.mark.parametrize("form", ["lines", "list", "printed", "rows", "rows in lines", "one"])
def test_entries_without_their_table_get_one_by_the_command_of_the_remedy(form: str) -> None:
    value = table("1.0", 1 if form == "one" else 3, 8)
    entries = [{key: one for key, one in server.items() if key != "host_nic_ip"} for server in servers(value)]
    if form.startswith("rows"):
        entries = [{"server_id": one["server_id"], **device} for one in entries for device in one["device"]]
    text = json.dumps(entries)
    if form in ("lines", "rows in lines", "one"):
        text = "".join(f"{json.dumps(one)}\n" for one in entries)
    elif form == "printed":
        text = "".join(f"{json.dumps(one, indent=2)}\n" for one in entries)

    (found,) = validate(text.encode()).findings

    assert found.rule.id == "HCC110"
    assert is_sound(after_the_command(found.hint or "", text))


def test_a_table_beside_other_keys_is_saved_alone() -> None:
    text = json.dumps({"code": 0, "data": table("1.0", 1, 8)})

    (found,) = validate(text.encode()).findings

    assert found.message == 'not a rank table: the table is the value of "data"'
    assert is_sound(after_the_command(found.hint or "", text))


def test_text_after_a_table_stays_advice() -> None:
    text = json.dumps(table("1.0", 1, 8)) + "{}"

    assert [found.rule.id for found in validate(text.encode()).findings] == ["HCC602"]


def test_lists_with_the_words_of_another_program_are_renamed_together() -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        server["npus"] = server.pop("device")
    value["hosts"] = value.pop("server_list")

    message, hint = one(value, "HCC111")

    assert message == '"server_list" is missing, and "hosts" has what belongs there'
    assert hint == 'rename "hosts" to "server_list", "npus" to "device"'


def test_values_of_a_device_with_other_names_are_renamed() -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        server["device"] = [
            {"ip": one["device_ip"], "npu": one["device_id"], "rank": one["rank_id"]}
            for one in server["device"]
        ]

    found = validate(value).findings

    assert {one.hint for one in found if one.rule.id == "HCC111"} == {
        'rename "rank" to "rank_id", "npu" to "device_id", "ip" to "device_ip"'
    }
    assert {one.hint for one in found if one.rule.id == "HCC401"} == {'rename "ip" to "device_ip"'}


def test_a_list_of_another_format_is_not_renamed() -> None:
    value = {**table("group_list", 2, 8), "version": "1.0"}

    _, hint = one(value, "HCC111")

    assert hint == 'this is a table without a version (it has group_list): delete "version"'
    del value["version"]
    assert is_sound(value)


def test_two_lists_of_objects_are_not_renamed() -> None:
    value = table("1.0", 2, 8)
    value["one"] = value.pop("server_list")
    value["other"] = value["one"]

    assert one(value, "HCC111")[1] == "list one entry per server"


def test_a_translated_status_is_written_whole() -> None:
    value = table("1.0", 1, 8)
    value["statut"] = value.pop("status") and "termin\u00e9"

    assert one(value, "HCC105")[1] == 'write "status": "completed" in place of "statut": "termin\u00e9"'


@pytest.mark.parametrize(("columns", "is_counted"), [(3, False), (2, True)])
def test_rows_without_a_rank_say_how_ranks_are_numbered(columns: int, is_counted: bool) -> None:
    value = table("1.0", 1, 2)
    (server,) = servers(value)
    server["device"] = [list(device.values())[:columns] for device in server["device"]]

    found = validate(value).findings[0]

    assert found.message == "entry 1 of device is a list"
    assert ("the ranks are numbered over all servers" in (found.hint or "")) == is_counted


def test_rows_in_server_list_are_entries_of_their_servers() -> None:
    value = table("1.0", 2, 8)
    value["server_list"] = [
        {"server_id": server["server_id"], **device}
        for server in servers(value)
        for device in server["device"]
    ]
    value["server_count"] = "16"

    _, hint = one(value, "HCC111")

    assert (
        'write one entry for each server_id, 2 in all, with its devices: {"server_id": "10.0.0.1", ' in hint
    )
    assert hint.endswith('write "server_count": "2"')


@pytest.mark.parametrize("damage", [rows, addresses, ids, names, nested])
def test_the_work_on_other_forms_is_linear(damage: Any) -> None:
    small, large = table("1.0", 60, 8), table("1.0", 120, 8)
    damage(small)
    damage(large)
    less = steps(lambda: validate(small))

    assert steps(lambda: validate(large)) < 2.4 * less


@pytest.mark.parametrize(
    ("key", "rule", "name"),
    [
        ("rank_id", "HCC201", "rank{}"),
        ("device_id", "HCC301", "npu-{}"),
        ("device_id", "HCC301", "/dev/davinci{}"),
    ],
)
def test_ids_with_names_are_written_without_them(key: str, rule: str, name: str) -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        for device in server["device"]:
            device[key] = name.format(device[key])

    message, hint = one(value, rule, "a2")

    assert message == f"{key}s have names beside their numbers"
    assert hint == f'write "0" in place of "{name.format(0)}", and the others in the same way'


@pytest.mark.parametrize(("wrong", "right"), [("rank_id", "device_id"), ("device_id", "rank_id")])
def test_names_of_ranks_and_of_devices_are_judged_apart(wrong: str, right: str) -> None:
    value = table("1.0", 1, 8)
    for device in servers(value)[0]["device"]:
        device[right], device[wrong] = f"a{device[right]}", f"b{min(int(device[wrong]), 6)}"

    messages = [one.message for one in validate(value, product="a2").findings]

    assert f'{right} "a7" has a name beside its number' in messages
    assert not any(text.startswith(f"{wrong} ") for text in messages)


@pytest.mark.parametrize("text", ["one", "-1", "rank1a2", "x1.5"])
def test_other_texts_have_no_number_to_keep(text: str) -> None:
    value = table("1.0", 1, 8)
    servers(value)[0]["device"][1]["rank_id"] = text

    assert one(value, "HCC201")[1] == 'write "1", the rank that no device has'


def test_names_with_equal_numbers_are_not_read() -> None:
    value = table("1.0", 1, 8)
    servers(value)[0]["device"][1]["rank_id"] = "rank2"

    assert one(value, "HCC201")[1] == 'write "1", the rank that no device has'


@pytest.mark.parametrize(
    "form", [lambda text: int(ip_address(text)), lambda text: str(int(ip_address(text))), lambda text: [text],
             lambda text: hex(int(ip_address(text))), lambda text: f"ipaddr:{text}\nnetmask:255.255.255.0"]
)  # fmt: skip
def test_an_address_in_another_form_is_written_as_one(form: Any) -> None:
    value = table("1.0", 2, 8)
    device = servers(value)[1]["device"][3]
    device["device_ip"] = form(device["device_ip"])

    (found,) = validate(value, product="a2").findings

    assert found.rule.id in ("HCC402", "HCC403")
    assert found.hint == 'write "192.168.1.103"'


def test_a_number_without_dots_is_not_that_of_an_address() -> None:
    value = table("1.0", 2, 8)
    servers(value)[1]["device"][3]["device_ip"] = 1921681103

    (found,) = validate(value, product="a2").findings

    assert "`hccn_tool -i 3 -ip -g`" in (found.hint or "")


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_the_rows_of_a_spreadsheet_become_a_table_by_the_command_of_the_remedy(mark: str) -> None:
    value = table("1.0", 2, 8)
    keys = ("server_id", "rank_id", "device_id", "device_ip")
    rows = [{**device, **server} for server in servers(value) for device in server["device"]]
    text = "".join(
        f"{mark.join(row[key] for key in keys)}\n" for row in [dict(zip(keys, keys, strict=True)), *rows]
    )

    (found,) = validate(text.encode()).findings

    assert is_sound(after_the_command(found.hint or "", text))


def test_other_columns_are_not_a_table() -> None:
    (found,) = validate(b"host,slots\nnode1,8\nnode2,8\n").findings

    assert (found.hint or "").startswith("specify the rank table")


def hint_of(value: dict[str, Any], place: str) -> str:
    found = [
        one for one in validate(json.dumps(value).encode(), product="a2").findings if one.rule.id == "HCC112"
    ]
    (own,) = [one for one in found if one.path[-1] == place]
    return own.hint or ""


def test_servers_under_their_names_with_lists_of_devices() -> None:
    value = table("1.0", 2, 8)
    servers = value["server_list"]
    value["server_list"] = {server["server_id"]: server["device"] for server in servers}
    name = servers[0]["server_id"]

    assert f'in place of "{name}": [ write {{ "server_id": "{name}", "device": [' in hint_of(
        value, "server_list"
    )
    value["server_list"] = {"server_id": name, "device": servers[0]["device"]}
    assert hint_of(value, "server_list").startswith("write [ before its { and ] after its }")


def test_devices_as_addresses_under_their_ids() -> None:
    value = table("1.0", 1, 2)
    devices = value["server_list"][0]["device"]
    value["server_list"][0]["device"] = {one["device_id"]: one["device_ip"] for one in devices}

    hint = hint_of(value, "device")

    first = devices[0]
    assert f'write {{ "device_id": "0", "device_ip": "{first["device_ip"]}", "rank_id": "N" }}' in hint
    value["server_list"][0]["device"] = devices[0]
    assert hint_of(value, "device").startswith("write [ before its { and ] after its }")


@pytest.mark.parametrize("mark", ["...", "[46 devices omitted]", "46 more"])
def test_a_string_that_stands_for_entries_is_not_one_entry(mark: str) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][3:6] = [mark]

    hints = [one.hint or "" for one in validate(value).findings if one.rule.id == "HCC112"]

    assert hints
    assert hints[0].startswith("write these entries in its place, or copy the complete table again")


def test_an_object_of_dots_is_not_removed() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][3:6] = [{"...": "..."}]

    hints = [one.hint or "" for one in validate(value).findings if one.rule.id == "HCC111"]

    assert hints
    assert all(hint.startswith("write these entries in its place") for hint in hints)
