"""How the device addresses of servers are laid out, which tells products apart that a table does not name.

The devices of an Ascend 910A are in four networks, the devices of an Atlas A2 usually in one network; the
drivers' examples have /24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count
from hccl_tools.table.addresses import AF_INET, family, joined_ipv4

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable, Server


def networks(table: RankTable, server: Server) -> int | None:
    """Return the number of IPv4 networks (/24) of a server's devices; None if one has no IPv4 address."""
    column = table.device_ips
    ips = [column[row] for row in server.rows]
    if not all(isinstance(ip, str) for ip in ips):
        return None
    if joined_ipv4(ips) is None and not all(family(ip) == AF_INET for ip in ips):
        return None
    return len({ip.rpartition(".")[0] for ip in ips})


def mixture(table: RankTable) -> str:
    """Return a warning if servers with equally many devices have them in different numbers of networks."""
    first: dict[int, tuple[int, str]] = {}
    for server in table.servers:
        own, size = networks(table, server), len(server.rows)
        if own is None or size < 2:
            continue
        known, name = first.setdefault(size, (own, server.server_id))
        if own != known:
            return (
                f"the device addresses of {name} are in {count(known, 'network')} (/24), those of "
                f"{server.server_id} in {count(own, 'network')}: check that both are the same product"
            )
    return ""
