"""A count follows from its list only if nothing else in the file says that the list is the wrong one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from hccl_tools.validation.correction import correct
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hccl_tools.diagnostics.diagnostic import Diagnostic


def of_rule(source: Any, rule: str = "HCC501") -> list[Diagnostic]:
    return [one for one in validate(source).findings if one.rule.id == rule]


def fixed(value: Any) -> Any:
    return json.loads(correct(json.dumps(value).encode(), lambda data: validate(data, limit=None)).data)


def nested_in_a_server(value: dict[str, Any]) -> None:
    value["server_list"][1]["next"] = value["server_list"].pop()


def in_a_list_of_a_server(value: dict[str, Any]) -> None:
    value["server_list"][1]["server_list"] = [value["server_list"].pop()]


def in_a_list_of_its_own(value: dict[str, Any]) -> None:
    value["server_list2"] = [value["server_list"].pop()]


def under_a_key_of_its_own(value: dict[str, Any]) -> None:
    value["10.0.0.3"] = value["server_list"].pop()


def in_group_list(value: dict[str, Any]) -> None:
    lost = value["server_list"].pop()
    instance = {"pod_name": "a", "server_id": lost["server_id"], "devices": lost["device"]}
    value["group_list"] = [{"instance_list": [instance]}]


def last_one_lost(value: dict[str, Any]) -> None:
    del value["server_list"][2]


def first_one_lost(value: dict[str, Any]) -> None:
    del value["server_list"][0]


def cut_off(value: dict[str, Any]) -> None:
    del value["server_list"][2], value["server_list"][1]["device"][5:]


_LOST: dict[Callable[[dict[str, Any]], None], str] = {
    nested_in_a_server: 'server "10.0.0.3" is inside server "10.0.0.2"',
    in_a_list_of_a_server: 'server "10.0.0.3" is inside server "10.0.0.2"',
    in_a_list_of_its_own: 'server "10.0.0.3" is in "server_list2"',
    under_a_key_of_its_own: 'server "10.0.0.3" is under the key "10.0.0.3"',
    in_group_list: 'server "10.0.0.3" is in "group_list"',
    last_one_lost: "server_list has 2 entries",
    first_one_lost: "no device has ranks 0-7",
    cut_off: "its last entry has 5 devices, the others have 8",
}


@pytest.mark.parametrize("lose", _LOST)
def test_a_table_that_has_lost_a_server_keeps_its_count(lose: Callable[[dict[str, Any]], None]) -> None:
    value = table("1.0", 3, 8)
    lose(value)

    (count,) = of_rule(value)

    assert _LOST[lose] in count.message
    assert fixed(value)["server_count"] == "3"
    if "does not read" in count.message:
        assert (count.hint or "").startswith("move it into server_list, as an entry of its own")
        assert (count.hint or "").endswith("server_count is then right")
        assert len(count.related) == 1
    else:
        assert (count.hint or "").startswith(
            ("add the missing server, or,", "the end of the table is missing: ")
        )
        rest = " and number the ranks without a gap" if lose is first_one_lost else ""
        assert (count.hint or "").endswith(f'is missing, write "server_count": "2"{rest}')


def test_more_servers_elsewhere_than_the_count_has() -> None:
    value = table("1.0", 4, 8)
    value["server_count"] = "3"
    value["server_list2"] = value["server_list"][2:]
    del value["server_list"][2:]

    (count,) = of_rule(value)

    assert 'servers "10.0.0.3", "10.0.0.4" are in "server_list2"' in count.message
    assert (count.hint or "").endswith('if the job does not use them, write "server_count": "2"')


@pytest.mark.parametrize(
    ("name", "words", "is_certain"),
    [
        ("hccl_2s_16p.json", "server_list has 2 entries", True),
        ("hccl_16p_01234567_10.0.0.1.json", "server_list has 2 entries", True),
        ("table-2nodes.json", "server_list has 2 entries", True),
        ("hccl_3s_24p.json", "the file name says 3 servers", False),
        ("hccl_24p.json", "the file name says 24 ranks", False),
        ("table_3x8.json", "the file name says 3 servers", False),
        ("table_5x8.json", "server_list has 2 entries", False),
        ("job17.json", "server_list has 2 entries", False),
    ],
)
def test_the_file_name_says_which_of_the_two_is_wrong(
    tmp_path: Path, name: str, words: str, is_certain: bool
) -> None:
    value = table("1.0", 3, 8)
    del value["server_list"][2]
    (tmp_path / name).write_text(json.dumps(value))

    (count,) = of_rule(tmp_path / name)

    assert count.message.endswith(words)
    assert (count.right == "2") == is_certain


def test_super_pods_say_which_of_the_two_is_wrong() -> None:
    lost = table("1.2", 3, 2)
    del lost["server_list"][2]
    stale = table("1.2", 2, 2)
    stale["server_count"] = "3"
    added = table("1.2", 3, 2)
    added["server_count"] = "2"
    del added["super_pod_list"][0]["server_list"][2]

    assert 'other lists of the table name "10.0.0.3"' in of_rule(lost)[0].message
    assert [one.right for value in (lost, stale, added) for one in of_rule(value)] == [None, "2", None]


@pytest.mark.parametrize("stated", ["0", "1", "two", "2x"])
def test_a_count_that_is_too_low_follows_from_a_list_that_is_numbered(stated: str) -> None:
    value = table("1.0", 3, 8) | {"server_count": stated}

    assert fixed(value)["server_count"] == "3"


def test_a_count_follows_from_tables_that_were_joined() -> None:
    value = table("1.0", 3, 8) | {"server_count": "1"}
    for server in value["server_list"]:
        for number, device in enumerate(server["device"]):
            device["rank_id"] = str(number)

    assert fixed(value)["server_count"] == "3"


def test_a_spare_with_the_ranks_of_another_server_raises_no_count() -> None:
    value = table("1.0", 4, 8) | {"server_count": "3"}
    for own, failed in zip(value["server_list"][3]["device"], value["server_list"][1]["device"], strict=True):
        own["rank_id"] = failed["rank_id"]

    (count,) = of_rule(value)

    assert 'server 4 ("10.0.0.4") has the ranks of server 2 ("10.0.0.2")' in count.message
    assert (count.hint or "").startswith(
        'if it replaces that server, write it in place of the entry of server 2 ("10.0.0.2"); '
        "server_count is then right"
    )
    assert fixed(value)["server_count"] == "3"
    del value["server_list"][1]
    assert not [one for one in validate(value).findings if one.rule.severity == "error"]


def test_servers_that_are_listed_again_raise_no_count() -> None:
    value = table("1.0", 2, 8)
    again = json.loads(json.dumps(value["server_list"]))
    for number, device in enumerate(device for server in again for device in server["device"]):
        device["rank_id"] = str(16 + number)
    value["server_list"] += again

    (count,) = of_rule(value)

    assert count.hint == "remove the entries that list a server again; server_count is then right"
    assert fixed(value)["server_count"] == "2"


def test_a_table_that_is_not_complete_yet_gets_no_count() -> None:
    value = table("1.0", 3, 8) | {"status": "initializing"}
    del value["server_list"][2]
    group = table("group_list", 3, 8) | {"status": "initializing"}
    del group["group_list"][0]["instance_list"][2]

    for hint in [*(one.hint for one in of_rule(value)), *(one.hint for one in of_rule(group, "HCC512"))]:
        assert (hint or "").startswith("wait: the program that writes the table adds the other ")


def test_a_rank_count_follows_only_from_more_ranks(tmp_path: Path) -> None:
    lost, added = table("2.0", 2, 8), table("2.0", 2, 8) | {"rank_count": 8}
    del lost["rank_list"][15]
    (tmp_path / "hccl_15p.json").write_text(json.dumps(lost))
    (tmp_path / "hccl_16p.json").write_text(json.dumps(lost))

    both = (
        'unlike the other node, node "node1" has no device 7: add the entry of rank 15 (`hccl-tools gen` '
        'on node1 prints it); only if it is left out on purpose, write "rank_count": 15'
    )
    assert [(one.hint, one.right) for one in of_rule(lost, "HCC204")] == [(both, None)]
    assert [one.right for one in of_rule(added, "HCC204")] == [16]
    assert [one.right for one in of_rule(tmp_path / "hccl_15p.json", "HCC204")] == [15]
    assert [one.hint for one in of_rule(tmp_path / "hccl_16p.json", "HCC204")] == [both]


def test_counts_of_a_group_that_agree_with_each_other_are_not_corrected() -> None:
    value = table("group_list", 4, 8)
    del value["group_list"][0]["instance_list"][2:]

    both = of_rule(value, "HCC512")

    assert [one.right for one in both] == [None, None]
    assert all("both counts of the group say that 2 instances are missing" in one.message for one in both)
    assert all("add the missing 2 instances, or," in (one.hint or "") for one in both)


@pytest.mark.parametrize(
    ("instances", "lost", "stated", "right"),
    [(3, 0, "23", "24"), (3, 0, "32", "24"), (1, 1, "8", None), (2, 0, "17", "16")],
)
def test_a_device_count_follows_from_whole_instances(
    instances: int, lost: int, stated: str, right: str | None
) -> None:
    value = table("group_list", instances, 8)
    value["group_list"][0]["device_count"] = stated
    if lost:
        del value["group_list"][0]["instance_list"][0]["devices"][7]

    (count,) = of_rule(value, "HCC512")

    assert count.right == right
    if right is None:
        assert (count.hint or "").startswith("add the missing device, or, if none is missing, write ")


def test_a_group_count_is_lowered_by_hand() -> None:
    lost, added = (table("group_list", 1, 8) | {"group_count": stated} for stated in ("2", "0"))

    assert [one.right for one in of_rule(lost, "HCC511")] == [None]
    assert [one.right for one in of_rule(added, "HCC511")] == ["1"]


def test_servers_elsewhere_are_found_in_linear_time() -> None:
    def taken(servers: int) -> int:
        value = table("1.0", servers, 8) | {"server_count": "9999"}
        value["server_list2"] = value["server_list"]
        return steps(lambda: validate(value))

    assert taken(200) < 8 * taken(50)  # the square would be 16


def test_the_missing_entries_of_a_rank_list_are_counted() -> None:
    value = table("2.0", 2, 8)
    del value["rank_list"][12:]

    (found,) = validate(value).findings

    assert (found.hint or "").startswith("add the missing 4 entries, or, ")


def of_one_name(number: int, name: str) -> dict[str, Any]:
    """Return the tables of hosts that all have one server_id, joined as ``jq`` joins them."""
    value = table("1.0", number, 8) | {"server_count": "1"}
    for server in value["server_list"]:
        server["server_id"] = name
        for rank, device in enumerate(server["device"]):
            device["rank_id"] = str(rank)
    return value


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_hosts_that_all_have_a_loopback_address_are_not_removed(name: str, number: int) -> None:
    value = of_one_name(number, name)

    (count,) = of_rule(value)
    hints = " ".join(one.message + (one.hint or "") for one in of_rule(value, "HCC503"))

    assert count.message.endswith("have the same devices with different device_ips: they are different hosts")
    assert count.hint == f'write "server_count": "{number}", and give each host its own server_id (HCC503)'
    assert "own address of each host" in hints
    assert "filled down" not in hints
    assert "keep" not in hints


def test_entries_of_one_server_with_other_addresses_are_removed_only_if_they_are_old() -> None:
    (count,) = of_rule(of_one_name(2, "10.0.0.1"))

    assert (count.hint or "").startswith('write "server_count": "2" if they are different hosts')
    assert "if one is an old entry of the same host, remove it" in (count.hint or "")
