"""A non-blocking connection between two launchers that carries one JSON object per line.

TCP keepalive closes the connection to a dead or unreachable peer after ``TIMING.timeout`` seconds. A stopped
launcher (Ctrl-Z), or a launcher without CPU time, keeps its connections.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.processes import timing
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: In bytes; the message about a failure includes the end of a log.
LARGEST_MESSAGE = 1 << 20


class Timing(NamedTuple):
    """Times of a connection, in whole seconds.

    Attributes:
        timeout: Until a host that does not answer counts as lost.
        idle: Silence before the first keepalive probe.
        interval: Between two keepalive probes.
        probes: The number of unanswered probes that closes the connection.
    """

    timeout: int = 12
    idle: int = 4
    interval: int = 2
    probes: int = 4


TIMING = timing.from_environment("connection", Timing())


class Connection:
    """A connected socket; ``closed`` once the peer has disconnected or sent invalid data."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, TIMING.idle),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, TIMING.interval),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, TIMING.probes),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TIMING.timeout * 1000),
        ):
            with suppress(OSError):  # A sandbox may lack these options; the peer's exit is still detected.
                connection.setsockopt(level, option, value)
        self._socket = connection
        self._inbox, self._outbox = bytearray(), bytearray()
        self.closed = False

    def fileno(self) -> int:
        """Return the descriptor, to poll for POLLIN, and for POLLOUT while ``waiting``."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether unsent data is left."""
        return bool(self._outbox)

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message and send as much as the kernel accepts now."""
        self._outbox += json.dumps(message).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send as much of the queued data as the kernel accepts now."""
        while self._outbox and not self.closed:
            try:
                done = self._socket.send(self._outbox)
            except BlockingIOError:
                return
            except OSError:
                self._outbox.clear()  # Data that the peer sent earlier can still be read.
                return
            del self._outbox[:done]

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the complete messages received so far; does not block."""
        self._receive()
        while (end := self._inbox.find(b"\n")) >= 0:
            message = _parsed(bytes(self._inbox[:end]))
            del self._inbox[: end + 1]
            if message is None:
                self.closed = True  # Not a peer of this protocol: nothing more is expected from it.
                self._inbox.clear()
                return
            yield message

    def _receive(self) -> None:
        while not self.closed:
            try:
                part = self._socket.recv(LARGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            self._inbox += part
            self.closed = not part or len(self._inbox) - self._inbox.rfind(b"\n") > LARGEST_MESSAGE

    def close(self) -> None:
        """Close the connection; the kernel still sends the data that it has accepted."""
        self.closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def connect(address: tuple[str, int], seconds: float) -> Connection | None:
    """Connect to a listening launcher; return ``None`` on failure."""
    try:
        return Connection(socket.create_connection(address, timeout=seconds))
    except OSError:
        return None


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens on all addresses of this host, of the family of ``address``.

    Raises:
        OSError: The port is in use.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of an earlier job's ranks to this port may be in TIME_WAIT; and this job's ranks listen
        # on this port while the launchers' connections are open.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def accept(listener: socket.socket) -> Connection | None:
    """Return the next pending connection of a listener, ``None`` if no connection is pending."""
    try:
        return Connection(listener.accept()[0])
    except OSError:
        return None
