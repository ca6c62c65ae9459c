"""Lists of servers that were pasted twice in super_pod_list: one finding with a sound remedy."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table


def only(value: Any, rule: str) -> tuple[str, str]:
    (found,) = validate(value, product="a3").findings
    assert found.rule.id == rule
    return found.message, found.hint or ""


@pytest.mark.parametrize(
    ("servers", "pods", "source", "target"),
    [(6, 3, 1, 2), (4, 2, 0, 1), (4, 2, 1, 0), (8, 4, 2, 0), (2, 2, 0, 1), (2, 2, 1, 0)],
)
def test_a_list_in_two_super_pods_is_one_finding(servers: int, pods: int, source: int, target: int) -> None:
    value = table("1.2", servers, 8, pods)
    right = deepcopy(value)
    value["super_pod_list"][target]["server_list"] = deepcopy(value["super_pod_list"][source]["server_list"])

    message, hint = only(value, "HCC525")

    assert message.endswith("in none: the list of servers was probably copied")
    names = [one["server_id"] for one in right["super_pod_list"][target]["server_list"]]
    assert all(f'"{name}"' in message and f'{{"server_id": "{name}"}}' in hint for name in names)
    assert f'in the entry of super pod "{target}", in place of the servers there' in hint
    assert "npu-smi" in hint
    value["super_pod_list"][target]["server_list"] = [{"server_id": name} for name in names]
    assert not validate(value, product="a3").findings


def test_an_entry_that_was_copied_with_its_id_gets_an_id_and_servers() -> None:
    value = table("1.2", 6, 8, 3)
    value["super_pod_list"][2] = deepcopy(value["super_pod_list"][1])

    message, hint = only(value, "HCC523")

    assert message.startswith(
        'two entries with super_pod_id "1" list the same servers, and "10.0.0.5" and "10.0.0.6"'
    )
    assert 'in entry 3 of super_pod_list, with its own id, such as "super_pod_id": "2"' in hint


def test_an_entry_more_with_another_id_is_removed() -> None:
    value = table("1.2", 6, 8, 3)
    value["super_pod_list"].append({**deepcopy(value["super_pod_list"][1]), "super_pod_id": "3"})

    message, hint = only(value, "HCC530")

    assert message == 'super pods "1" and "3" list the same servers'
    assert hint.endswith("remove the entry with the other super_pod_id")


@pytest.mark.parametrize("pods", [1, 2])
def test_a_server_that_a_super_pod_lists_twice_stands_for_the_one_in_none(pods: int) -> None:
    value = table("1.2", 4, 8, pods)
    listed = value["super_pod_list"][-1]["server_list"]
    listed[-1] = deepcopy(listed[-2])

    message, hint = only(value, "HCC525")

    assert message == (
        f'super pod "{pods - 1}" lists server "10.0.0.3" twice, and server "10.0.0.4" is not in any super pod'
    )
    assert hint.startswith('write "10.0.0.4" in place of the second one')


def test_a_server_that_is_listed_again_is_not_among_those_of_another_pod() -> None:
    value = table("1.2", 5, 8)
    value["super_pod_list"] = [
        {"super_pod_id": "0", "server_list": [{"server_id": f"10.0.0.{one}"} for one in (1, 2)]},
        {"super_pod_id": "1", "server_list": [{"server_id": f"10.0.0.{one}"} for one in (3, 4)]},
    ]
    for entry, other in zip(
        value["server_list"][4]["device"], value["server_list"][1]["device"], strict=True
    ):
        entry.update(device_ip=other["device_ip"], super_device_id=other["super_device_id"])
    value["server_list"][4]["server_id"] = "10.0.0.2"

    only(value, "HCC503")


def test_the_work_grows_with_the_servers() -> None:
    def work(servers: int) -> int:
        value = table("1.2", servers, 8, 2)
        value["super_pod_list"][1]["server_list"] = deepcopy(value["super_pod_list"][0]["server_list"])
        return steps(lambda: validate(value, product="a3"))

    assert work(64) < 6 * work(16)


@pytest.mark.parametrize(("lost", "twice", "pod"), [(1, 2, 0), (2, 1, 1), (0, 3, 0), (5, 2, 2)])
def test_the_order_of_the_servers_says_which_of_two_entries_is_wrong(lost: int, twice: int, pod: int) -> None:
    value = table("1.2", 6, 8, 3)
    pods = value["super_pod_list"]
    names = [f"10.0.0.{index + 1}" for index in range(6)]
    pods[lost // 2]["server_list"][lost % 2]["server_id"] = names[twice]

    (found,) = [one for one in validate(value, product="a3").findings if one.rule.id == "HCC525"]

    assert (found.hint or "").endswith(
        f'(probably "{names[lost]}" in place of "{names[twice]}" in super pod "{pod}")'
    )
    assert found.path == ("super_pod_list", pod, "server_list", lost % 2, "server_id")
    assert [one.path[1] for one in found.related] == [twice // 2]
