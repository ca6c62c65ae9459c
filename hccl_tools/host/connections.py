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

from hccl_tools.host import host_ports
from hccl_tools.host.local_addresses import is_local
from hccl_tools.host.observation import SlowHost, UnreachedHost
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Seconds for an answer. Linux sends the first packet again after 1 and 3 s.
ANSWER_TIME = 4.0
#: An answer that takes so many seconds came to a packet that was sent again.
_REPEATED = 0.9
#: So many such answers to a host are not a coincidence.
LEAST_REPEATED = 2
#: Seconds; hosts of one job are nearer to each other.
_LATE = 0.1
#: Connections to each host: usually, to one without an answer, and more to one of which packets were lost.
_USUAL_TRIES, _LEAST_TRIES, _MORE_TRIES = 3, 2, 5
#: More hosts than this are not asked by each host: every host then asks the next ones of the list.
MOST_HOSTS = 64
#: Connections at the same time; each needs a descriptor.
_AT_ONCE = 100
#: The other end has answered.
_ANSWERED = (0, errno.ECONNREFUSED, errno.ECONNRESET)
#: A route or filter of this host keeps the packet back.
_OF_THIS_HOST = {
    errno.EINVAL: "a blackhole route of this host",
    errno.EACCES: "prohibited by a route of this host",
    errno.EPERM: "not allowed by a filter of this host",
}
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


class Attempt(NamedTuple):
    """A connection: how long the answer took, and why there is none; empty if there is one."""

    place: Place
    seconds: float
    reason: str


def reach(wanted: Sequence[Place]) -> tuple[tuple[UnreachedHost, ...], tuple[SlowHost, ...]]:
    """Return the places from which no answer comes, and those whose answers are late.

    This takes milliseconds if all answer, and about twice ``ANSWER_TIME`` if one does not.
    """
    attempts: dict[Place, list[Attempt]] = {}
    for _ in range(_USUAL_TRIES):
        answered = [place for place, own in attempts.items() if not own[-1].reason or len(own) < _LEAST_TRIES]
        for one in try_all(answered if attempts else wanted):
            attempts.setdefault(one.place, []).append(one)
    reached = [place for place, own in attempts.items() if not _is_lost(own)]
    doubtful = [place for place in reached if any(map(_was_repeated, attempts[place]))]
    for _ in range(_MORE_TRIES if doubtful else 0):
        for one in try_all(doubtful):
            attempts[one.place].append(one)
    lost = tuple(UnreachedHost(*place, own[0].reason) for place, own in attempts.items() if _is_lost(own))
    slow = (_slow(place, attempts[place]) for place in reached)
    return lost, tuple(one for one in slow if one is not None)


def _is_lost(own: Sequence[Attempt]) -> bool:
    return all(one.reason for one in own)


def _was_repeated(one: Attempt) -> bool:
    return bool(one.reason) or one.seconds >= _REPEATED


def _slow(place: Place, own: Sequence[Attempt]) -> SlowHost | None:
    repeated = sum(map(_was_repeated, own))
    quickest = min(one.seconds for one in own if not one.reason)
    if repeated < LEAST_REPEATED and quickest < _LATE:
        return None
    return SlowHost(place.address, len(own), repeated, quickest)


def try_all(wanted: Iterable[Place], seconds: float = ANSWER_TIME) -> list[Attempt]:
    """Connect to each place once, many at the same time; what this host could not send is left out."""
    waiting = list(dict.fromkeys(wanted))
    made: list[Attempt] = []
    active: dict[int, tuple[socket.socket, Place, float]] = {}
    poll = select.poll()
    while waiting or active:
        while waiting and len(active) < _AT_ONCE:
            one = waiting.pop(0)
            found, code = _started(one)
            if found is not None:
                active[found.fileno()] = (found, one, time.monotonic())
                poll.register(found, select.POLLOUT)
            elif code not in _NOT_SENT:
                made.append(Attempt(one, 0.0, _reason(code)))
        made += _settled(active, poll, seconds)
    return made


def _reason(code: int) -> str:
    return "" if code in _ANSWERED else _OF_THIS_HOST.get(code, os.strerror(code).lower())


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
) -> Iterator[Attempt]:
    """Wait for the next answers or the next end of a wait, and yield the connections that are settled."""
    if not active:
        return
    left = min(began for _, _, began in active.values()) + seconds - time.monotonic()
    answered = {descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)}
    now = time.monotonic()
    for descriptor in list(active):
        found, place, began = active[descriptor]
        if descriptor not in answered and now < began + seconds:
            continue
        code = found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if descriptor in answered else None
        poll.unregister(descriptor)
        found.close()
        del active[descriptor]
        if code not in _NOT_SENT:
            reason = f"no answer within {seconds:.0f} s" if code is None else _reason(code)
            yield Attempt(place, now - began, reason)
