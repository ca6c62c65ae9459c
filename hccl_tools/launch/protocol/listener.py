"""The listening sockets of a controller, and the connections that have not proved themselves yet.

Any program can connect. Until a connection has proved that it has the job's key, it has 10 s and 64 KiB, each
turn of the event loop serves a limited number of such connections, and their number is limited (see
``Unproved``). A connection that fails does not change the job; it is counted for one line of the report.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.protocol.connection import Connection, Unproved, endpoint
from hccl_tools.launch.protocol.messages import LARGEST
from hccl_tools.launch.protocol.session import Problem, Session
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.processes.limits import FileLimit
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.protocol.messages import Message

#: Limits for connections that have not proved themselves: bytes of one, events in a turn.
LARGEST_SHARE = 1 << 16
_MOST_EVENTS = 64
#: accept() fails with these until other files are closed: the listening sockets stay readable, and are not
#: polled for so many seconds.
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS = 0.2
#: Addresses whose problem is kept, and addresses in the line of the report.
_MOST_KEPT = 1024
_MOST_NAMED = 3
#: The kinds of problem that name a host without the key of the job; and the most claims that are kept: of the
#: addresses of the job's hosts, of all others, and of one network of the others.
CLAIMS = frozenset({"keyless there", "key"})
_MOST_EXPECTED, _MOST_CLAIMS, _MOST_OF_NETWORK = 64, 64, 16
#: Connections that wait for accept(); the kernel's limit is lower (net.core.somaxconn, 4096 by default). A
#: host that finds no place learns it only after seconds.
_BACKLOG = 1 << 14
_BIND_ATTEMPTS = 10
_CREDENTIALS = struct.Struct("3i")


class Guest(NamedTuple):
    """A connection that has proved itself, its first messages, and the port to which it has connected."""

    connection: Connection
    messages: list[Message]
    port: int


class Listener:
    """Accepts the connections of a job.

    Attributes:
        problems: Why connections were refused, by the address of the peer: the first reason of each.
        claims: Peers that say that they have no job key or another one: their addresses and the problems, in
            order. Nothing of it is proved.
        refused: The number of refused connections.
        other_versions: The version of each peer that has proved itself but has another version.
    """

    def __init__(
        self,
        key: bytes | None,
        *,
        silence: float,
        hosts: int = 0,
        allows: Callable[[str], bool] = lambda _address: True,
        expected: frozenset[str] = frozenset(),
        aliases: frozenset[str] | None = None,
        largest: int = LARGEST,
    ) -> None:
        """Listen nowhere yet.

        ``hosts`` is the number of hosts that may connect at once; ``allows`` tells whether an address may.
        ``expected`` are the addresses of the job's hosts, if they are known: their claims are kept first.
        Peers must have connected to the address at which they arrive, or to one of ``aliases``; ``None``: to
        any address. ``largest`` is the limit on a message from a peer, in bytes.
        """
        self._largest = largest
        self._expected, self._aliases = expected, aliases
        self._key, self._silence, self._allows = key, silence, allows
        self._sockets: dict[int, tuple[socket.socket, int]] = {}
        self._unproved = Unproved(hosts)
        self._ready = select.epoll()
        #: When the listening sockets are polled again; infinite while they are polled.
        self._resume_at = float("inf")
        self._limit = FileLimit()  # Ranks are unaffected: the keeper starts them.
        self.problems: dict[str, Problem | None] = {}
        self.claims: dict[tuple[str, str], None] = {}
        self.refused = 0
        self.other_versions: dict[str, str] = {}

    def fileno(self) -> int:
        """Return a descriptor that is readable if ``guests`` has something to do."""
        return self._ready.fileno()

    def listen(self, addresses: Sequence[str], port: int = 0) -> int:
        """Listen on addresses of this host ("" and "::": all); return the port, the same for all.

        Raises:
            OSError: The port is in use.
        """
        first, *others = addresses
        for attempt in range(_BIND_ATTEMPTS):
            bound = [_bound(first, port)]
            chosen = int(bound[0].getsockname()[1])
            try:
                bound += [_bound(address, chosen) for address in others]
            except OSError:
                bound[0].close()
                if port or attempt == _BIND_ATTEMPTS - 1:
                    raise
                continue  # The kernel's choice for the first address is in use at another.
            break
        for listening in bound:
            self._add(listening, chosen)
        return chosen

    def listen_locally(self, name: str) -> None:
        """Listen for processes of this user on this host, on a socket in the abstract namespace."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind("\0" + name)
        self._add(listening, 0)

    def _add(self, listening: socket.socket, port: int) -> None:
        self._sockets[listening.fileno()] = (listening, port)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        self._ready.register(listening.fileno(), select.EPOLLIN)

    def guests(self) -> list[Guest]:
        """Serve the connections for one turn; return those that have proved themselves."""
        found: list[Guest] = []
        now = time.monotonic()
        if now >= self._resume_at:
            self._poll_sockets(True)
        for descriptor in self._unproved.expired(now):
            self._drop(descriptor)
        for descriptor, _ in self._ready.poll(0, _MOST_EVENTS):
            if descriptor in self._sockets:
                self._accept(*self._sockets[descriptor])
            elif descriptor in self._unproved:
                found += self._serve(descriptor)
        return found

    @property
    def wait(self) -> float | None:
        """Seconds until ``guests`` must be called without an event; ``None``: it need not."""
        due = min(self._resume_at, self._unproved.due)
        return None if due == float("inf") else max(0.0, due - time.monotonic())

    def close(self) -> None:
        """Close the sockets, and the connections that have not proved themselves."""
        for listening, _ in self._sockets.values():
            listening.close()
        self._unproved.close()
        self._sockets.clear()
        self._ready.close()

    def strangers(self) -> str:
        """Return a sentence about the refused connections, "" if there are none."""
        if not self.refused:
            return ""
        problem = next(iter(self.problems.values()))
        where = and_more([one or "this host" for one in self.problems], _MOST_NAMED)
        return (
            f"refused {count(self.refused, 'connection')} from {where}: {_REASONS[problem and problem.kind]}"
        )

    def _accept(self, listening: socket.socket, port: int) -> None:
        for _ in range(_MOST_EVENTS):
            try:
                accepted, peer = listening.accept()
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    return
                if not self._unproved:
                    self._poll_sockets(False)
                    return
                self._drop(self._unproved.surplus())
                continue
            if not self._limit.allows(accepted.fileno()) and self._unproved:
                self._drop(self._unproved.surplus())  # The launcher needs files for other tasks.
            if self._key is None and not _is_same_user(accepted):
                accepted.close()
                self._note("", Problem("user"))
                continue
            is_here = self._arrives_at(accepted)
            session = Session(self._key, listens=True, largest=self._largest, is_here=is_here)
            connection = Connection(accepted, session, self._silence, peer)
            if not self._allows(connection.address):
                connection.refuse("address")
                self._count(connection)
                continue
            if self._unproved.is_full:
                self._drop(self._unproved.surplus())
            self._unproved.add(connection, port)
            self._ready.register(connection.fileno(), select.EPOLLIN)

    def _arrives_at(self, accepted: socket.socket) -> Callable[[str, int], bool]:
        """Return what tells whether a peer that has connected to an address and port arrives here."""
        aliases = self._aliases
        if aliases is None:
            return lambda _address, _port: True
        own, own_port = endpoint(accepted.getsockname())
        return lambda address, port: port == own_port and (address == own or address in aliases)

    def _poll_sockets(self, is_polled: bool) -> None:
        for descriptor in self._sockets:
            self._ready.modify(descriptor, select.EPOLLIN if is_polled else 0)
        self._resume_at = float("inf") if is_polled else time.monotonic() + _PAUSE_SECONDS

    def _serve(self, descriptor: int) -> list[Guest]:
        connection, _, port = self._unproved[descriptor]
        messages = connection.messages(LARGEST_SHARE)
        if connection.is_proved and connection.problem is None:
            self._unproved.remove(descriptor)
            self._ready.unregister(descriptor)
            return [Guest(connection, messages, port)]
        if connection.closed:
            self._drop(descriptor)
        return []

    def _drop(self, descriptor: int) -> None:
        connection = self._unproved.remove(descriptor)
        with suppress(OSError):
            self._ready.unregister(descriptor)
        self._count(connection)
        connection.close()

    def _count(self, connection: Connection) -> None:
        if connection.is_proved and connection.problem is not None and connection.problem.version:
            self.other_versions[connection.address] = connection.problem.version
            return
        self._note(connection.address, connection.problem)

    def _note(self, address: str, problem: Problem | None) -> None:
        self.refused += 1
        if problem is not None and problem.kind in CLAIMS:
            self._note_claim(address, problem.kind)
        if len(self.problems) < _MOST_KEPT:
            self.problems.setdefault(address, problem)

    def _note_claim(self, address: str, kind: str) -> None:
        is_expected = address in self._expected
        alike = [one for one, _ in self.claims if (one in self._expected) is is_expected]
        if len(alike) >= (_MOST_EXPECTED if is_expected else _MOST_CLAIMS):
            return
        # A stranger may have all addresses of its network: those must not take the places of the job's hosts.
        if is_expected or sum(_network(one) == _network(address) for one in alike) < _MOST_OF_NETWORK:
            self.claims.setdefault((address, kind))


#: Why connections were refused, by the kind of the problem; None: the peer left or did not answer in time.
_REASONS = {
    None: "not an agent of this job",
    "protocol": "not an agent of this job",
    "keyless here": "it says that it has a job key, this host has none",
    "keyless there": "it says that it has no job key (not proved)",
    "key": "it says that it has another job key (not proved)",
    "elsewhere": "it has connected to another address or port, and was led here",
    "address": "not an address of the job's hosts",
    "user": "a process of another user",
    "version": "the host has another version of hccl-tools",
}


def _network(address: str) -> str:
    """Return the part of an address that the hosts of a network share: /24, of IPv6 /64."""
    if ":" in address:
        return ":".join(address.split(":")[:4])
    return address.rpartition(".")[0]


def _bound(address: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of an earlier job's ranks to this port may be in TIME_WAIT; and this job's ranks listen
        # on this port while the launchers' connections are open.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def _is_same_user(accepted: socket.socket) -> bool:
    data = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(data)[1] == os.geteuid())
