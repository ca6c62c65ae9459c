"""Version 1.0: ``server_list`` with devices, for 910A, A2, 300I, and A3 outside super-pod mode.

Source: rank_table_config_910.md, "template one"; hcomm topoinfo_ranktableConcise.cc.
"""

from __future__ import annotations

from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import column_checks
from hccl_tools.formats.writing import dump_at, object_texts, write_document
from hccl_tools.table.model import RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.format_names import Format

_REQUIRED = ("device_id", "rank_id")
#: Optional device keys that must be strings in any case.
TEXTS = frozenset({"host_port", "device_port", "net_position", "net_protocol"})
#: Keys that ``read`` and ``write`` interpret; all other keys are kept unchanged.
_TOP_KEYS = frozenset({"version", "server_count", "server_list", "status"})
_SERVER_KEYS = frozenset({"server_id", "device", "host_ip"})
_DEVICE_ORDER = ("device_id", "device_ip", "rank_id")


def read(value: dict[str, Any]) -> RankTable:
    """Read a 1.0 document; see ``formats.FormatModule``."""
    return read_servers(value, "1.0", TEXTS)


def read_servers(value: dict[str, Any], table_format: Format, texts_if_there: frozenset[str]) -> RankTable:
    """Read ``server_list`` and the keys next to it, which 1.0 and 1.2 share."""
    column_checks.constant(value, "version", table_format)
    status = column_checks.text(value, "status")
    declared = {"server_count": column_checks.optional_text(value, "server_count")}
    entries = column_checks.objects(value, "server_list")
    server_ids = column_checks.texts(entries, "server_id")
    device_lists = [column_checks.objects(entry, "device") for entry in entries]
    devices = list(chain.from_iterable(device_lists))
    columns = column_checks.columns(devices, _REQUIRED, texts_if_there)
    bounds = pairwise(accumulate(map(len, device_lists), initial=0))
    servers = [
        Server(
            server_id, range(*rows), column_checks.optional_text(entry, "host_ip"),
            {key: entry[key] for key in entry if key not in _SERVER_KEYS},
        )
        for entry, server_id, rows in zip(entries, server_ids, bounds, strict=True)
    ]  # fmt: skip
    fields = {key: value[key] for key in value if key not in _TOP_KEYS}
    if table_format == "1.2":
        fields.pop("super_pod_list", None)
    return RankTable(table_format, servers, columns, status, fields=fields, declared=declared)


def write(table: RankTable) -> Iterator[str]:
    """Write a 1.0 document; see ``formats.FormatModule``."""
    head = {"version": table.format, "server_count": str(len(table.servers))}
    return write_document(head, "server_list", server_texts(table), tail(table))


def tail(table: RankTable) -> dict[str, Any]:
    """Return the keys after ``server_list``: other keys, then ``status``."""
    return {**table.fields, "status": table.status}


def server_texts(table: RankTable) -> Iterator[str]:
    """Yield the indented text of each server's entry."""
    keys = [key for key in _DEVICE_ORDER if key in table.columns]
    keys += [key for key in table.columns if key not in _DEVICE_ORDER]
    device_texts = object_texts(keys, [table.columns[key] for key in keys], 4)
    known: tuple[str | None, dict[str, Any]] | None = None
    rest = ""
    for server in table.servers:
        if (server.host_ip, server.fields) != known:  # the same for all servers of most tables
            known = (server.host_ip, server.fields)
            rest = _rest_text(server)
        yield (
            f'        {{\n            "server_id": {dump_at(server.server_id, 0)},\n'
            f'            "device": [\n{device_texts(server.rows)}\n            ]{rest}\n        }}'
        )


def _rest_text(server: Server) -> str:
    after = server.fields if server.host_ip is None else {"host_ip": server.host_ip, **server.fields}
    return "".join(f",\n            {dump_at(key, 0)}: {dump_at(item, 3)}" for key, item in after.items())


def device_path(table: RankTable, row: int) -> Path:
    """Return the path of the device of a row."""
    index = table.server_of_row[row]
    return ("server_list", index, "device", row - table.servers[index].rows[0])


def server_path(table: RankTable, index: int) -> Path:  # noqa: ARG001  (same shape in every format)
    """Return the path of a server's entry."""
    return ("server_list", index)
