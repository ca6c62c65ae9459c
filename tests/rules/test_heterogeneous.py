"""HCCL's verdict on version 1.1, key by key (topoinfo_ranktableHeterog.cc and the checks after it)."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools import validate

ABSENT: Any = object()


def rank(number: int, **changes: Any) -> dict[str, Any]:
    keys = {"rank_id": str(number), "device_id": str(number), **changes}
    return {key: value for key, value in keys.items() if value is not ABSENT}


def table(*nodes: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    listed = [{"node_addr": f"10.0.0.{number + 1}", "ranks": ranks} for number, ranks in enumerate(nodes)]
    value = {"version": "1.1", "status": "completed", "collective_id": "x", "node_list": listed, **changes}
    return {key: item for key, item in value.items() if item is not ABSENT}


def one(**changes: Any) -> dict[str, Any]:
    return table([rank(0, **changes)])


SUB = {"device_id": "0", "port": "16666", "rank_ip": "", "sdid": "0"}


def with_sdid(**changes: Any) -> dict[str, Any]:
    return table([rank(0, **{**SUB, **changes})], heterog_sub_version="1.2")


REFUSED = {
    "no status": table([rank(0)], status=ABSENT),
    "status number": table([rank(0)], status=1),
    "no collective_id": table([rank(0)], collective_id=ABSENT),
    "collective_id 128": table([rank(0)], collective_id="x" * 128),
    "mode": table([rank(0)], mode="udp"),
    "mode null": table([rank(0)], mode=None),
    "sub version": table([rank(0, **SUB)], heterog_sub_version="1.1"),
    "no nodes": table(),
    "node_list object": table(node_list={"0": 1}),
    "node is not an object": table(node_list=[1]),
    "address long": table(node_list=[{"node_addr": "10.0.0.1%" + "e" * 119, "ranks": [rank(0)]}]),
    "no ranks": table([]),
    "no rank_id": one(rank_id=ABSENT),
    "rank_id number": one(rank_id=0),
    "rank_id gap": table([rank(0), rank(2)]),
    "rank_id twice": table([rank(0), rank(1, rank_id="0")]),
    "device_id number": one(device_id=0),
    "device_id null": one(device_id=None),
    "device_id empty": one(device_id=""),
    "device_id word": one(device_id="x"),
    "device_id beyond 32 bits": one(device_id="2147483648"),
    "device_id long": one(device_id="1" * 5000),
    "device_id 32": one(device_id="32"),
    "host process": one(device_id=ABSENT),
    "host process -1": one(device_id="-1"),
    "port number": one(port=16666),
    "port empty": one(port=""),
    "port beyond 32 bits": one(port="4294967296"),
    "rank_ip word": one(rank_ip="x"),
    "rank_ip list": one(rank_ip="10.0.0.1,10.0.0.2"),
    **{f"sub version without {key}": with_sdid(**{key: ABSENT}) for key in SUB},
    **{f"sub version, {key} number": with_sdid(**{key: 0}) for key in SUB},
    "sdid word": with_sdid(sdid="x"),
    "sdid beyond 32 bits": with_sdid(sdid="4294967295"),
    "node families": table([rank(0)], [rank(1)])
    | {"node_list": [{"node_addr": "::1", "ranks": [rank(0)]}, {"node_addr": "1.1.1.1", "ranks": [rank(1)]}]},
    "rank families": table([rank(0, rank_ip="::1")], [rank(1, rank_ip="1.1.1.1")]),
    "some addresses unset": table(
        node_list=[{"node_addr": "0.0.0.0", "ranks": [rank(0)]}, {"node_addr": "1.1.1.1", "ranks": [rank(1)]}]
    ),
    "three devices": table([rank(0), rank(1), rank(2)]),
    "device twice": table([rank(0), rank(1, device_id="0")]),
    "four devices across": table([rank(0), rank(1), rank(2), rank(3, device_id="4")]),
}  # fmt: skip
ACCEPTED = {
    "least": one(),
    "collective_id 127": table([rank(0)], collective_id="x" * 127),
    "collective_id empty": table([rank(0)], collective_id=""),
    "mode tcp": table([rank(0)], mode="tcp"),
    "device_id with junk": one(device_id=" +7x"),
    "device_id 31": one(device_id="31"),
    "device_id -2": table(
        *([rank(8 * node + n, device_id=str(n - 3 * (n == 1))) for n in range(8)] for node in range(2))
    ),
    "port 0": one(port="0"),
    "port 70000": one(port="70000"),
    "port negative": one(port="-1"),
    "rank_ip number": one(rank_ip=0),
    "rank_ip null": one(rank_ip=None),
    "rank_ip empty": one(rank_ip=""),
    "rank_ip unset": one(rank_ip="0.0.0.0"),
    "rank_ip twice": table([rank(0, rank_ip="1.1.1.1"), rank(1, rank_ip="1.1.1.1")]),
    "sub version": with_sdid(),
    "sdid -1": with_sdid(sdid="-1"),
    "bind_device_id is for host processes": one(bind_device_id="x"),
    "address 127": table(node_list=[{"node_addr": "10.0.0.1%" + "e" * 118, "ranks": [rank(0)]}]),
    "uneven nodes": table([rank(0)], [rank(1, device_id="0"), rank(2, device_id="1")]),
    "mixed on one node": table([rank(0, rank_ip="::1"), rank(1, rank_ip="1.1.1.1")]),
    "unknown keys": one(x=[1]) | {"y": None},
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    report = validate(REFUSED[name])

    assert report.verdict == "refused"
    assert report.table is None


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    report = validate(ACCEPTED[name])

    assert [finding.message for finding in report.findings] == []
    assert report.verdict == "accepted"
    assert report.table is None


def test_a_rank_without_port_needs_a_free_one_above_its_own() -> None:
    taken = [rank(number, device_id="0", port=str(port)) for number, port in enumerate(range(60008, 65536))]
    last = len(taken)

    assert any("no port from" in one.message for one in validate(table([*taken, rank(last)])).findings)
    messages = [one.message for one in validate(table([*taken[:-1], rank(last - 1)])).findings]
    assert not any("no port from" in message for message in messages)


def test_findings_of_other_rules_stand_where_version_1_1_has_the_key() -> None:
    found = validate(table([rank(0)], [rank(1), rank(0)])).findings

    assert (found[0].rule.id, found[0].pointer) == ("HCC203", "/node_list/1/ranks/1/rank_id")
    assert found[0].related[0].path == ("node_list", 0, "ranks", 0, "rank_id")


def test_hangs_until_the_status_is_completed() -> None:
    assert validate(table([rank(0)], status="initializing")).verdict == "hangs"
