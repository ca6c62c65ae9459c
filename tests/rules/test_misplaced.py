"""What the table itself lacks and another object has, and objects that a program printed as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.rules.test_remedies import is_sound, one, report, servers
from tests.support.tables import table


@pytest.mark.parametrize(
    ("table_format", "key", "lists"),
    [
        ("1.0", "status", "server_list"),
        ("2.0", "rank_count", "rank_list"),
        ("group_list", "status", "group_list"),
    ],
)
def test_a_key_in_the_last_entry_is_moved_not_added(table_format: str, key: str, lists: str) -> None:
    value = table(table_format, 2, 8)
    value[lists][-1][key] = value.pop(key)

    (found,) = report(value)

    assert found.message == (
        f'"{key}" is missing in the table itself: it is in an entry of {lists}, where HCCL does not read it'
    )
    assert found.hint == f"move it to the table itself, beside {lists}"
    assert found.path == (lists, len(value[lists]) - 1, key)
    value[key] = value[lists][-1].pop(key)
    assert is_sound(value)


def test_a_key_in_several_entries_is_still_missing() -> None:
    value = table("1.0", 2, 8)
    del value["status"]
    for server in servers(value):
        server["status"] = "completed"

    found = [each for each in report(value) if each.rule.severity == "error"]

    assert [each.message for each in found] == ['"status" is missing']


def as_powershell(device: Any) -> str:
    return "@{" + "; ".join(f"{key}={value}" for key, value in device.items()) + "}"


@pytest.mark.parametrize(
    ("printed", "program", "remedy"),
    [
        (as_powershell, "PowerShell", "ConvertTo-Json -Depth 10"),
        (lambda _: "System.Collections.Hashtable", "PowerShell", "ConvertTo-Json -Depth 10"),
        (lambda _: "[object Object]", "JavaScript", "JSON.stringify"),
        (str, "Python", "json.dump"),
        (
            lambda device: f"map[{' '.join(f'{key}:{one}' for key, one in device.items())}]",
            "Go",
            "json.Marshal",
        ),
        (lambda device: json.dumps(device).replace('"', "").replace(": ", "="), "Java", "a JSON library"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_objects_that_a_program_printed_as_text_are_one_cause(
    printed: Any, program: str, remedy: str, *, whole: bool
) -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        texts = [printed(device) for device in server["device"]]
        server["device"] = " ".join(texts) if whole else texts

    message, hint = one(value, "HCC112")

    name = '"device" is an object in a string' if whole else "entries of device are objects in strings"
    assert message == f"{name}, in the notation of {program}"
    assert remedy in hint


def test_a_list_of_super_pods_that_was_printed_names_its_program() -> None:
    value = table("1.2", 2, 8)
    value["super_pod_list"] = "System.Object[]"

    assert "in the notation of PowerShell: write the table again" in one(value, "HCC521")[1]

    value = table("1.2", 2, 8)
    for pod in value["super_pod_list"]:
        pod["server_list"] = [as_powershell(server) for server in pod["server_list"]]

    message, hint = one(value, "HCC521", "a3")

    assert message == "servers of super pods: each is an object in a string, in the notation of PowerShell"
    assert "ConvertTo-Json -Depth 10" in hint


def test_super_pod_ids_that_are_numbers_are_corrected_together() -> None:
    value = table("1.2", 4, 8, pods=2)
    for pod in value["super_pod_list"]:
        pod["super_pod_id"] = int(pod["super_pod_id"])

    found = report(value, "a3")

    assert {each.rule.id for each in found} == {"HCC521"}
    assert [each.right for each in found] == ["0", "1"]
    assert one(value, "HCC521", "a3")[0] == "super_pod_ids are numbers, not strings"


def test_a_level_list_that_is_missing_is_read_on_the_host() -> None:
    value = table("2.0", 2, 8)
    del value["rank_list"][5]["level_list"]

    message, hint = one(value, "HCC111")

    assert message == '"level_list" is missing'
    assert hint == 'add "level_list", a list: `hccl-tools gen` on the host of this rank prints the entry'


def test_what_is_behind_the_end_of_a_table_is_not_added_again() -> None:
    lines = json.dumps(table("1.0", 3, 8), indent=2).split("\n")
    at = next(number for number, line in enumerate(lines) if '"10.0.0.2"' in line)
    del lines[at - 1 : at + 2]

    found = validate("\n".join(lines).encode()).findings

    (status,) = [each for each in found if each.rule.id == "HCC105"]
    assert (status.hint or "").startswith('the table ends too early: "status" is behind its end')


@pytest.mark.parametrize("key", ["rank_id", "device_id"])
def test_ids_that_are_null_follow_from_the_order_of_the_file(key: str) -> None:
    value = table("1.0", 2, 8)
    for server in servers(value):
        for device in server["device"]:
            device[key] = None

    message, hint = one(value, "HCC112")

    assert message == f'"{key}" is null'
    assert hint.startswith("number the entries ")


def test_server_ids_that_are_missing_are_one_cause() -> None:
    value = table("1.0", 3, 8)
    for server in servers(value):
        del server["server_id"]

    assert one(value, "HCC111")[1] == "give each server an id of its own, usually the address of its host"


def test_a_rank_list_that_was_joined_with_itself_is_one_finding() -> None:
    value = table("2.0", 2, 8)
    value["rank_list"] *= 2

    message, hint = one(value, "HCC204")

    assert message.endswith(
        "its entries from 16 on are those before it again, as if a list was joined with itself"
    )
    assert hint == "remove the entries from 16 on; rank_count is then right"
