"""The protocol between launcher and keeper, over two pipes.

A command to the keeper is a head (kind, length) and a body. Events from the keeper are records of one fixed
size, so that the keeper and a child that could not run its program can write to the same pipe.
"""

from __future__ import annotations

import os
import select
import struct

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # The keeper does not import typing, 5 of the 26 ms of its start.
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Commands: start processes, send a signal.
START = 1
SIGNAL = 2

#: The targets of a SIGNAL; 0 and above select one process by its index.
EVERYONE = -1
#: The ranks' own processes, without the processes that they have started.
RANKS = -2

#: Events: a process has been started.
STARTED = 1
#: A process could not be started.
CANNOT_RUN = 2
#: A process is exiting with a failure.
ENDING = 3
#: A process has ended.
ENDED = 4
#: No process is left.
EMPTY = 5
#: The keeper failed; this is the last event, followed by the traceback.
BROKEN = 6
#: The keeper is ready; the first event, with the keeper's process id.
READY = 7

#: The causes of a CANNOT_RUN, as indexes of ABOUT.
PROGRAM = 0
LOG = 1
FORK = 2
DIRECTORY = 3
ABOUT = ("run the program", "write {log}", "start {name}", "enter the working directory")

COMMAND_HEAD = struct.Struct("<BI")
SIGNAL_BODY = struct.Struct("<ii")
_EVENT = struct.Struct("<BIiiqqq")


class Event(NamedTuple):
    """A change of one process of the job.

    ``task`` counts the started processes from 0. ``value`` is the raw wait status of ENDED and the errno of
    CANNOT_RUN. ``time`` is ``time.monotonic_ns()``, ``cpu`` the CPU time in nanoseconds of the process
    and of the children that it waited for, ``extra`` the peak memory in KiB or the cause of CANNOT_RUN.
    """

    kind: int
    task: int
    pid: int
    value: int
    time: int
    cpu: int = 0
    extra: int = 0


class Task(NamedTuple):
    """A process to start.

    ``program`` and ``log`` are paths, ``cpus`` the cores to which it is bound. With ``errors``, its standard
    error goes to that file, which is emptied first, instead of the log. With ``pipes``, both are pipes of the
    launcher, by their paths in /proc.
    """

    program: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    log: str
    cpus: tuple[int, ...]
    errors: str = ""
    pipes: bool = False


def write(descriptor: int, data: bytes) -> None:
    """Write all data to a blocking descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_exactly(descriptor: int, size: int) -> bytes | None:
    """Read ``size`` bytes from a descriptor that blocks; ``None`` at the end of file."""
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send_command(descriptor: int, kind: int, body: bytes) -> None:
    """Send one command to the keeper."""
    write(descriptor, COMMAND_HEAD.pack(kind, len(body)) + body)


def send_failure(descriptor: int, text: str) -> None:
    """Send the keeper's last event, followed by its traceback, in one write."""
    head = _EVENT.pack(*Event(BROKEN, 0, 0, 0, 0))
    os.write(descriptor, head + text.encode(errors="replace")[-(select.PIPE_BUF - len(head)) :])


def send_events(descriptor: int, events: Iterable[Event]) -> None:
    """Send events in one write; at most PIPE_BUF bytes, which the kernel does not mix with other writes."""
    os.write(descriptor, b"".join(_EVENT.pack(*event) for event in events))


class EventReader:
    """The launcher's end of the event pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.ended = False
        #: The traceback of a keeper that has failed.
        self.failure = ""
        self._rest = b""

    def read(self) -> list[Event]:
        """Return all events so far; ``ended`` is true once the keeper has ended."""
        while not self.ended:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                break
            self.ended = not data
            self._rest += data
        whole = len(self._rest) - len(self._rest) % _EVENT.size
        events = []
        for offset in range(0, whole, _EVENT.size):
            events.append(Event(*_EVENT.unpack_from(self._rest, offset)))
            if events[-1].kind == BROKEN:
                self.failure = self._rest[offset + _EVENT.size :].decode(errors="replace")
                break
        self._rest = self._rest[whole:]
        return events
