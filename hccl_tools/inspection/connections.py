"""Find out which other hosts this host reaches over TCP, without a program that listens there.

A port on which nothing listens is refused at once: the packets arrived, and an answer came back. A filter on
the way, or a cable that is cut, gives no answer. The port is the last of HCCL's range, which the fewest jobs
use, so that no program is disturbed by the connection.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import is_local
from hccl_tools.inspection import host_ports
from hccl_tools.inspection.observation import UnreachedHost
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Seconds for an answer. Linux sends the first packet again after 1 and 3 s.
ANSWER_TIME = 5.0
#: More hosts than this are not asked by each host: every host then asks the next ones of the list.
MOST_HOSTS = 64
#: Connections at the same time; each needs a descriptor.
_AT_ONCE = 100
#: The other end has answered.
_ANSWERED = (0, errno.ECONNREFUSED, errno.ECONNRESET)
#: This host has not sent anything: nothing is known of the way.
_NOT_SENT = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM, errno.EAFNOSUPPORT)


class Place(NamedTuple):
    """An address and a port of another host."""

    address: str
    port: int


def places(
    addresses: Sequence[str], start_port: int, environ: Mapping[str, str], cann: str = ""
) -> list[Place]:
    """Return what this host connects to: HCCL's last port on the other hosts, and the rendezvous port.

    Args:
        addresses: The addresses of the job's hosts, the first one that of the rendezvous.
        start_port: The rendezvous port; 0 for none.
        cann: The version of CANN here, which decides on HCCL's ports.
    """
    ports = host_ports.hccl_range(environ, cann) or host_ports.HCCL_PORTS
    known = [one for one in dict.fromkeys(addresses) if packed(one) is not None and not is_loopback(one)]
    own = [is_local(one) for one in known]
    first = own.index(True) if True in own else 0
    ring = [one for one, here in zip(known[first:] + known[:first], own[first:] + own[:first]) if not here]  # noqa: B905  (Python 3.8)
    found = [Place(one, ports[-1]) for one in ring[:MOST_HOSTS]]
    if start_port and known and not own[0]:
        found.append(Place(known[0], start_port))
    return found


def try_all(wanted: Iterable[Place], seconds: float = ANSWER_TIME) -> tuple[UnreachedHost, ...]:
    """Connect to each place, many at the same time, and return which gave no answer.

    This takes milliseconds if all answer, and about ``seconds`` if one does not.
    """
    waiting = list(dict.fromkeys(wanted))
    lost: list[UnreachedHost] = []
    active: dict[int, tuple[socket.socket, Place, float]] = {}
    poll = select.poll()
    while waiting or active:
        while waiting and len(active) < _AT_ONCE:
            one = waiting.pop(0)
            found, code = _started(one)
            if found is not None:
                active[found.fileno()] = (found, one, time.monotonic() + seconds)
                poll.register(found, select.POLLOUT)
            elif code not in (*_ANSWERED, *_NOT_SENT):
                lost.append(UnreachedHost(*one, os.strerror(code).lower()))
        lost += _settled(active, poll, seconds)
    return tuple(lost)


def _started(place: Place) -> tuple[socket.socket | None, int]:
    """Return the socket of a connection that is being made, or ``None`` and what has become of it."""
    family = socket.AF_INET6 if ":" in place.address else socket.AF_INET
    try:
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        return None, error.errno or errno.EMFILE
    found.setblocking(False)
    code = found.connect_ex(tuple(place))
    if code == errno.EINPROGRESS:
        return found, 0
    found.close()
    return None, code


def _settled(
    active: dict[int, tuple[socket.socket, Place, float]], poll: select.poll, seconds: float
) -> Iterator[UnreachedHost]:
    """Wait for the next answers or the next end of a wait, and yield the places without an answer."""
    if not active:
        return
    left = min(deadline for _, _, deadline in active.values()) - time.monotonic()
    answered = {descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)}
    now = time.monotonic()
    for descriptor in list(active):
        found, place, deadline = active[descriptor]
        if descriptor not in answered and now < deadline:
            continue
        code = found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if descriptor in answered else None
        poll.unregister(descriptor)
        found.close()
        del active[descriptor]
        if code is None:
            yield UnreachedHost(*place, f"no answer within {seconds:.0f} s")
        elif code not in (*_ANSWERED, *_NOT_SENT):
            yield UnreachedHost(*place, os.strerror(code).lower())
