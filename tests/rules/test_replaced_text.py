"""A replacement of text without an end changes longer numbers as well: one finding names the replacement."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hccl_tools import validate
from tests.support.tables import table


def cluster(servers: int = 12, devices: int = 8) -> str:
    """Return a table with servers 10.0.0.1 and on, and addresses 192.168.1.1 and on."""
    value = table("1.0", servers, devices)
    for number, server in enumerate(value["server_list"], 1):
        for place, device in enumerate(server["device"], 1):
            device["device_ip"] = f"192.168.{number}.{place}"
    return json.dumps(value, indent=2)


def found(text: str) -> list[tuple[str, str, str]]:
    report = validate(text.encode(), product="a2")
    return [(one.rule.id, one.message, one.hint or "") for one in report.findings]


@pytest.mark.parametrize(
    ("old", "new", "rule", "verdict"),
    [
        ("10.0.0.1", "10.0.0.11", "HCC633", "accepted"),
        ("10.0.0.1", "10.0.0.101", "HCC619", "accepted"),
        ("10.0.0.1", "10.0.0.2", "HCC503", "refused"),
        ("192.168.1", "192.168.10", "HCC633", "accepted"),
        ("192.168.1", "192.168.2", "HCC404", "refused"),
        ("192.168.1", "192.168.99", "HCC403", "refused"),
    ],
)
def test_one_finding_names_the_replacement_and_an_inverse_one(
    old: str, new: str, rule: str, verdict: str
) -> None:
    before = cluster()
    after = before.replace(f'"{old}', f'"{new}')

    ((own, message, hint),) = found(after)

    assert validate(after.encode(), product="a2").verdict == verdict
    assert own == rule
    assert f'a replacement of "{old}" by "{new}" probably changed longer ones, too' in message
    for pair in hint.removeprefix("write ").partition("; ")[0].partition(" and ")[0].split(", ")[:3]:
        right, _, wrong = pair.partition(" in place of ")
        assert right in before
        assert wrong.partition(",")[0] in after


def test_the_value_that_may_be_meant_is_left_open_unless_another_has_it() -> None:
    (meant,) = found(cluster().replace('"10.0.0.1', '"10.0.0.77'))
    (double,) = found(cluster().replace('"10.0.0.1', '"10.0.0.2'))

    assert '; and, unless "10.0.0.77" is right there, "10.0.0.1" in place of "10.0.0.77", too' in meant[2]
    assert '; and "10.0.0.1" in place of "10.0.0.2", too' in double[2]


def test_the_devices_of_one_server_are_one_finding() -> None:
    value = json.dumps(table("1.0", 3, 8), indent=2)

    ((rule, message, _),) = found(value.replace("192.168.0.10", "192.168.0.110"))

    assert rule == "HCC403"
    assert message.startswith('8 device_ips have "192.168.0.110" where by the order of the others')


def test_a_network_that_was_replaced_as_a_whole_is_no_such_replacement() -> None:
    ((rule, message, _),) = found(cluster().replace('"192.168.1.', '"192.168.77.'))

    assert rule == "HCC633"
    assert message.startswith('the device_ips of server 1 ("10.0.0.1") do not follow the order')


@pytest.mark.parametrize("seed", range(20))
def test_sound_random_values_are_silent(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (not secret)
    value: Any = json.loads(cluster(chance.randint(2, 12), 8))
    names = chance.sample(range(1, 250), len(value["server_list"]))
    for server, name in zip(value["server_list"], names, strict=True):
        server["server_id"] = f"10.0.0.{name}"
    texts = [message for _, message, _ in found(json.dumps(value))]

    assert not any("a replacement of" in text for text in texts)


def super_pods() -> dict[str, Any]:
    """Return a table of 12 servers in two super pods."""
    value: dict[str, Any] = table("1.2", 12, 8, 2)
    return value


def paths(value: Any) -> tuple[str, list[str]]:
    """Return the hint of the only error of a table and its places."""
    (one,) = (one for one in validate(value, product="a3").findings if one.rule.severity == "error")
    places = [one.path, *(related.path for related in one.related)]
    return one.hint or "", ["/".join(map(str, path)) for path in places]


@pytest.mark.parametrize("is_in_both", [True, False])
def test_only_the_places_of_a_replacement_are_to_be_corrected(is_in_both: bool) -> None:
    value, sound = super_pods(), super_pods()
    lists = [value["server_list"]] + [pod["server_list"] for pod in value["super_pod_list"] if is_in_both]
    for server in (server for listed in lists for server in listed):
        server["server_id"] = server["server_id"].replace("10.0.0.1", "10.0.0.2")

    hint, places = paths(value)

    assert hint.endswith('change these places alone: elsewhere "10.0.0.2" is right')
    for path in places:
        *keys, last = (int(key) if key.isdigit() else key for key in path.split("/"))
        own: Any
        right: Any
        own, right = value, sound
        for key in keys:
            own, right = own[key], right[key]
        own[last] = right[last]
    assert value == sound


def test_super_pods_in_another_order_are_corrected_after_server_list() -> None:
    value = super_pods()
    value["super_pod_list"].reverse()
    text = json.dumps(value).replace("10.0.0.1", "10.0.0.2")

    assert paths(json.loads(text))[0].endswith("where each server is listed once")


@pytest.mark.parametrize("servers", [12, 16, 19])
def test_a_replacement_of_half_of_the_server_ids_is_one_finding(servers: int) -> None:
    ((rule, message, _),) = found(cluster(servers).replace('"10.0.0.1', '"10.0.0.77'))

    assert rule == "HCC619"
    assert 'a replacement of "10.0.0.1" by "10.0.0.77"' in message
