"""Find out whether packets as large as the MTU arrive at other hosts, without a program that listens there.

A datagram to a UDP port on which nothing listens is refused with an ICMP message: it arrived. If small ones
are refused and large ones are not, something on the way drops the large ones, and a job hangs in the middle.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: Nothing listens there.
_PORT = 60015
#: Bytes of the headers of IPv4 and UDP, and of the largest packet.
_HEADERS, _LARGEST = 28, 65507
_SMALL = b"?"
#: Linux sends at most one such ICMP message per second to a host, after six at once: several tries.
_TRIES, _SECONDS = 4, 0.8
#: Of ``linux/in.h``: never split a packet.
_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2


def cut(addresses: Collection[str], mtu: int, port: int = _PORT) -> tuple[str, ...]:
    """Return the IPv4 addresses of hosts at which small packets arrive, and none of ``mtu`` bytes.

    This takes milliseconds if all answer. A host without an answer to a small packet is left out.
    """
    size = mtu - _HEADERS
    if not 0 < size <= _LARGEST:
        return ()
    with ExitStack() as stack:
        sockets: dict[str, socket.socket] = {}
        for address in addresses:
            with suppress(OSError):
                made = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
                made.setblocking(False)
                made.connect((address, port))
                sockets[address] = made
        left = _refused(sockets, _SMALL)
        for _ in range(_TRIES if left else 0):
            left -= _refused({one: sockets[one] for one in left}, bytes(size))
            if not left:
                return ()
        return tuple(sorted(_refused({one: sockets[one] for one in left}, _SMALL)))


def _refused(sockets: Mapping[str, socket.socket], data: bytes) -> set[str]:
    """Send a packet to each host, and return the hosts from which it was refused within the time."""
    found = {address for address, one in sockets.items() if not _sent(one, data)}
    poll = select.poll()
    waiting = {one.fileno(): address for address, one in sockets.items() if address not in found}
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + _SECONDS
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            address = waiting.pop(descriptor)
            poll.unregister(descriptor)
            try:
                sockets[address].recv(1)
            except OSError as error:
                if error.errno == errno.ECONNREFUSED:
                    found.add(address)
    return found


def _sent(one: socket.socket, data: bytes) -> bool:
    """Send a packet; return False if the kernel knows that it is too large for the way, as TCP does then."""
    code = _error_of_send(one, data)
    if code == errno.ECONNREFUSED:  # the late answer to the packet before
        code = _error_of_send(one, data)
    return code != errno.EMSGSIZE


def _error_of_send(one: socket.socket, data: bytes) -> int | None:
    try:
        one.send(data)
    except OSError as error:
        return error.errno
    return None
