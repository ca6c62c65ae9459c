"""Real sockets that use ports of this machine."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Loopback addresses: what other programs do on 127.0.0.1 and on the network does not concern them.
ADDRESS, OTHER_ADDRESS = "127.0.0.2", "127.0.0.3"


@contextmanager
def listener(address: str = ADDRESS, *, dual: bool = True) -> Iterator[int]:
    """Listen on a free port of an address and yield the port; ``dual``: at ``::`` also for IPv4."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
        if ":" in address:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual))
        taken.bind((address, 0))
        taken.listen(4)
        yield int(taken.getsockname()[1])


@contextmanager
def connection(address: str = ADDRESS, *, closed: bool = False) -> Iterator[int]:
    """Connect from an address and yield the port there; ``closed``: it is in TIME_WAIT."""
    with socket.socket() as server:
        server.bind((OTHER_ADDRESS, 0))
        server.listen(1)
        client = socket.create_connection(server.getsockname(), source_address=(address, 0))
        port = int(client.getsockname()[1])
        accepted, _ = server.accept()
        if closed:
            client.close()  # the side that closes first waits
            assert accepted.recv(1) == b""
            accepted.close()
        yield port
        client.close()
        accepted.close()
