"""A non-blocking connection between two launchers.

The kernel closes the connection to a dead or unreachable peer after ``silence`` seconds without an answer to
its keepalive probes. A stopped launcher (Ctrl-Z), or a launcher without CPU time, keeps its connections.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.launch.model.plan import DEFAULT_SILENCE
from hccl_tools.launch.protocol.messages import Payload
from hccl_tools.launch.protocol.session import Session
from hccl_tools.processes import timing
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.launch.protocol.session import Problem

#: The most bytes that one call of ``messages`` reads: a busy peer must not delay the others.
_LARGEST_TURN = 1 << 20
_CHUNK = 1 << 16
#: Silence before the first keepalive probe, as a part of the time after which a peer is lost; the probes
#: follow each other in half of that. Several must be lost on a bad link before the peer is.
_IDLE_PART = 6
_MOST_PROBES = 127
#: The limit for connections that have not proved themselves, beside those of the job's own hosts, which may
#: all connect at once.
_MOST_UNPROVED = 1024


class Timing(NamedTuple):
    """Times of a connection, in seconds.

    Attributes:
        identify: For a peer to prove itself.
    """

    identify: float = 10.0


TIMING = timing.from_environment("connection", Timing())


class Connection:
    """A socket with a session.

    Attributes:
        closed: Whether the peer has disconnected or has sent invalid data.
        address: The address of the peer; "" for a peer on this host.
    """

    __slots__ = ("_session", "_socket", "address", "closed")

    def __init__(
        self,
        connection: socket.socket,
        session: Session,
        silence: float = DEFAULT_SILENCE,
        peer: object = None,
    ) -> None:
        """Begin a session; ``peer`` is the address that accept() has returned."""
        connection.setblocking(False)
        idle = max(1, int(silence / _IDLE_PART))
        for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, idle // 2)),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _MOST_PROBES),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence * 1000)),
        ):
            with suppress(OSError):  # A sandbox may lack these options; the peer's exit is still detected.
                connection.setsockopt(level, option, value)
        self._socket, self._session = connection, session
        self.closed = False
        self.address = endpoint(peer)[0]
        self.flush()

    def fileno(self) -> int:
        """Return the descriptor, to poll for POLLIN, and for POLLOUT while ``waiting``."""
        return self._socket.fileno()

    @property
    def own_address(self) -> str:
        """The address of this host, as the peer sees it if nothing translates it; "" if it has none."""
        try:
            return endpoint(self._socket.getsockname())[0]
        except OSError:
            return ""

    @property
    def waiting(self) -> bool:
        """Whether unsent data is left."""
        return bool(self._session.outgoing)

    @property
    def is_proved(self) -> bool:
        """Whether the peer has proved that it has the job's key."""
        return self._session.is_proved

    @property
    def output(self) -> str:
        """The token of an agent, if this connection is for the output of its ranks; "" for a conversation."""
        return self._session.output

    @property
    def problem(self) -> Problem | None:
        """Why the session has ended, ``None`` while it continues or if the peer has disconnected."""
        return self._session.problem

    def wait_for_reader(self) -> None:
        """Keep the connection to a peer that answers but has stopped reading, for any time."""
        with suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)

    def send(self, message: Message) -> None:
        """Queue a message and send as much as the kernel accepts now."""
        self.send_payload(Payload.of(message))

    def send_payload(self, payload: Payload) -> None:
        """Queue the content of a message, and send as much as the kernel accepts now."""
        self._session.send_payload(payload)
        self.flush()

    def flush(self) -> None:
        """Send as much of the queued data as the kernel accepts now."""
        outgoing = self._session.outgoing
        if not outgoing or self.closed:
            return
        try:
            outgoing.send(self._socket)
        except BlockingIOError:
            return
        except OSError:
            outgoing.clear()  # Data that the peer sent earlier can still be read.

    def messages(self, most: int = _LARGEST_TURN) -> list[Message]:
        """Return the messages received so far; reads at most ``most`` bytes and does not block."""
        found: list[Message] = []
        while not self.closed and most > 0:
            try:
                part = self._socket.recv(min(_CHUNK, most))
            except BlockingIOError:
                break
            except OSError:
                part = b""
            most -= len(part)
            found += self._session.receive(part)
            self.flush()
            self.closed = self.closed or not part or self._session.problem is not None
        return found

    def accept_up_to(self, largest: int) -> None:
        """Change the limit on a message from the peer, in bytes."""
        self._session.accept_up_to(largest)

    def refuse(self, kind: str) -> None:
        """Tell a peer that has not proved itself why it is refused, and close the connection."""
        self._session.refuse(kind)
        self.flush()
        self.close()

    def close(self) -> None:
        """Close the connection; the kernel still sends the data that it has accepted."""
        self.closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()


class UnprovedConnection(NamedTuple):
    """A connection, when it was accepted, and the port to which it has connected."""

    connection: Connection
    since: float
    port: int


class Unproved:
    """The connections of a listener that have not proved themselves, by descriptor, oldest first.

    ``hosts`` is the number of hosts that are expected to connect.
    """

    def __init__(self, hosts: int = 0) -> None:
        self._most = _MOST_UNPROVED + hosts
        self._entries: dict[int, UnprovedConnection] = {}
        self._of_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._entries

    def __getitem__(self, descriptor: int) -> UnprovedConnection:
        return self._entries[descriptor]

    @property
    def is_full(self) -> bool:
        """Whether a connection must be closed before the next one is accepted."""
        return len(self._entries) >= self._most

    def add(self, connection: Connection, port: int) -> None:
        """Add a connection that was accepted now."""
        self._entries[connection.fileno()] = UnprovedConnection(connection, time.monotonic(), port)
        self._of_address[connection.address] += 1

    def remove(self, descriptor: int) -> Connection:
        """Remove a connection and return it."""
        connection = self._entries.pop(descriptor).connection
        self._of_address[connection.address] -= 1
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]
        return connection

    def expired(self, now: float) -> list[int]:
        """Return the descriptors of the connections whose time is over."""
        late = takewhile(lambda item: now - item[1].since >= TIMING.identify, self._entries.items())
        return [descriptor for descriptor, _ in late]

    @property
    def due(self) -> float:
        """When the time of the oldest connection is over; infinite if there is none."""
        first = next(iter(self._entries.values()), None)
        return float("inf") if first is None else first.since + TIMING.identify

    def surplus(self) -> int:
        """Return the descriptor to close first: the oldest of the address that has the most connections.

        A flood from one address must not close the connections of the job's hosts.
        """
        (address, _), *_ = self._of_address.most_common(1)
        return next(one for one, entry in self._entries.items() if entry.connection.address == address)

    def close(self) -> None:
        """Close all connections."""
        for entry in self._entries.values():
            entry.connection.close()
        self._entries.clear()
        self._of_address.clear()


def endpoint(name: object) -> tuple[str, int]:
    """Return the address and port in the name of a socket; ``("", 0)`` for a socket that has neither."""
    if not isinstance(name, tuple):
        return "", 0
    # An IPv6 socket shows an IPv4 address as ::ffff:10.0.0.1, and may add the name of the interface.
    return str(name[0]).removeprefix("::ffff:").partition("%")[0], int(name[1])


def broadcast(connections: Iterable[Connection], message: Message) -> None:
    """Send a message, which is converted once: a thousand hosts get the same run directories or cause."""
    payload = Payload.of(message)
    for connection in connections:
        connection.send_payload(payload)


def connect(
    address: tuple[str, int], key: bytes, *, silence: float, seconds: float, largest: int, output: str = ""
) -> Connection | None:
    """Connect to a listening launcher; return ``None`` on failure.

    ``output`` is the token of a connection for output; see ``Join.output``.
    """
    try:
        connected = socket.create_connection(address, timeout=seconds)
    except OSError:
        return None
    try:
        peer = connected.getpeername()
    except OSError:  # It has disconnected.
        connected.close()
        return None
    session = Session(key, listens=False, largest=largest, dialled=endpoint(peer), output=output)
    return Connection(connected, session, silence, peer)


def proved(connection: Connection, seconds: float) -> list[Message] | None:
    """Wait until both sides have proved themselves; return the first messages, ``None`` on failure."""
    deadline, found = time.monotonic() + seconds, list["Message"]()
    while not connection.closed and not connection.is_proved and (left := deadline - time.monotonic()) > 0:
        wait_readable(left, connection)
        found += connection.messages()
    return found if connection.is_proved and connection.problem is None else None
