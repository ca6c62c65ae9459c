"""The messages between the controller of a job and the agents on its hosts: JSON objects, and their bytes.

``states`` has their order. ``restart`` counts the starts of the job from 0: the message of a host that is
ahead must not be taken for one about the current start.
"""

from __future__ import annotations

import zlib
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from hccl_tools import codec, load_part
from hccl_tools.codec import DecodeError
from hccl_tools.launch.model.outcome import Cause  # noqa: TC001  (the codec looks it up)
from hccl_tools.launch.model.rank_messages import (  # noqa: TC001  (the codec looks them up)
    Ended,
    EndedByEngine,
    Join,
)
from hccl_tools.records import Count, Index, NamedTuple, OsText, Seconds, to_json
from hccl_tools.runs.job_report import HungRank  # noqa: TC001  (the codec looks it up)

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from hccl_tools.launch.protocol.digests import Digests

#: In bytes: the message about a failure includes the end of a log.
LARGEST = 1 << 20
#: In bytes: the messages from the controller, one of which contains the rank table.
LARGEST_FROM_CONTROLLER = 256 << 20
#: In bytes: longer JSON is packed.
_LONGEST_UNPACKED = 1 << 12
#: Before the data of ``Written``, which is not converted: a rank may write gigabytes.
_PLAIN = b"="
#: The slowest level: a table is packed once, and sent to each host. It makes it smaller by a fifth.
_LEVEL = 9
#: In bytes: a larger content is not copied.
_LARGEST_COPY = 1 << 12
#: Parts in one call of the kernel, which accepts 1,024.
_MOST_PARTS = 64


class Table(NamedTuple):
    """Controller: the rank table, for the agents that an engine has started."""

    data: bytes


class Ready(NamedTuple):
    """Agent: this host is ready to start its ranks; ``values`` must be equal on all hosts."""

    restart: Count = 0
    values: Mapping[OsText, OsText] = {}


class Waiting(NamedTuple):
    """Controller: these hosts, and ``more`` others, have not joined yet.

    Attributes:
        seconds: For which the controller waits for them.
        notes: Lines for the user of each host, such as which host has no job key.
    """

    hosts: tuple[str, ...]
    more: Count = 0
    seconds: Seconds = 0.0
    notes: tuple[str, ...] = ()


class Refused(NamedTuple):
    """Either side: the job, or this host's part of it, is not started.

    ``number`` is the server that refuses its part, -1 if the hosts differ.
    """

    why: OsText
    number: Index = -1


class Start(NamedTuple):
    """Controller: start the ranks; ``run_dirs`` has the run directory of each server."""

    restart: Count = 0
    run_dirs: Mapping[Count, OsText] = {}


class Written(NamedTuple):
    """Agent: what the ranks of this host that are shown have written; on a connection for this alone."""

    data: bytes


class Ending(NamedTuple):
    """Agent: this host's part of the job ends early."""

    cause: Cause
    restart: Count = 0


class End(NamedTuple):
    """Controller: end the ranks; ``number`` is the agent that has reported the cause, -1 for none."""

    cause: Cause
    number: Index = -1
    restart: Count = 0


class Kill(NamedTuple):
    """Either side: kill the ranks, without the rest of the grace time."""

    restart: Count = 0


class Heard(NamedTuple):
    """Either side: the last message of the receiver has arrived."""

    restart: Count = 0


class Quiet(NamedTuple):
    """Agent: no rank of this host has done anything for ``idle`` seconds; 0: one has done something again."""

    idle: Seconds
    restart: Count = 0


class Look(NamedTuple):
    """Controller: all hosts are quiet; describe the ranks of this host."""

    restart: Count = 0


class Hung(NamedTuple):
    """Agent: what the ranks of this host do."""

    ranks: tuple[HungRank, ...] = ()
    restart: Count = 0


class EvidenceTaken(NamedTuple):
    """Agent: this host has taken its evidence, or takes none. Controller: all hosts have; end the ranks."""

    restart: Count = 0


class Release(NamedTuple):
    """Controller: no host has ranks left."""

    restart: Count = 0


class Leave(NamedTuple):
    """Controller: this connection belongs to another job; ``why`` is for the user of the other side."""

    why: OsText = ""


Message: TypeAlias = (
    "Table | Join | Ready | Waiting | Refused | Start | Written | Ending | EndedByEngine | Ended | End "
    "| Kill | Heard | Quiet | Look | Hung | EvidenceTaken | Release | Leave"
)


def to_bytes(message: Message) -> bytes:
    """Return a message as JSON, packed if it is long; what ranks have written as it is."""
    if isinstance(message, Written):
        return _PLAIN + message.data
    content = to_json(message, tagged=True)
    return content if len(content) <= _LONGEST_UNPACKED else zlib.compress(content, _LEVEL)


def from_bytes(content: bytes, largest: int = LARGEST) -> Message:
    """Return the message in the bytes; unpacked, it has at most ``largest`` bytes.

    Raises:
        DecodeError: The bytes are not a message of this version.
    """
    if content.startswith(_PLAIN):
        return Written(content[len(_PLAIN) :])
    data = content if content.startswith(b"{") else _unpacked(content, largest)
    message: Message = codec.decode_as("Message", __name__, codec.parse(data))
    return message


def _unpacked(content: bytes, largest: int) -> bytes:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(content, largest + 1)  # One more, to see the end of one that just fits.
    except zlib.error as error:
        raise DecodeError("this is not a packed message") from error
    if not reader.eof or reader.unused_data or len(data) > largest:
        raise DecodeError("a packed message is cut off or too large, or is followed by something else")
    return data


class Payload:
    """A message as bytes.

    A table for a thousand hosts is converted and hashed once, and all connections send the same bytes: the
    work for one more host does not grow with the table.
    """

    __slots__ = ("_digest", "content")

    def __init__(self, content: bytes) -> None:
        self.content, self._digest = content, b""

    @classmethod
    def of(cls, message: Message) -> Payload:
        """Return the content of a message."""
        return cls(to_bytes(message))

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the content."""
        if not self._digest:
            self._digest = digests().of(self.content)
        return self._digest


def digests() -> type[Digests]:
    """Load what makes digests and codes."""
    loaded: type[Digests] = load_part("launch.protocol.digests").Digests
    return loaded


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
