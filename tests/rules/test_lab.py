"""The checks of the old "lab" form of group_list tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.growth import memory, steps
from tests.support.tables import table


def ids(value: dict[str, Any], product: str = "910a") -> list[str]:
    return [finding.rule.id for finding in validate(value, product=product).findings]


def test_a_sound_table_passes() -> None:
    assert validate(table("lab", 2, 8)).verdict == "accepted"
    assert ids(table("lab", 2, 8)) == []


def test_status_is_needed() -> None:
    value = table("lab")
    del value["status"]

    assert ids(value) == ["HCC115"]


@pytest.mark.parametrize(
    ("devices", "found"), [((0, 1, 2, 4), "HCC305"), ((0, 0, 1, 2), "HCC304 HCC303"), ((0, 1, 2, 3), None)]
)
def test_topology_is_checked(devices: tuple[int, ...], found: str | None) -> None:
    value = table("lab", 1, 4)
    instances = value["group_list"][0]["instance_list"]
    for instance, device in zip(instances, devices, strict=True):
        instance["devices"][0]["device_id"] = str(device)

    assert ids(value) == (found.split() if found else [])


def test_addresses_of_one_instance_are_read() -> None:
    value = table("lab", 2, 8)
    value["group_list"][0]["instance_list"][0]["devices"][0]["device_ip"] = ""

    assert ids(value) == ["HCC410"]


@pytest.mark.parametrize(
    ("version", "verdict"), [("Standard", "accepted"), ("3.0", "refused"), ("", "refused"), (None, "refused")]
)
def test_version_may_be_left_out_but_not_be_another(version: str | None, verdict: str) -> None:
    assert validate({**table("lab"), "version": version}).verdict == verdict


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("", "accepted"),
        ("g" * 127, "accepted"),
        ("\u00e9" * 64, "refused"),
        ("g" * 128, "refused"),
        (1, "refused"),
    ],
)
def test_group_name_has_at_most_127_bytes(name: object, verdict: str) -> None:
    value = table("lab")
    value["group_list"][0]["group_name"] = name

    assert validate(value).verdict == verdict


def test_a_group_name_is_used_once() -> None:
    value = table("lab", 2, 1)
    group = value["group_list"][0]
    halves = [
        {**group, "instance_count": "1", "device_num": "1", "server_num": "1", "instance_list": [instance]}
        for instance in group["instance_list"]
    ]
    value |= {"group_count": "2", "group_list": halves}

    assert validate(value).verdict == "refused"
    halves[1]["group_name"] = "g1"
    assert validate(value).verdict == "accepted"


@pytest.mark.parametrize(
    ("device_id", "product", "verdict"),
    [
        ("7", "910a", "accepted"),
        ("8", "910a", "refused"),
        ("2147483648", "910a", "refused"),
        ("31", "a2", "accepted"),
        ("32", "a2", "refused"),
        ("2147483647", "a2", "refused"),
        ("2147483648", "a2", "accepted"),
        ("4294967295", "a2", "refused"),
    ],
)
def test_device_ids_as_hccl_compares_them(device_id: str, product: str, verdict: str) -> None:
    value = table("lab", 1, 1)
    value["group_list"][0]["instance_list"][0]["devices"][0]["device_id"] = device_id

    assert validate(value, product=product).verdict == verdict


@pytest.mark.parametrize(
    ("ip", "verdict"),
    [
        ("192.168.0.9", "accepted"),
        ("", "accepted"),
        ("192.168.0", "refused"),
        ("0.0.0.0", "refused"),
        ("192.168.0.1", "refused"),  # The other device has it.
        (None, "refused"),
    ],
)
def test_device_ips_are_addresses_that_differ(ip: object, verdict: str) -> None:
    value = table("lab", 1, 2)
    first, second = value["group_list"][0]["instance_list"]
    first["devices"][0]["device_ip"] = "192.168.0.1"
    second["devices"][0]["device_ip"] = ip

    assert validate(value).verdict == verdict


def told(value: dict[str, Any]) -> list[tuple[Any, str, str]]:
    return [
        (
            one.path[-1],
            one.message.removeprefix("lab table (deploy_mode): "),
            (one.hint or "").partition(", or make")[0],
        )
        for one in validate(value).findings
    ]


def test_a_second_machine_that_was_pasted_in_is_told_with_ranks_and_counts() -> None:
    value = table("lab", 2, 8)
    group = value["group_list"][0]
    group |= {"server_num": "1", "device_num": "8", "instance_count": "8"}
    for instance in group["instance_list"][8:]:
        instance["rank_id"] = str(int(instance["rank_id"]) - 8)

    counts = '"instance_count": "16" and "device_num": "16"'
    assert told(value) == [
        (
            "instance_count",
            "instance_count is 8, device_num is 8, and 16 instances are listed",
            f"write {counts} if all listed instances are in the job and none is missing",
        ),
        (
            "rank_id",
            'ranks 0-7 are used twice: by server "10.0.0.1", and from here on by "10.0.0.2"',
            "continue the rank numbers with 8 here",
        ),
        (
            "server_num",
            "server_num is 1, but the instances have 2 server_ids",
            'write "server_num": "2" if all of these servers are in the job',
        ),
    ]


def test_ranks_that_are_missing_or_twice_are_named() -> None:
    value = table("lab", 1, 4)
    instances = value["group_list"][0]["instance_list"]
    instances[3]["rank_id"] = "5"
    assert told(value) == [
        (
            "group_list",
            "no instance has rank 3: the ranks of 4 instances are 0 to 3",
            "number the ranks 0 to 3 over all instances",
        )
    ]
    instances[3]["rank_id"] = "1"
    assert told(value) == [
        (
            "rank_id",
            'rank 1 of server "10.0.0.1" is used twice, and no instance has rank 3',
            'write "rank_id": "3" in the right one of the two: by the order of the others, in instance 4',
        )
    ]


def instances(value: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value["group_list"][0]["instance_list"]
    return found


def test_a_device_that_is_missing_is_named_with_its_rank() -> None:
    value = table("lab", 2, 8)
    del instances(value)[13]
    device = 'device 5 of server "10.0.0.2"'
    remedy = (
        'add the instance of device 5 of server "10.0.0.2" with rank 13: `hccn_tool -i 5 -ip -g` on 10.0.0.2 '
        "shows the address of device 5"
    )

    assert told(value) == [
        ("group_list", f"no instance has rank 13: {device} is not listed", remedy),
        (
            "instance_count",
            f"instance_count is 16, device_num is 16, and 15 instances are listed: {device} is not",
            remedy,
        ),
    ]


def test_a_count_that_hccl_refuses_is_no_remedy() -> None:
    value = table("lab", 2, 8)
    del instances(value)[6:8]
    del instances(value)[11]

    remedies = [remedy for key, _, remedy in told(value) if key == "instance_count"]

    assert remedies
    assert "write" not in remedies[0]


def test_a_mistyped_rank_is_told_with_the_one_that_is_missing() -> None:
    value = table("lab", 2, 8)
    instances(value)[13]["rank_id"] = "12"

    assert told(value) == [
        (
            "rank_id",
            'rank 12 of server "10.0.0.2" is used twice, and no instance has rank 13',
            'write "rank_id": "13" in the right one of the two: by the order of the others, in instance 14',
        )
    ]


@pytest.mark.parametrize("number", [2, 3])
def test_hosts_with_one_server_id_are_told_once(number: int) -> None:
    value = table("lab", number, 8)
    for one in instances(value):
        one["server_id"] = "10.0.0.1"

    ((key, message, remedy),) = told(value)

    assert key == "server_id"
    assert "instances 1-8 and 9-16 have the same devices with different addresses" in message
    assert remedy.startswith("write in instances 9-16 the server_id of their own host")
    assert ("each further block" in remedy) == (number > 2)


@pytest.mark.parametrize("wrong", [None, {}, {"server_id": "10.0.0.1"}, {"server_id": 1, "devices": [7]}, []])
def test_an_instance_that_is_no_object_ends_no_check(wrong: object) -> None:
    value = table("lab", 2, 8)
    instances(value)[3] = wrong  # type: ignore[call-overload]

    assert validate(value).verdict == "refused"


def one_long_host(number: int) -> Any:
    """Return a table with one host of many devices, and as many of one device; one instance is missing."""
    value = table("lab", 1, 1)
    group = value["group_list"][0]
    names = ["10.0.0.1"] * number + [f"10.1.{place // 200}.{place % 200 + 1}" for place in range(number)]
    group["instance_list"] = [
        {
            "devices": [
                {"device_id": str(place % number if place < number else 0),
                 "device_ip": f"29.0.{place // 200}.{place % 200 + 1}"}
            ],
            "rank_id": str(place),
            "server_id": name,
        }
        for place, name in enumerate(names)
    ]  # fmt: skip
    group["device_num"] = group["instance_count"] = str(2 * number + 1)
    return value


@pytest.mark.parametrize("measured", [memory, steps])
def test_one_long_host_and_many_short_ones_take_linear_memory_and_work(measured: Any) -> None:
    small, large = (json.dumps(one_long_host(number)).encode() for number in (600, 1200))
    validate(small, product="910a")
    less = measured(lambda: validate(small, product="910a"))

    assert measured(lambda: validate(large, product="910a")) < 2.4 * less
