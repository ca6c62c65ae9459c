"""The order of servers: by their addresses as numbers, so that 10.1.0.2 stands before 10.1.0.10."""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_pton
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable, Server

#: Servers of which each has its line; of more, the first and the last are shown.
FOLD_ABOVE = 32


def address_key(server: Server) -> tuple[int, bytes] | None:
    """Return what sorts servers by their address as a number: server_id, else host_ip; None without one."""
    for text in (server.server_id, server.host_ip):
        if text:
            family = AF_INET6 if ":" in text else AF_INET
            try:
                return int(family), inet_pton(family, text)
            except (OSError, ValueError):
                continue
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


def blocks(numbers: list[int]) -> str:
    """Return numbers in words that stay short: ``0-7``, ``0-3,8-11``, ``7,6,5,4``.

    >>> blocks([0, 1, 2, 3, 8, 9])
    '0-3,8-9'
    """
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
