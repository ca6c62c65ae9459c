"""Tables with one cause, of which only that cause is said, with the one right text where there is one."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest

from hccl_tools import validate
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.diagnostic import Origin
from hccl_tools.document.rewriting import parseable
from hccl_tools.formats.kubernetes import config_maps
from tests.support.tables import table


def found(value: Any, product: str = "a2") -> list[tuple[str, str, str]]:
    report = validate(value, product=product)
    assert report.verdict == "refused"
    return [(each.rule.id, each.message, each.hint or "") for each in report.findings]


# A list that is in the file twice


def test_a_list_that_is_there_twice_is_the_cause_of_what_is_missing() -> None:
    value = table("1.0", 2, 8)
    first, second = value.pop("server_list")
    text = json.dumps({**value, "A": [first], "B": [second]}).replace('"A"', '"server_list"')
    data = text.replace('"B"', '"server_list"').encode()

    findings = found(data)

    assert [rule for rule, *_ in findings] == ["HCC501", "HCC202", "HCC601"]
    for _, message, hint in findings[:2]:
        assert message.endswith(
            '"server_list" appears twice, in lines 1 and 1, of which HCCL reads only the second'
        )
        assert hint.startswith("move the entries of the first list")
    joined = json.dumps({**value, "server_list": [first, second]}).encode()
    assert validate(joined, product="a2").findings == ()


# One sign in place of a dot


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("192.168.0,101", "a comma in place of a dot"),
        ("192.168;0.101", '";" in place of a dot'),
        ("192.168.0:101", '":" in place of a dot'),
        ("192,168,0.101", "commas in place of dots"),
    ],
)
def test_a_sign_in_place_of_a_dot_is_one_finding(text: str, what: str) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"][1]["device_ip"] = text

    assert found(value) == [("HCC403", f'"{text}" has {what}', 'write "192.168.0.101"')]


def test_two_addresses_with_a_comma_are_two() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"][1]["device_ip"] = "192.168.0.101,192.168.0.201"

    ((rule, *_),) = found(value)

    assert rule == "HCC405"


# A table inside other values


@pytest.mark.parametrize(
    ("around", "path"),
    [
        (lambda one: {"code": 0, "data": {"rankTable": one}}, "data.rankTable"),
        (lambda one: {"a": {"b": {"c": {"d": {"e": one}}}}}, "a.b.c.d.e"),
        (lambda one: {"items": [{"name": "job"}, {"table": one}]}, "items[1].table"),
        (lambda one: {"code": 0, "data": json.dumps(one)}, "data"),
    ],
)  # fmt: skip
def test_the_command_takes_a_table_out_of_other_values(around: Any, path: str) -> None:
    own = table("1.0", 1, 2)
    text = json.dumps(around(own)).encode()

    ((rule, message, hint),) = found(text)

    assert (rule, message.partition(", in")[0]) == (
        "HCC110",
        f'not a rank table: the table is the value of "{path}"',
    )
    command = hint.partition(": ")[2].removesuffix(" < OLD > NEW")
    taken = subprocess.run(shlex.split(command), input=text, stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(taken) == own


@pytest.mark.parametrize("value", [{"a": {"b": {"c": {"d": {"e": {"f": {}}}}}}}, {"data": {"list": []}}])
def test_other_files_are_not_taken_for_tables_inside(value: Any) -> None:
    innermost = value
    while isinstance(innermost, dict) and innermost.get("f") is None and innermost:
        innermost = next(iter(innermost.values()))
    if isinstance(innermost, dict):
        innermost["f"] = table("1.0", 1, 2)

    assert "is the value of" not in found(value)[0][1]


# The old and the new entry of a device


def both_entries(own: str) -> Any:
    value = table("1.0", 2, 8)
    devices = value["server_list"][1]["device"]
    devices.insert(3, {**devices[3], "device_ip": own})
    return value


def test_an_old_entry_beside_the_new_one_is_one_finding() -> None:
    ((rule, message, hint),) = found(both_entries("192.168.1.77"))

    assert rule == "HCC303"
    assert "with the addresses 192.168.1.77 and 192.168.1.103" in message
    assert hint.startswith("keep the entry with the address that the device has, and remove the other one")


def test_two_devices_with_one_id_and_other_ranks_stay_what_they_are() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][3]["device_id"] = "4"

    ((rule, message, _),) = found(value)

    assert rule == "HCC303"
    assert "old entry" not in message


# Corrections that are certain


@pytest.mark.parametrize("text", ["address_0=192.168.0.101", "192.168.0.101:16666", "[192.168.0.101]:80"])
def test_the_one_right_text_of_an_address_is_a_correction(text: str) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"][1]["device_ip"] = text

    (one,) = validate(value, product="a2").findings

    assert one.right == "192.168.0.101"


@pytest.mark.parametrize(
    ("version", "right"), [("1.O", "1.0"), ("l.0", "1.0"), ("1,0", "1.0"), ("9.0", None)]
)
def test_a_letter_in_the_version_is_a_correction(version: str, right: str | None) -> None:
    findings = validate({**table("1.0", 1, 2), "version": version}, product="a2").findings

    assert [one.right for one in findings if one.rule.id == "HCC108"] == [right]


def test_blanks_of_word_processors_become_spaces_outside_texts() -> None:
    text = '{\n\u00a0\u00a0"version":\u00a0"1.0",\n\u00a0"note": "a\u00a0b"}'

    assert parseable(text.encode()).decode() == '{\n  "version": "1.0",\n "note": "a\u00a0b"}'
    (one,) = validate(text.encode()).findings
    assert one.message == "invisible character (U+00A0) in 2 lines"


def test_the_words_of_python_leave_only_its_command() -> None:
    plain = validate(b"{'version': '1.0'}").findings[0].hint or ""
    with_words = validate(b"{'version': '1.0', 'note': None}").findings[0].hint or ""

    assert plain.startswith('write " instead')
    assert with_words.startswith("Python printed this, with None or True in it: python3 -I -c")


# ConfigMaps


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\ndata:\n  hccl.json: |\n    {}\nmetadata:\n  name: job7\n  namespace: vcjob\n",
        '{"data": {\n  "hccl.json": ""\n },\n "metadata": {\n  "name": "job7",\n  "namespace": "vcjob"\n }}',
    ],
)  # fmt: skip
def test_the_command_names_the_config_map_of_the_file(text: str) -> None:
    command = config_maps.extraction(text.encode())

    assert command == "kubectl get configmap -n vcjob job7 -o jsonpath='{.data.hccl\\.json}' > hccl.json"


# Equal findings


def shown(value: Any, product: str = "a2") -> str:
    report = validate(json.dumps(value, indent=1).encode(), product=product)
    return "".join(render([report], "text", show_all=False, color=False))


def test_equal_findings_are_one_block() -> None:
    value = table("1.0", 2, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["rank_id"] = device["rank_id"].zfill(2)

    text = shown(value)

    assert text.count("[HCC603]") == 1
    assert "in 10 places" in text


def test_places_without_words_of_their_own_are_one_list() -> None:
    value = table("1.0", 4, 8)
    devices = value["server_list"][2]["device"]
    own = [device["device_ip"] for device in devices]
    for device, address in zip(devices, reversed(own), strict=True):
        device["device_ip"] = address

    text = shown(value)

    assert "in 8 places" in text
    assert "and at" not in text


def test_devices_of_another_machine_are_moved_and_not_left_out() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"] += value["server_list"].pop()["device"]
    value["server_count"] = "1"

    rules = {one.rule.id: one for one in validate(value).findings}

    assert "HCC303" in rules
    assert "HCC304" not in rules


def test_all_rounded_numbers_are_places_of_one_finding() -> None:
    value = table("1.2", 4, 8, 2)
    places = []
    for index, server in enumerate(value["server_list"]):
        for row, device in enumerate(server["device"]):
            if (index, row) > (0, 3):
                device["super_device_id"] = f"{1 + row % 3}.0{index}E+06"
                places.append(("server_list", index, "device", row, "super_device_id"))

    found = [one for one in validate(value, product="a3").findings if one.rule.id == "HCC528"]

    assert [one.path for one in found] == places
    assert not any(one.related for one in found)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_no_command_is_to_be_run_on_a_loopback_address(name: str) -> None:
    value = table("1.0", 2, 8)
    for server in value["server_list"]:
        server["server_id"] = name

    found = validate(value).findings

    assert not any(f" on {name}" in (one.hint or "") for one in found)
    hint = next(one.hint for one in found if one.rule.id == "HCC503")
    assert (
        hint
        == f'write the own address of each host in its entry: "{name}" is not the address of a single host'
    )


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_a_replacement_of_a_prefix_is_marked_at_the_server_out_of_order(wrong: int) -> None:
    value = table("1.0", 4, 8)
    for index, server in enumerate(value["server_list"]):
        for number, device in enumerate(server["device"]):
            device["device_ip"] = f"192.168.{index + 1}.{8 + number}"
    innocent = 2
    for number in range(2, 8):
        right = f"192.168.{innocent + 1}.{8 + number}"
        value["server_list"][wrong]["device"][number]["device_ip"] = right

    found = [one for one in validate(value, product="a2").findings if one.rule.id == "HCC404"]

    assert [one.path[1] for one in found] == [wrong] * 6
    text = "".join(render([validate(value, product="a2")]))
    assert f"6 device_ips of server {wrong + 1} (" in text
    assert f'have "192.168.{wrong + 1}.10", ' in text


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("servers", [2, 4])
def test_a_server_id_and_a_device_ip_that_are_exchanged_are_one_finding(servers: int, index: int) -> None:
    value = table("1.0", servers, 8)
    server = value["server_list"][index]
    device = server["device"][0]
    name, address = server["server_id"], device["device_ip"]
    server["server_id"], device["device_ip"] = address, name

    found = [one for one in validate(value, product="a2").findings if one.rule.id in {"HCC631", "HCC633"}]

    assert len(found) == 1
    assert "the two are probably exchanged" in found[0].message
    assert found[0].hint == (
        f"`hccn_tool -i 0 -ip -g` on {name} shows the address of device 0: "
        f'if it is "{address}", exchange the two'
    )


def test_a_hint_on_a_table_in_a_config_map_names_the_line_of_the_file() -> None:
    text = json.dumps(table("1.0", 1, 8), indent=2).replace('",\n', '"\n', 1)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if one.endswith('"'))
    origin = Origin(file="cm.yaml", line=4, one_line=False)
    report = validate(text.encode())._replace(origin=origin)

    shown = "".join(render([report]))
    assert f"= line {line} of the table is line {line + 4} of cm.yaml\n" in shown
