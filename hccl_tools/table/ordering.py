"""The order of servers: by their addresses as numbers, so that 10.1.0.2 stands before 10.1.0.10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable, Server

#: Servers of which each has its line; of more, the first and the last are shown.
FOLD_ABOVE = 32


def address_key(server: Server) -> tuple[int, bytes] | None:
    """Return what sorts servers by their address as a number: server_id, else host_ip; None without one."""
    for text in (server.server_id, server.host_ip):
        raw = packed(text) if text else None
        if raw is not None:
            return len(raw), raw
    return None


def out_of_order(table: RankTable) -> tuple[str, str] | None:
    """Return the first two neighbours that are not in the numeric order of their addresses, else None."""
    before = None
    for index, server in enumerate(table.servers):
        key = address_key(server)
        if before is not None and key is not None and before > key:
            return table.servers[index - 1].server_id, server.server_id
        before = key
    return None
