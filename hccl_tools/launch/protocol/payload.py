"""A message as bytes, and the bytes that a connection has still to send.

A table for a thousand hosts is converted and hashed once, and all connections send the same bytes: the work
for one more host does not grow with the table.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.launch.protocol import messages

if TYPE_CHECKING:
    import socket

    from hccl_tools.launch.protocol.messages import Message

#: In bytes: a larger content is not copied.
_LARGEST_COPY = 1 << 12
#: Parts in one call of the kernel, which accepts 1,024.
_MOST_PARTS = 64


class Payload:
    """The content of a message."""

    __slots__ = ("_digest", "content")

    def __init__(self, content: bytes) -> None:
        self.content, self._digest = content, b""

    @classmethod
    def of(cls, message: Message) -> Payload:
        """Return the content of a message."""
        return cls(messages.to_bytes(message))

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the content."""
        if not self._digest:
            import hashlib  # noqa: PLC0415  (3 ms; it loads OpenSSL, 5 ms; the ranks of one host need no key)

            self._digest = hashlib.sha256(self.content).digest()
        return self._digest


class Outgoing:
    """Bytes to send, in order; it is false if there are none."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: deque[bytes | memoryview] = deque()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def add(self, head: bytes, content: bytes) -> None:
        """Append a frame: its own bytes, and a content that other connections may share."""
        if len(content) <= _LARGEST_COPY:
            self._parts.append(head + content)
        else:
            self._parts += (head, content)

    def clear(self) -> None:
        """Forget all bytes."""
        self._parts.clear()

    def send(self, connected: socket.socket) -> None:
        """Send as much as the kernel accepts now.

        Raises:
            BlockingIOError: Some is left.
            OSError: The connection has ended.
        """
        while self._parts:
            done = connected.sendmsg(islice(self._parts, _MOST_PARTS))
            while self._parts and done >= len(self._parts[0]):
                done -= len(self._parts.popleft())
            if done:
                self._parts[0] = memoryview(self._parts[0])[done:]
