"""The order of servers by their addresses as numbers, with 10.1.0.2 before 10.1.0.10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable, Server

#: The greatest number of servers that are all listed; otherwise only the first and the last are shown.
FOLD_ABOVE = 32


def address_key(server: Server) -> tuple[int, bytes] | None:
    """Return the sort key of a server: its server_id, else host_ip, as a number; None without an address."""
    for text in (server.server_id, server.host_ip):
        raw = packed(text) if text else None
        if raw is not None:
            return len(raw), raw
    return None


def out_of_order(table: RankTable) -> tuple[str, str] | None:
    """Return the first two consecutive servers whose addresses are not in numeric order, else None."""
    before = None
    for index, server in enumerate(table.servers):
        key = address_key(server)
        if before is not None and key is not None and before > key:
            return table.servers[index - 1].server_id, server.server_id
        before = key
    return None
