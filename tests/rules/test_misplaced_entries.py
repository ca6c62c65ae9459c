"""Entries that are in a list of another level of the table: one finding says where they belong."""

from __future__ import annotations

from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import validate
from hccl_tools.formats.schema import load
from hccl_tools.rules.misplaced_entries import kinds
from tests.support.tables import super_pod_service, table

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Diagnostic
    from hccl_tools.rules.key_places import Kind

SERVICE = "server_group_list"
PRODUCTS: dict[str, str | None] = {"1.0": "a2", "1.2": "a3", "2.0": "a5", "group_list": "a2", SERVICE: None}
#: The lists of each format from the outermost on, with the entry that is moved.
LEVELS: dict[str, list[tuple[str, int]]] = {
    "1.0": [("server_list", 1), ("device", 3)],
    "1.2": [("server_list", 1), ("device", 3)],
    "2.0": [("rank_list", 5), ("level_list", 1), ("rank_addr_list", 0)],
    "group_list": [("group_list", 1), ("instance_list", 1), ("devices", 3)],
    SERVICE: [("server_group_list", 3), ("server_list", 1), ("device", 3)],
}


def sound(table_format: str) -> Any:
    value = table(table_format, 2, 8, 1)
    for rank in value.get("rank_list", ()):
        rank["level_list"].append(
            {**deepcopy(rank["level_list"][0]), "net_layer": 1, "net_instance_id": "all"}
        )
    if table_format == "group_list":
        other = deepcopy(value["group_list"][0])
        other["group_name"] = "g1"
        for number, instance in enumerate(other["instance_list"]):
            instance["server_id"], instance["pod_name"] = f"10.0.1.{number + 1}", f"other{number}"
            for device in instance["devices"]:
                device["device_ip"] = device["device_ip"].replace("192.168.", "192.169.")
        value["group_list"].append(other)
        value["group_count"] = "2"
    return value


def findings(value: Any, table_format: str) -> list[Diagnostic]:
    return list(validate(value, product=PRODUCTS[table_format]).findings)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    return reduce(getitem, path, value)


def entry_path(table_format: str, level: int) -> tuple[Any, ...]:
    return tuple(part for pair in LEVELS[table_format][: level + 1] for part in pair)


MOVES = [
    (table_format, own, other)
    for table_format, levels in LEVELS.items()
    for own in range(len(levels))
    for other in range(len(levels))
    if own != other
]


@pytest.mark.parametrize(("table_format", "own", "other"), MOVES)
def test_an_entry_at_another_level_is_one_finding_with_its_place(
    table_format: str, own: int, other: int
) -> None:
    value = sound(table_format)
    path = entry_path(table_format, own)
    goal = (*entry_path(table_format, other)[:-1],)
    if other > own:  # Into the entry beside it, as nothing can be in itself.
        below = (0 if type(part) is int else part for part in goal[len(path) :])
        goal = (*path[:-1], path[-1] - 1, *below)
    entry = at(value, path[:-1]).pop(path[-1])
    at(value, goal).append(entry)

    (found,) = findings(value, table_format)

    key = LEVELS[table_format][own][0]
    assert found.rule.id in ("HCC111", "HCC701")
    assert found.path == (*goal, len(at(value, goal)) - 1)
    assert f"is in {'the' if len(goal) > 1 else goal[0]}" in found.message
    assert key in found.message.partition(", not in ")[2]
    assert (found.hint or "").startswith("move it ")
    assert "probably" not in (found.hint or "")


@pytest.mark.parametrize(
    ("table_format", "level"), [(name, level) for name in LEVELS for level in range(len(LEVELS[name]))]
)
def test_a_whole_table_in_a_list_is_one_finding(table_format: str, level: int) -> None:
    levels = LEVELS[table_format]
    value, pasted = sound(table_format), sound(table_format)
    top, id_key = levels[0][0], {"2.0": "rank_id", "group_list": "group_name", SERVICE: "group_id"}
    for number, entry in enumerate(pasted[top]):
        entry[id_key.get(table_format, "server_id")] = 100 + number if table_format == "2.0" else f"9{number}"
    goal = entry_path(table_format, level)[:-1]
    at(value, goal).append(pasted)

    (found,) = findings(value, table_format)

    number = len(pasted[top])
    assert found.message.startswith(f"entry {len(at(value, goal))} of ")
    assert found.message.endswith(" is a whole table")
    begin = f'put the {number} entries of its "{top}" in its place'
    if level:
        begin = f'move the {number} entries of its "{top}" to {top} of the table itself'
    assert (found.hint or "").startswith(begin)


def test_the_entries_of_a_table_in_a_list_are_put_in_its_place() -> None:
    value, second = table("1.0", 2, 8), table("1.0", 2, 8)
    second["server_list"].pop(0)
    first = value["server_list"].pop(1)
    assert first == second["server_list"][0]
    value["server_list"].append({**second, "server_count": "1"})

    (found,) = findings(value, "1.0")

    assert found.hint == 'put the entry of its "server_list" in its place; server_count is then right'


def test_a_table_whose_entries_are_listed_already_is_deleted() -> None:
    value = sound("1.2")
    value["server_list"][0]["device"].append(sound("1.2"))

    (found,) = findings(value, "1.2")

    assert found.hint == 'delete it: the table lists the 2 entries of its "server_list" already'


def test_a_server_goes_into_the_group_that_lacks_one() -> None:
    value = sound(SERVICE)
    value[SERVICE].append(value[SERVICE][2]["server_list"].pop())

    (found,) = findings(value, SERVICE)

    assert found.message == ('server "10.0.0.2" is in server_group_list, not in the "server_list" of a group')
    assert found.hint == 'move it into the "server_list" of group "2", whose server_count is then right'


def test_a_server_in_the_devices_of_another_group_goes_into_the_group_that_lacks_it() -> None:
    value = sound(SERVICE)
    value[SERVICE][3]["server_list"][0]["device"].append(value[SERVICE][2]["server_list"].pop())

    (found,) = findings(value, SERVICE)

    assert found.hint == 'move it into the "server_list" of group "2", whose server_count is then right'


def test_a_list_that_is_empty_because_of_it_is_no_finding_of_its_own() -> None:
    value = table(SERVICE, 1, 1)
    value[SERVICE].append(value[SERVICE][2]["server_list"][0]["device"].pop())

    (found,) = findings(value, SERVICE)

    assert found.hint == 'move it into the "device" list of server "10.0.0.1", which has no other'


def test_devices_of_several_servers_are_moved_to_their_own_ones() -> None:
    value = table("1.0", 4, 8)
    for server in list(value["server_list"]):
        value["server_list"].append(server["device"].pop())

    (found,) = findings(value, "1.0")

    assert found.message == (
        '4 devices (device_id 7) are in server_list, not in the "device" list of a server'
    )
    assert found.hint == 'move each into the "device" list of its own server'


def test_a_copy_of_the_server_in_its_list_of_devices_is_deleted() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"].append(deepcopy(value["server_list"][0]))

    (found,) = findings(value, "1.0")

    assert found.hint == "delete it: server_list has it already"


@pytest.mark.parametrize("table_format", ["1.2", "group_list", SERVICE])
def test_the_bare_list_of_another_server_is_written_with_its_server(table_format: str) -> None:
    value = sound(table_format)
    *rest, key, _ = entry_path(table_format, len(LEVELS[table_format]) - 1)
    outer = at(value, tuple(rest[:-1]))
    outer[0][key].append(outer.pop(rest[-1])[key])

    (found,) = findings(value, table_format)

    assert found.rule.id in ("HCC112", "HCC702")
    assert "list of another " in found.message
    assert found.message.endswith(": devices 0-7 are there and beside it")
    assert f'"{key}": [...]}}' in (found.hint or "")
    assert (found.hint or "").endswith("_count is then right")


def test_a_server_with_a_key_of_devices_is_a_server() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"].append({**value["server_list"].pop(), "rank_id": "8"})

    (found,) = findings(value, "1.0")

    assert found.message.startswith('server "10.0.0.2" is in the "device" list of server "10.0.0.1"')


def test_a_device_that_lists_devices_is_a_device() -> None:
    value = table("1.0", 2, 8)
    first, *_ = devices = value["server_list"][0]["device"]
    first["device"] = [deepcopy(devices[1])]
    del first["rank_id"]

    assert [one.message for one in findings(value, "1.0") if one.rule.id == "HCC111"] == [
        '"rank_id" is missing'
    ]


@pytest.mark.parametrize("table_format", LEVELS)
def test_the_keys_that_an_entry_needs_are_those_of_the_schema(table_format: str) -> None:
    schema = load(table_format)

    def compare(kind: Kind, part: Any) -> None:
        for key, inner in kind.lists.items():
            items = part["properties"].get(key, {}).get("items")
            if items is not None:  # The schemas of rank tables leave super_pod_list to the rules.
                below = schema["$defs"][items["$ref"].rpartition("/")[2]] if "$ref" in items else items
                assert inner.required == set(below["required"])
                compare(inner, below)

    compare(kinds(table_format)[0], schema)


# super_pod_list, which the schema leaves to the rules


def pods() -> Any:
    return table("1.2", 4, 8, 2)


def only(value: Any) -> tuple[str, str, str]:
    (found,) = findings(value, "1.2")
    return found.rule.id, found.message, found.hint or ""


def test_a_server_with_its_devices_in_a_super_pod_is_moved_and_named_there() -> None:
    value = pods()
    value["super_pod_list"][1]["server_list"][1] = value["server_list"].pop()

    assert only(value) == (
        "HCC524",
        'super pod "1" has server "10.0.0.4" with its devices, and server_list has not',
        (
            'move it to server_list, and leave {"server_id": "10.0.0.4"} in its place; '
            "server_count is then right"
        ),
    )


def test_a_server_that_is_a_super_pod_is_moved() -> None:
    value = pods()
    value["super_pod_list"].append(value["server_list"].pop())

    assert only(value) == (
        "HCC521",
        'server "10.0.0.4" is in super_pod_list, not in server_list',
        "move it to server_list; server_count is then right",
    )


def test_a_super_pod_in_another_one_is_moved() -> None:
    value = pods()
    value["super_pod_list"][0]["server_list"].append(value["super_pod_list"].pop())

    assert only(value) == (
        "HCC521",
        'super pod "1" is in the "server_list" of super pod "0", not in super_pod_list',
        'move it to super_pod_list, behind super pod "0"',
    )


def test_a_super_pod_in_server_list_is_moved() -> None:
    value = pods()
    value["server_list"].append(value["super_pod_list"].pop())

    assert only(value)[1:] == (
        'super pod "1" is in server_list, not in super_pod_list',
        "move it to super_pod_list",
    )


def test_a_server_with_its_devices_in_server_list_and_in_a_super_pod_is_accepted() -> None:
    value = pods()
    value["super_pod_list"][1]["server_list"][1] = deepcopy(value["server_list"][3])

    report = validate(value, product="a3")

    assert report.verdict == "accepted"
    assert {one.rule.id for one in report.findings} == {"HCC617"}


def test_a_server_with_its_devices_in_a_super_pod_of_a_service_table_is_moved() -> None:
    value = super_pod_service(2, 2)
    group = value[SERVICE][2]
    group["super_pod_list"][0]["server_list"][1] = group["server_list"].pop()

    found = next(one for one in findings(value, SERVICE) if one.rule.id == "HCC741")

    assert found.hint == (
        'move it into the "server_list" of group "2", and leave {"server_id": "10.0.0.2"} in its place'
    )


# Ids in the help of service tables


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ((3, "group_id"), 'write "group_id": "3", a number that no other group has'),
        (
            (3, "server_list", 1, "device", 2, "device_id"),
            'write "device_id": "2", a number that no other device of the server has',
        ),
        (
            (3, "server_list", 1, "device", 2, "rank_id"),
            'write "rank_id": "10", the number that no other device of the group has',
        ),
    ],
)
def test_an_id_in_the_help_of_a_service_table_is_free(path: tuple[str | int, ...], hint: str) -> None:
    value = sound(SERVICE)
    del at(value[SERVICE], path[:-1])[path[-1]]

    hints = [one.hint for one in findings(value, SERVICE) if one.rule.id == "HCC701"]

    assert hints == [hint]


def test_an_example_group_id_is_above_all_others_if_its_place_is_taken() -> None:
    value = sound(SERVICE)
    value[SERVICE][2]["group_id"] = "3"
    del value[SERVICE][3]["group_id"]

    hints = [one.hint for one in findings(value, SERVICE) if one.rule.id == "HCC701"]

    assert hints == ['write "group_id": "4", a number that no other group has']


def test_a_missing_index_of_all_devices_is_said_once() -> None:
    value = sound(SERVICE)
    for group in value[SERVICE]:
        for server in group["server_list"]:
            for device in server.get("device", ()):
                del device["device_logical_id"]

    found = [one for one in findings(value, SERVICE) if one.rule.id == "HCC715"]

    assert {one.alike for one in found} == {
        (
            "no device has a device_logical_id",
            (
                "number the devices of each pod from 0 in device_logical_id, in the order of the file: "
                'the first of a pod is "0"'
            ),
        )
    }
