"""One connection between two launchers of a job: lines of JSON that nobody waits for.

The kernel asks after the other side all the time, both ways (TCP keepalive): a host that is cut off or down
shows as a closed connection after ``LOSS`` seconds. A launcher that is stopped (Ctrl-Z) or has no CPU time
keeps its connections.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds after which a host that does not answer any more counts as lost.
LOSS = 12
#: Seconds of quiet before the kernel asks, between two questions, and how many may stay unanswered.
_IDLE, _EVERY, _COUNT = 4, 2, 4
#: The most that one word may have: the end of a log goes along with a failure.
LARGEST = 1 << 20


class Wire:
    """A connected socket; ``closed`` once the other side has gone or says what no launcher would say."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _COUNT),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOSS * 1000),
        ):
            with suppress(OSError):  # A sandbox may not know them; a death is told all the same.
                connection.setsockopt(level, option, value)
        self._socket = connection
        self._come, self._waiting = bytearray(), bytearray()
        self.closed = False

    def fileno(self) -> int:
        """To poll() for POLLIN, and for POLLOUT while something waits."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether the kernel has not taken everything yet."""
        return bool(self._waiting)

    def send(self, word: dict[str, Any]) -> None:
        """Say something, as far as the kernel takes it now."""
        self._waiting += json.dumps(word).encode() + b"\n"
        self.pump()

    def pump(self) -> None:
        """Hand over what waits, as far as it is taken now."""
        while self._waiting and not self.closed:
            try:
                done = self._socket.send(self._waiting)
            except BlockingIOError:
                return
            except OSError:
                self._waiting.clear()  # What the other side has said before can still be read.
                return
            del self._waiting[:done]

    def words(self) -> Iterator[dict[str, Any]]:
        """What has been said and not been taken from here yet; does not wait."""
        self._receive()
        while (end := self._come.find(b"\n")) >= 0:
            word = _parsed(bytes(self._come[:end]))
            del self._come[: end + 1]
            if word is None:
                self.closed = True  # Whoever that is, nothing more is expected from there.
                self._come.clear()
                return
            yield word

    def _receive(self) -> None:
        while not self.closed:
            try:
                part = self._socket.recv(LARGEST)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            self._come += part
            self.closed = not part or len(self._come) - self._come.rfind(b"\n") > LARGEST

    def close(self) -> None:
        """Hang up; what the kernel has taken still goes out."""
        self.closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        word = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return word if isinstance(word, dict) else None


def connect(address: tuple[str, int], seconds: float) -> Wire | None:
    """Return a wire to a launcher that listens there; ``None`` if nobody does."""
    try:
        return Wire(socket.create_connection(address, timeout=seconds))
    except OSError:
        return None


def door(address: str, port: int) -> socket.socket:
    """Return a socket that listens on all addresses of this host, of the family of ``address``.

    Raises:
        OSError: Somebody else listens there.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Also where the ranks of an earlier job have just been: and theirs may listen here while ours last.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def accept(listener: socket.socket) -> Wire | None:
    """Return the next one that has come to a door; ``None`` if nobody has."""
    try:
        return Wire(listener.accept()[0])
    except OSError:
        return None
