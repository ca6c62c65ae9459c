"""From one format to another and back: what stays, what is lost, what is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from hccl_tools import formats
from hccl_tools.errors import TableError
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.transform import super_pod_plan
from hccl_tools.transform.conversion import convert, dropped_information, invented_information
from hccl_tools.transform.super_pod_plan import SuperPodMembership, read_super_pods
from hccl_tools.validation.checker import check_table
from tests.support.clusters import devices_of, group_lists, host_table, super_pod_tables, tables
from tests.support.tables import table

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

#: Other people's files: read in place where they are at hand, never part of this repository.
WILD = Path(__file__).parents[3] / "shared" / "corpus" / "wild"


def read(table_format: str, servers: int = 2, devices: int = 8, pods: int = 1) -> RankTable:
    return formats.read(table(table_format, servers, devices, pods))


@pytest.mark.skipif(not WILD.is_dir(), reason="the corpus of other people's files is not at hand")
def test_a_modelarts_table_becomes_what_modelarts_makes_of_it() -> None:
    before, expected = (
        formats.read(json.loads((WILD / name).read_text())) for name in ("113_grouplist.json", "032_v1.json")
    )

    made = convert(before, to="1.0")

    assert [server.server_id for server in made.servers] == [server.server_id for server in expected.servers]
    assert list(made.devices()) == list(expected.devices())
    assert fingerprint(before) == fingerprint(made) == fingerprint(expected)
    assert check_table(made).ok


@given(group_lists())
def test_group_list_to_1_0_and_back(before: RankTable) -> None:
    there = convert(before, to="1.0")
    back = convert(there, to="group_list")

    assert devices_of(before) == devices_of(there) == devices_of(back)
    assert fingerprint(before) == fingerprint(there) == fingerprint(back)
    assert [server.fields["pod_name"] for server in back.servers] == sorted(
        server.fields["pod_name"] for server in before.servers
    )


@given(tables(ordered=True))
def test_1_0_to_group_list_and_back(before: RankTable) -> None:
    there = convert(before, to="group_list")
    back = convert(there, to="1.0")

    assert devices_of(before) == devices_of(there) == devices_of(back)
    assert fingerprint(before) == fingerprint(there) == fingerprint(back)


@given(super_pod_tables())
def test_1_2_to_1_0_and_back(before: RankTable) -> None:
    value = json.loads("".join(formats.write(before)))
    there = convert(before, to="1.0")
    back = convert(there, to="1.2", super_pods=read_super_pods(value, "pods.json"))

    assert devices_of(before) == devices_of(there) == devices_of(back)
    assert back.super_pods == before.super_pods
    assert back.columns == before.columns
    assert fingerprint(before) == fingerprint(back) != fingerprint(there)


@given(tables())
def test_the_table_itself_stays_as_it_is(before: RankTable) -> None:
    text = "".join(formats.write(before))
    convert(before, to="group_list", renumber=True)

    assert "".join(formats.write(before)) == text


def test_the_same_format_is_the_same_table() -> None:
    before = read("2.0")

    assert convert(before, to="2.0") is before


def test_instances_on_one_host_become_one_server() -> None:
    value = table("group_list", 2, 4)
    for index, entry in enumerate(value["group_list"][0]["instance_list"]):
        entry["server_id"] = "10.0.0.1"
        for device in entry["devices"]:
            device["device_id"] = str(int(device["device_id"]) + 4 * (1 - index))
    before = formats.read(value)

    made = convert(before, to="1.0")

    assert [server.server_id for server in made.servers] == ["10.0.0.1"]
    assert made.device_ids == [str(number) for number in range(8)]
    assert made.rank_ids == [str(number) for number in range(8)]
    assert fingerprint(before) == fingerprint(made)
    assert "the pod names of 2 instances, which became 1 server" in dropped_information(before, made)


def test_what_a_group_list_says_and_1_0_does_not() -> None:
    before = read("group_list")

    assert dropped_information(before, convert(before, to="1.0")) == ['1 group name ("g0")']


@pytest.mark.parametrize(
    ("number", "words"),
    [(3, '3 group names ("g0", "g1", "g2")'), (4, '4 group names ("g0", "g1", "g2", ...)')],
)
def test_up_to_three_lost_group_names_are_listed(number: int, words: str) -> None:
    value = table("group_list", number)
    entries = value["group_list"][0]["instance_list"]
    value["group_list"] = [
        {
            **value["group_list"][0],
            "group_name": f"g{place}",
            "instance_count": "1",
            "device_count": str(len(entry["devices"])),
            "instance_list": [entry],
        }
        for place, entry in enumerate(entries)
    ]
    value["group_count"] = str(number)
    before = formats.read(value)

    assert words in dropped_information(before, convert(before, to="1.0"))


def test_an_empty_group_name_is_no_loss() -> None:
    value = table("group_list")
    value["group_list"][0]["group_name"] = ""
    before = formats.read(value)

    assert dropped_information(before, convert(before, to="1.0")) == []


def test_what_a_super_pod_table_says_and_1_0_does_not() -> None:
    before = read("1.2", 2, 8, pods=2)

    assert dropped_information(before, convert(before, to="1.0")) == [
        "2 super pods: the servers in each",
        "super_device_id of 16 devices",
    ]


def test_what_1_0_says_and_a_group_list_does_not() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["host_ip"] = "10.0.0.1"
    value["cluster_list"] = []
    for device in value["server_list"][0]["device"][:3]:
        device["device_port"] = "16667"
    before = formats.read(value)

    made = convert(before, to="group_list")

    assert dropped_information(before, made) == [
        "device_port of 3 devices",
        "host_ip of 1 server",
        '"cluster_list" of the table',
    ]
    assert invented_information(before, made) == [
        'group_name "group"',
        "pod_name of 1 instance: the server_id",
    ]
    assert check_table(made).ok


def test_ranks_that_a_group_list_cannot_say() -> None:
    before = read("1.0", 1, 2)
    before.columns["rank_id"] = ["1", "0"]

    with pytest.raises(TableError, match=r"2 of 2 ranks would change.*rank 1 becomes 0") as caught:
        convert(before, to="group_list")

    assert "--renumber" in (caught.value.hint or "")
    made = convert(before, to="group_list", renumber=True)
    assert made.rank_ids == ["0", "1"]
    assert (
        "2 rank ids: HCCL numbers a group_list by server_id as text, then by device id"
        in dropped_information(before, made)
    )


def test_1_2_needs_super_pods() -> None:
    with pytest.raises(TableError, match="needs each server's super pod") as caught:
        convert(read("1.0"), to="1.2")

    assert "--super-pods FILE" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"10.0.0.9": SuperPodMembership("0", {})}, "has no server 10.0.0.1"),
        ({"10.0.0.1": SuperPodMembership("0", {0: "5"})}, "no super_device_id for device 1 of 10.0.0.1"),
    ],
)
def test_super_pods_that_are_incomplete(plan: dict[str, SuperPodMembership], message: str) -> None:
    with pytest.raises(TableError, match=message):
        convert(read("1.0", 1, 2), to="1.2", super_pods=plan)


def test_a_group_list_to_1_2() -> None:
    plan = {
        f"10.0.0.{n}": SuperPodMembership("7", {device: str(n * 100 + device) for device in range(8)})
        for n in (1, 2)
    }

    made = convert(read("group_list"), to="1.2", super_pods=plan)

    assert made.columns["super_device_id"][9] == "201"
    assert [pod.server_ids for pod in made.super_pods or ()] == [["10.0.0.1", "10.0.0.2"]]
    assert check_table(made).ok


@pytest.mark.parametrize("other", ["1.0", "1.2", "group_list"])
def test_2_0_stays_2_0(other: str) -> None:
    with pytest.raises(TableError, match=r"net_layer, net_instance_id.*ports"):
        convert(host_table(1, other), to="2.0")
    with pytest.raises(TableError, match=f"cannot be converted to {other}"):
        convert(host_table(1, "2.0"), to=other)  # type: ignore[arg-type]


def test_a_plan_by_server_and_device() -> None:
    value = {"10.0.0.1": {"super_pod_id": 0, "super_device_ids": {"0": 5, "1": "6"}}}

    assert read_super_pods(value, "pods.json") == {"10.0.0.1": SuperPodMembership("0", {0: "5", 1: "6"})}


def test_a_plan_with_lists() -> None:
    value = {"10.0.0.1": {"super_pod_id": "0", "super_device_ids": ["5", "6"]}}

    assert read_super_pods(value, "pods.json") == {"10.0.0.1": SuperPodMembership("0", {0: "5", 1: "6"})}


def test_a_1_0_table_with_super_pods_is_a_plan() -> None:
    """Some generators write ``"version": "1.0"`` above super pods, which HCCL then ignores."""
    value = {**table("1.2", 1, 2), "version": "1.0"}

    assert read_super_pods(value, "hccl.json") == {"10.0.0.1": SuperPodMembership("0", {0: "0", 1: "1"})}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "does not have the super pod"),
        ({}, "does not have the super pod"),
        ({"10.0.0.1": {"super_pod_id": "0"}}, "lacks super_pod_id or super_device_ids"),
        ({"10.0.0.1": {"super_pod_id": "0", "super_device_ids": 5}}, "are invalid"),
        ({"10.0.0.1": {"super_pod_id": True, "super_device_ids": []}}, "are invalid"),
        ({"10.0.0.1": {"super_pod_id": "0", "super_device_ids": {"0": "x"}}}, "is not a device id"),
        ({"10.0.0.1": {"super_pod_id": "0", "super_device_ids": {"x": "0"}}}, "is not a device id"),
        ({"10.0.0.1": {"super_pod_id": "0", "super_device_ids": {"0": 5.5}}}, "is not a device id"),
        (table("1.0"), "is a 1.0 table without super pods"),
        ({"version": "1.2"}, "is not a readable table"),
    ],
)
def test_plans_that_say_nothing(value: object, message: str) -> None:
    with pytest.raises(TableError, match=message):
        super_pod_plan.read_super_pods(value, "pods.json")
