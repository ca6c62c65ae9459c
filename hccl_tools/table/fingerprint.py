"""A short hash of the meaning of a table, for comparing the tables of several hosts by eye.

The hash is independent of layout, key order, keys that HCCL does not read, and spellings (``1`` or ``"1"``,
``fd00::1`` or ``fd00:0::1``), but not of servers, their order, devices, ranks, addresses, ports and super
pods. A group_list has the fingerprint of the 1.0 table that HCCL derives from it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from hccl_tools.table.addresses import AF_INET, inet_pton, packed
from hccl_tools.table.hccl_numbers import NULL, read_column
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.table.model import Column, RankTable, Server

#: The number of hex digits: 48 bits are enough for the tables of any site.
LENGTH = 12
#: Changes with the definition of the fingerprint, so that fingerprints of different definitions differ.
_EDITION = "1"
_NUMBERS = ("device_port", "device_vnic_port", "host_port", "backup_device_port", "super_device_id")
_NUMBERS_2_0 = ("local_id", "replaced_local_id", "device_port", "host_port")
_ADDRESSES = ("device_ip", "backup_device_ip")
_TEXTS = ("net_position", "net_protocol")


def fingerprint(table: RankTable) -> str:
    """Return the fingerprint of a table: ``LENGTH`` hex digits."""
    digest = hashlib.sha256(_EDITION.encode())
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    for line in _lines(table):
        digest.update(encode(line).encode() + b"\n")
    return digest.hexdigest()[:LENGTH]


def _lines(table: RankTable) -> Iterator[Any]:
    yield "2.0" if table.format == "2.0" else "1.x"
    pods = super_pods(table)
    keys, columns = normal_columns(table)
    ranks = table.rank_numbers
    for server_id, servers in hosts(table):
        host_ip = next((normal_address(server.host_ip) for server in servers if server.host_ip), None)
        rows = sorted(
            (row for server in servers for row in server.rows),
            key=lambda row: (ranks[row] is None, ranks[row] or 0, row),
        )
        devices = [[column[row] for column in columns] for row in rows]
        yield [server_id, host_ip, pods.get(server_id), keys, devices]


def hosts(table: RankTable) -> list[tuple[str, list[Server]]]:
    """Return the servers in order; in a group_list, sorted and with the instances of a server joined."""
    if table.format != "group_list":
        return [(server.server_id, [server]) for server in table.servers]
    found: dict[str, list[Server]] = {}
    for server in table.servers:
        found.setdefault(server.server_id, []).append(server)
    return sorted(found.items())


def normal_columns(table: RankTable) -> tuple[list[str], list[Column]]:
    """Return the keys that count and their columns in a normal form; absent keys are left out."""
    made: dict[str, Column] = {
        "rank": list(map(_or_text, table.rank_numbers, table.rank_ids)),
        "device": list(map(_or_text, table.device_numbers, table.device_ids)),
    }
    for key in _NUMBERS_2_0 if table.format == "2.0" else _NUMBERS:
        if key in table.columns:
            made[key] = list(map(_or_text, read_column(table.columns[key]), table.columns[key]))
    if table.format == "2.0":
        made["levels"] = [_levels(value) for value in table.columns["level_list"]]
    else:
        for key in _ADDRESSES:
            if key in table.columns:
                made[key] = [_addresses(value) for value in table.columns[key]]
        for key in _TEXTS:
            if key in table.columns:
                made[key] = [_plain(value) for value in table.columns[key]]
    kept = {key: column for key, column in made.items() if any(value is not None for value in column)}
    return list(kept), list(kept.values())


def _or_text(number: int | None, raw: Any) -> Any:
    return number if number is not None else _plain(raw)


def _plain(value: Any) -> Any:
    return "null" if value is NULL else value


def normal_address(text: str) -> str:
    """Return one text for all spellings of an address; other texts as they are."""
    raw = packed(text)
    return raw.hex() + "%" + text.partition("%")[2] if raw is not None else text


def _addresses(value: Any) -> Any:
    if not isinstance(value, str):
        return None
    try:  # one IPv4 address, as almost always: a third of the time of what follows
        return [inet_pton(AF_INET, value).hex() + "%"]
    except (OSError, ValueError):
        return [normal_address(text) for text in value.split(",")] if value else None


def _levels(levels: list[dict[str, Any]]) -> list[Any]:
    return [
        [
            read_column([level["net_layer"]])[0],
            level["net_instance_id"],
            level.get("net_type", "CLOS"),
            [
                [
                    entry["addr_type"],
                    normal_address(entry["addr"]).lower(),
                    entry["ports"],
                    entry.get("plane_id", "0"),
                ]
                for entry in level["rank_addr_list"]
            ],
        ]
        for level in levels
    ]
