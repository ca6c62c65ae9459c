"""The addresses of a job's hosts: where a controller listens, and who may connect without a job key."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from hccl_tools.host.local_addresses import is_local
from hccl_tools.programs import resolving
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.table.model import RankTable

#: All addresses of this host, IPv6 and, except where the kernel separates them, IPv4.
_ALL = "::"
_LOOPBACK = "127.0.0.1"


def resolved(hosts: Iterable[str]) -> set[str]:
    """Return the addresses of host names; a name that cannot be resolved has none."""
    return {address for answers in resolving.looked_up(hosts).values() for address in answers}


def of_table(table: RankTable | None) -> set[str]:
    """Return the addresses in the servers of a table: server_id, host_ip, container_ip ..."""
    texts = (
        text
        for server in (table.servers if table else ())
        for text in (server.server_id, *server.fields.values())
    )
    return {text for text in texts if isinstance(text, str) and packed(text) is not None}


def bindings(hosts: Sequence[str], announced: Sequence[str]) -> list[str]:
    """Return the addresses to listen on.

    They are the addresses of this host in the table and 127.0.0.1, if the other hosts connect to no other
    address (``announced``), else all addresses.
    """
    own = {address for address in resolved(hosts) if is_local(address)}
    if announced and own >= set(announced):
        return list(dict.fromkeys((_LOOPBACK, *sorted(own))))
    return all_addresses()


def all_addresses() -> list[str]:
    """Return what to bind to for all addresses of this host."""
    return [_ALL] if socket.has_dualstack_ipv6() else [""]


def rendezvous_aliases(address: str) -> frozenset[str]:
    """Return the addresses at which other hosts reach this host, although it does not have them.

    ``address`` is that of rank 0's host in the job: it may be a service's, or be translated on the way.
    """
    found = resolved([address])
    return frozenset() if any(map(is_local, found)) else frozenset(found)


def rendezvous_bindings(address: str) -> list[str]:
    """Return the addresses to listen on for hosts that connect to ``address``, the host of rank 0."""
    own = sorted(one for one in resolved([address]) if is_local(one))
    if not own:
        return all_addresses()
    return own if all(map(is_loopback, own)) else list(dict.fromkeys((_LOOPBACK, *own)))
