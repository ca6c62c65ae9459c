"""The format without a version ("template two"): ``group_list`` with instances and their devices.

ModelArts (``jobstart_hccl.json``) and the Volcano controller (``hccl.json``) write this format. It has no
rank ids: HCCL numbers the devices by server_id, as text, then by device id.

Source: rank_table_config_910.md, "template two"; hcomm topoinfo_ranktableStandard.cc.
"""

from __future__ import annotations

from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import column_checks
from hccl_tools.formats.writing import dump_at, members, write_document
from hccl_tools.table.model import Group, RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

_TOP_KEYS = frozenset({"version", "group_count", "group_list", "status"})
_GROUP_KEYS = frozenset({"group_name", "device_count", "instance_count", "instance_list"})
_INSTANCE_KEYS = frozenset({"server_id", "devices"})


def read(value: dict[str, Any]) -> RankTable:
    """Read a group_list document; see ``formats.FormatModule``."""
    if "version" in value:
        column_checks.constant(value, "version", "Standard")
    status = column_checks.text(value, "status")
    declared: dict[str, Any] = {"group_count": column_checks.text(value, "group_count")}
    entries = column_checks.objects(value, "group_list")
    names = column_checks.texts(entries, "group_name")
    declared["device_count"] = column_checks.texts(entries, "device_count")
    declared["instance_count"] = column_checks.texts(entries, "instance_count")
    instance_lists = [column_checks.objects(entry, "instance_list") for entry in entries]
    instances = list(chain.from_iterable(instance_lists))
    server_ids = column_checks.texts(instances, "server_id")
    column_checks.texts(instances, "pod_name")
    device_lists = [column_checks.objects(instance, "devices") for instance in instances]
    columns = column_checks.columns(list(chain.from_iterable(device_lists)), ("device_id",), frozenset())
    servers = [
        Server(server_id, range(*rows), None, {key: entry[key] for key in entry if key not in _INSTANCE_KEYS})
        for entry, server_id, rows in zip(instances, server_ids, _bounds(device_lists), strict=True)
    ]
    groups = [
        Group(name, range(*bounds), {key: entry[key] for key in entry if key not in _GROUP_KEYS})
        for entry, name, bounds in zip(entries, names, _bounds(instance_lists), strict=True)
    ]
    if "rank_id" in columns:
        declared["rank_id"] = columns.pop("rank_id")
    fields = {key: value[key] for key in value if key not in _TOP_KEYS}
    table = RankTable("group_list", servers, columns, status, groups=groups, fields=fields, declared=declared)
    columns["rank_id"] = rank_ids(servers, table.device_numbers)
    return table


def _bounds(lists: list[list[dict[str, Any]]]) -> Iterator[tuple[int, int]]:
    return pairwise(accumulate(map(len, lists), initial=0))


def rank_ids(servers: list[Server], device_numbers: list[int | None]) -> list[str]:
    """Number the devices as HCCL does: servers by their ids as text, then devices by id."""
    ranks, numbered = list(map(str, range(len(device_numbers)))), [""] * len(device_numbers)
    if _ascend_in_each(servers, device_numbers):
        size = len(device_numbers) // len(servers)
        for place, server in enumerate(sorted(servers, key=attrgetter("server_id"))):
            numbered[server.rows[0] : server.rows[0] + size] = ranks[place * size : (place + 1) * size]
        return numbered
    rows: dict[str, list[int]] = {}
    for server in servers:
        rows.setdefault(server.server_id, []).extend(server.rows)
    number_of = [number or 0 for number in device_numbers].__getitem__
    order = chain.from_iterable(sorted(rows[name], key=number_of) for name in sorted(rows))
    for row, rank in zip(order, ranks, strict=False):
        numbered[row] = rank
    return numbered


def _ascend_in_each(servers: list[Server], device_numbers: list[int | None]) -> bool:
    """Return whether all servers list the same devices in ascending order, as usual: none is sorted then."""
    size = len(servers[0].rows) if servers else 0
    first = [number for number in device_numbers[:size] if number is not None]
    return (
        len(first) > 0
        and first == sorted(first)
        and len({server.server_id for server in servers}) == len(servers)
        and all(len(server.rows) == size for server in servers)
        and device_numbers == first * len(servers)
    )


def write(table: RankTable) -> Iterator[str]:
    """Write a group_list document; see ``formats.FormatModule``."""
    groups = table.groups or []
    head = {"status": table.status, "group_count": str(len(groups))}
    return write_document(head, "group_list", (_group_text(table, group) for group in groups), table.fields)


def _group_text(table: RankTable, group: Group) -> str:
    servers = [table.servers[index] for index in group.servers]
    head = {
        "group_name": group.group_name,
        "device_count": str(sum(len(server.rows) for server in servers)),
        "instance_count": str(len(servers)),
        **group.fields,
    }
    lines = "".join(f"            {dump_at(key, 0)}: {dump_at(item, 3)},\n" for key, item in head.items())
    instances = ",\n".join(_instance_text(table, server) for server in servers)
    return f'        {{\n{lines}            "instance_list": [\n{instances}\n            ]\n        }}'


def _instance_text(table: RankTable, server: Server) -> str:
    keys = [key for key in table.columns if key != "rank_id"]
    columns = [table.columns[key] for key in keys]
    entry = {
        **{key: item for key, item in server.fields.items() if key == "pod_name"},
        "server_id": server.server_id,
        "devices": [members(keys, columns, row) for row in server.rows],
        **{key: item for key, item in server.fields.items() if key != "pod_name"},
    }
    return " " * 16 + dump_at(entry, 4)


def device_path(table: RankTable, row: int) -> Path:
    """Return the path of the device of a row."""
    index = table.server_of_row[row]
    return (*server_path(table, index), "devices", row - table.servers[index].rows[0])


def server_path(table: RankTable, index: int) -> Path:
    """Return the path of an instance's entry."""
    number, place = table.place_in_groups[index]
    return ("group_list", number, "instance_list", place)
