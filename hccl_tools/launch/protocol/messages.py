"""The messages between the controller of a job and the agents on its hosts, as JSON objects.

``states`` has their order. ``restart`` counts the starts of the job from 0: the message of a host that is
ahead must not be taken for one about the current start.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hccl_tools.launch.model.hang import HungRank
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_exit import RankExit
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: In bytes: the message about a failure includes the end of a log.
LARGEST = 1 << 20
#: In bytes: the messages from the controller, one of which contains the rank table.
LARGEST_FROM_CONTROLLER = 256 << 20
_LONGEST_TEXT = 1 << 16
#: In bytes: longer JSON is packed.
_LONGEST_UNPACKED = 1 << 12
#: The slowest level: a table is packed once, and sent to each host. It makes it smaller by a fifth.
_LEVEL = 9
_MOST_VALUES = 1 << 17


class Table(NamedTuple):
    """Controller: the rank table, for the agents that an engine has started."""

    data: bytes


class Join(NamedTuple):
    """Agent: this host, or this rank's shim, is there.

    Attributes:
        number: The index of the host's server, or the rank of the shim.
        parent: Host and process id of the agent's parent.
        node: The host's name in Slurm, else its own.
        run_dir: The host's run directory; its path may differ between hosts.
    """

    number: int
    pid: int
    parent: tuple[str, int]
    node: str = ""
    run_dir: str = ""


class Ready(NamedTuple):
    """Agent: this host is ready to start its ranks; ``values`` must be equal on all hosts."""

    restart: int = 0
    values: Mapping[str, str] = {}


class Waiting(NamedTuple):
    """Controller: these hosts, and ``more`` others, have not joined yet.

    Attributes:
        seconds: For which the controller waits for them.
        notes: Lines for the user of each host, such as which host has no job key.
    """

    hosts: tuple[str, ...]
    more: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


class Refused(NamedTuple):
    """Either side: the job, or this host's part of it, is not started.

    ``number`` is the server that refuses its part, -1 if the hosts differ.
    """

    why: str
    number: int = -1


class Start(NamedTuple):
    """Controller: start the ranks; ``run_dirs`` has the run directory of each server."""

    restart: int = 0
    run_dirs: Mapping[int, str] = {}


class Ending(NamedTuple):
    """Agent: this host's part of the job ends early."""

    cause: Cause
    restart: int = 0


class EndedByEngine(NamedTuple):
    """Agent: the engine has requested the end of this host's part."""


class Ended(NamedTuple):
    """Either side: every process of this host's part has exited.

    Attributes:
        cause: The cause of an early end that began on this host.
        hung: What the ranks of this host did when another host reported that the job hangs.
    """

    ranks: tuple[RankExit, ...] = ()
    cause: Cause | None = None
    hung: tuple[HungRank, ...] = ()
    restart: int = 0


class End(NamedTuple):
    """Controller: end the ranks; ``number`` is the agent that has reported the cause, -1 for none."""

    cause: Cause
    number: int = -1
    restart: int = 0


class Kill(NamedTuple):
    """Either side: kill the ranks, without the rest of the grace time."""

    restart: int = 0


class Heard(NamedTuple):
    """Either side: the last message of the receiver has arrived."""

    restart: int = 0


class Quiet(NamedTuple):
    """Agent: no rank of this host has done anything for ``idle`` seconds; 0: one has done something again."""

    idle: float
    restart: int = 0


class Look(NamedTuple):
    """Controller: all hosts are quiet; describe the ranks of this host."""

    restart: int = 0


class Hung(NamedTuple):
    """Agent: what the ranks of this host do."""

    ranks: tuple[HungRank, ...] = ()
    restart: int = 0


class Release(NamedTuple):
    """Controller: no host has ranks left."""

    restart: int = 0


class Leave(NamedTuple):
    """Controller: this connection belongs to another job; ``why`` is for the user of the other side."""

    why: str = ""


Message: TypeAlias = (
    "Table | Join | Ready | Waiting | Refused | Start | Ending | EndedByEngine | Ended | End | Kill | Heard "
    "| Quiet | Look | Hung | Release | Leave"
)
_T = TypeVar("_T")


def to_bytes(message: Message) -> bytes:
    """Return a message as JSON, packed if it is long."""
    fields = {name: _plain(value) for name, value in zip(message._fields, message, strict=True)}
    content = json.dumps({"type": _NAMES[type(message)], **fields}).encode()
    return content if len(content) <= _LONGEST_UNPACKED else zlib.compress(content, _LEVEL)


def from_bytes(content: bytes, largest: int = LARGEST) -> Message:
    """Return the message in the bytes; unpacked, it has at most ``largest`` bytes.

    Raises:
        ValueError, TypeError, KeyError, RecursionError: The bytes are not a message of this version.
    """
    fields = json.loads(content if content.startswith(b"{") else _unpacked(content, largest))
    kind, readers = _KINDS[fields.pop("type")]
    message: Message = kind(**{name: readers[name](value) for name, value in fields.items()})
    return message


def _unpacked(content: bytes, largest: int) -> bytes:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(content, largest + 1)  # One more, to see the end of one that just fits.
    except zlib.error as error:
        raise ValueError("not a packed message") from error
    if not reader.eof or reader.unused_data or len(data) > largest:
        raise ValueError("a packed message is cut off or too large, or is followed by something else")
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Cause):
        return value.as_dict()
    if isinstance(value, tuple):
        return [item._asdict() if isinstance(item, (RankExit, HungRank)) else item for item in value]
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(value)
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not -1 <= value < 1 << 31:
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    if type(value) not in {int, float} or not 0 <= value < math.inf:
        raise ValueError(value)
    return float(value)


def _bytes(value: Any) -> bytes:
    return str.encode(value, "latin-1")


def _parent(value: Any) -> tuple[str, int]:
    host, pid = value
    return _text(host), _number(pid)


def _several(read: Callable[[Any], _T]) -> Callable[[Any], tuple[_T, ...]]:
    def read_all(value: Any) -> tuple[_T, ...]:
        if not isinstance(value, list) or len(value) > _MOST_VALUES:
            raise ValueError(value)
        return tuple(map(read, value))

    return read_all


def _by_name(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > _MOST_VALUES:
        raise ValueError(value)
    return {_text(key): _text(item) for key, item in value.items()}


def _by_number(value: Any) -> dict[int, str]:
    return {int(key): item for key, item in _by_name(value).items()}


def _optional_cause(value: Any) -> Cause | None:
    return None if value is None else Cause.from_json(value)


_RESTART: dict[str, Callable[[Any], Any]] = {"restart": _number}
_CAUSE: dict[str, Callable[[Any], Any]] = {"cause": Cause.from_json, **_RESTART}
_READERS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Table: {"data": _bytes},
    Join: {"number": _number, "pid": _number, "parent": _parent, "node": _text, "run_dir": _text},
    Ready: {"values": _by_name, **_RESTART},
    Waiting: {"hosts": _several(_text), "more": _number, "seconds": _seconds, "notes": _several(_text)},
    Refused: {"why": _text, "number": _number},
    Start: {"run_dirs": _by_number, **_RESTART},
    Ending: _CAUSE,
    EndedByEngine: {},
    Ended: {
        "ranks": _several(RankExit.parse),
        "cause": _optional_cause,
        "hung": _several(HungRank.parse),
        **_RESTART,
    },
    End: {"number": _number, **_CAUSE},
    Kill: _RESTART,
    Heard: _RESTART,
    Quiet: {"idle": _seconds, **_RESTART},
    Look: _RESTART,
    Hung: {"ranks": _several(HungRank.parse), **_RESTART},
    Release: _RESTART,
    Leave: {"why": _text},
}
_NAMES = {kind: kind.__name__.lower() for kind in _READERS}
_KINDS = {_NAMES[kind]: (kind, readers) for kind, readers in _READERS.items()}
