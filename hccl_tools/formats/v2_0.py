"""Version 2.0: ``rank_list`` with network levels, for A5 (Ascend 950).

Its numbers are JSON numbers. Ranks with the same network instance on their lowest level form a server.

Source: rank_table_config_a5.md; hcomm rank_table_info.cc, new_rank_info.cc, rank_level_info.cc,
address_info.cc, control_plane.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.formats import column_checks
from hccl_tools.formats.writing import dump_at, members, write_document
from hccl_tools.table.model import RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

#: The maximum list lengths, from new_rank_info.cc, rank_level_info.cc and address_info.cc.
MOST_LEVELS, MOST_ADDRESSES, MOST_BACKUPS = 8, 24, 16
_TEXT: frozenset[type] = frozenset({str})
_NUMBER: frozenset[type] = frozenset({int, float, bool})
_OBJECT: frozenset[type] = frozenset({dict})
_TOP_KEYS = frozenset({"version", "rank_count", "rank_list", "status"})
_REQUIRED = ("rank_id", "local_id", "device_id")


def read(value: dict[str, Any]) -> RankTable:
    """Read a 2.0 document; see ``formats.FormatModule``."""
    column_checks.constant(value, "version", "2.0")
    column_checks.numbers([value], "rank_count")
    column_checks.optional([value], "detour", _TEXT)
    ranks = column_checks.flat(column_checks.lists([value], "rank_list"), dict, "rank_list")
    for key in _REQUIRED:
        column_checks.numbers(ranks, key)
    for key in ("device_port", "host_port"):
        column_checks.optional(ranks, key, _NUMBER)
    level_lists = column_checks.lists(ranks, "level_list", most=MOST_LEVELS)
    _check_levels(column_checks.flat(level_lists, dict, "level_list"))
    _check_control_planes(ranks)
    columns = column_checks.columns(ranks, (), frozenset())
    for key in (*_REQUIRED, "level_list"):
        columns.setdefault(key, [])
    fields = {key: value[key] for key in value if key not in _TOP_KEYS}
    declared = {"rank_count": value["rank_count"]}
    servers = _servers(level_lists)
    return RankTable("2.0", servers, columns, value.get("status"), fields=fields, declared=declared)


def _check_levels(levels: list[dict[str, Any]]) -> None:
    column_checks.numbers(levels, "net_layer")
    column_checks.texts(levels, "net_instance_id")
    column_checks.optional(levels, "net_attr", _TEXT)
    column_checks.optional(levels, "net_type", _TEXT)
    address_lists = column_checks.lists(levels, "rank_addr_list", most=MOST_ADDRESSES)
    addresses = column_checks.flat(address_lists, dict, "rank_addr_list")
    column_checks.texts(addresses, "addr_type")
    column_checks.texts(addresses, "addr")
    column_checks.optional(addresses, "plane_id", _TEXT)
    column_checks.flat(column_checks.lists(addresses, "ports", least=1), str, "ports")
    with_backup = [address for address in addresses if "backup_addr" in address]
    column_checks.flat(column_checks.lists(with_backup, "backup_addr", most=MOST_BACKUPS), str, "backup_addr")


def _check_control_planes(ranks: list[dict[str, Any]]) -> None:
    column_checks.optional(ranks, "control_plane", _OBJECT)
    planes = [rank["control_plane"] for rank in ranks if "control_plane" in rank]
    column_checks.texts(planes, "addr_type")
    column_checks.texts(planes, "addr")
    column_checks.numbers(planes, "listen_port")


def _servers(level_lists: list[list[dict[str, Any]]]) -> list[Server]:
    """Group the ranks by the network instance of their first level, in order of appearance."""
    rows: dict[str, list[int]] = {}
    for row, levels in enumerate(level_lists):
        rows.setdefault(levels[0]["net_instance_id"] if levels else "", []).append(row)
    return [Server(instance, members_) for instance, members_ in rows.items()]


def write(table: RankTable) -> Iterator[str]:
    """Write a 2.0 document; see ``formats.FormatModule``."""
    head: dict[str, Any] = {"version": "2.0"}
    if table.status is not None:
        head["status"] = table.status
    head["rank_count"] = len(table)
    keys = list(table.columns)
    columns = [table.columns[key] for key in keys]
    entries = (" " * 8 + dump_at(members(keys, columns, row), 2) for row in range(len(table)))
    return write_document(head, "rank_list", entries, table.fields)


def device_path(table: RankTable, row: int) -> Path:  # noqa: ARG001  (same shape in every format)
    """Return the path of the rank of a row."""
    return ("rank_list", row)


def server_path(table: RankTable, index: int) -> Path:
    """Return the path of a server's first rank: a 2.0 table has no entries for servers."""
    return ("rank_list", table.servers[index].rows[0])
