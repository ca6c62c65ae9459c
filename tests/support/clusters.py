"""Tables that belong together: the hosts of one cluster, each as it would write its own; and strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.formats import group_list
from hccl_tools.table.model import Group, RankTable, Server, SuperPod
from tests.support.tables import JSON, table

if TYPE_CHECKING:
    from hccl_tools.table.model import Column


def host(number: int, table_format: str = "1.0", devices: int = 8) -> JSON:
    """Return the table that the host 10.1.0.``number`` would write of itself."""
    value = table(table_format, 1, devices)
    if table_format == "2.0":
        for rank, entry in enumerate(value["rank_list"]):
            level = entry["level_list"][0]
            level["net_instance_id"] = f"node{number}"
            level["rank_addr_list"][0]["addr"] = f"10.9.{number}.{rank + 1}"
        return value
    entries = (
        value["group_list"][0]["instance_list"] if table_format == "group_list" else value["server_list"]
    )
    (entry,) = entries
    entry["server_id"] = f"10.1.0.{number}"
    if table_format == "group_list":
        entry["pod_name"] = f"job{number}"
    for device in entry.get("device") or entry["devices"]:
        device["device_ip"] = f"192.168.{number}.{100 + int(device['device_id'])}"
        if table_format == "1.2":
            device["super_device_id"] = str(number * 65536 + int(device["device_id"]))
    if table_format == "1.2":
        value["super_pod_list"] = [{"super_pod_id": "0", "server_list": [{"server_id": entry["server_id"]}]}]
    return value


def host_table(number: int, table_format: str = "1.0", devices: int = 8) -> RankTable:
    """Return the same as a table."""
    return formats.read(host(number, table_format, devices))


@st.composite
def tables(draw: st.DrawFn, *, ordered: bool = False) -> RankTable:
    """Draw a 1.0 table: any number of servers and devices, IPv4 or IPv6, ranks in any order inside a server.

    ``ordered`` ones have the ranks that HCCL would give a group_list of them.
    """
    numbers = draw(st.lists(st.integers(1, 250), min_size=1, max_size=5, unique=True))
    names = [f"10.0.{number}.{number}" for number in numbers]
    if ordered:
        names.sort()
    counts = [draw(st.integers(1, 8)) for _ in names]
    v6 = draw(st.booleans())
    columns: dict[str, Column] = {"device_id": [], "device_ip": [], "rank_id": []}
    servers = []
    for index, (name, count) in enumerate(zip(names, counts, strict=True)):
        first = len(columns["device_id"])
        ids = list(range(count)) if ordered else draw(st.permutations(range(count)))
        columns["device_id"] += map(str, ids)
        columns["device_ip"] += [
            f"fd00:{index}::{one + 1}" if v6 else f"192.168.{index}.{one + 1}" for one in ids
        ]
        columns["rank_id"] += [str(first + place) for place in range(count)]
        servers.append(Server(name, range(first, first + count)))
    return RankTable("1.0", servers, columns)


@st.composite
def group_lists(draw: st.DrawFn) -> RankTable:
    """Draw a group_list of one group, its instances in any order, one on each host."""
    plain = draw(tables())
    servers = [
        Server(one.server_id, one.rows, None, {"pod_name": f"pod-{one.server_id}"}) for one in plain.servers
    ]
    made = RankTable("group_list", servers, dict(plain.columns), groups=[Group("g", range(len(servers)))])
    made.columns["rank_id"] = group_list.rank_ids(servers, made.device_numbers)
    return made


@st.composite
def super_pod_tables(draw: st.DrawFn) -> RankTable:
    """Draw a 1.2 table with one or two super pods."""
    plain = draw(tables())
    columns = {**plain.columns, "super_device_id": [str(100 + row) for row in range(len(plain))]}
    names = [server.server_id for server in plain.servers]
    cut = draw(st.integers(1, len(names)))
    pods = [SuperPod(str(number), part) for number, part in enumerate((names[:cut], names[cut:])) if part]
    return RankTable("1.2", plain.servers, columns, super_pods=pods)


def devices_of(table_: RankTable) -> set[tuple[object, ...]]:
    """Return what must survive every change of form: server, device, rank and address of each device."""
    return {(one.server_id, one.device_id, one.rank_id, one.device_ip) for one in table_.devices()}
