"""The messages between the controller of a job and the agents on its hosts, as JSON objects.

``states`` has their order. ``restart`` counts the starts of the job from 0: the message of a host that is
ahead must not be taken for one about the current start.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, TypeAlias

from hccl_tools import codec
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
    from collections.abc import Mapping

#: In bytes: the message about a failure includes the end of a log.
LARGEST = 1 << 20
#: In bytes: the messages from the controller, one of which contains the rank table.
LARGEST_FROM_CONTROLLER = 256 << 20
#: In bytes: longer JSON is packed.
_LONGEST_UNPACKED = 1 << 12
#: The slowest level: a table is packed once, and sent to each host. It makes it smaller by a fifth.
_LEVEL = 9


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
    "Table | Join | Ready | Waiting | Refused | Start | Ending | EndedByEngine | Ended | End | Kill | Heard "
    "| Quiet | Look | Hung | EvidenceTaken | Release | Leave"
)


def to_bytes(message: Message) -> bytes:
    """Return a message as JSON, packed if it is long."""
    content = to_json(message, tagged=True)
    return content if len(content) <= _LONGEST_UNPACKED else zlib.compress(content, _LEVEL)


def from_bytes(content: bytes, largest: int = LARGEST) -> Message:
    """Return the message in the bytes; unpacked, it has at most ``largest`` bytes.

    Raises:
        DecodeError: The bytes are not a message of this version.
    """
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
