"""The attempts of a job that its launcher started again: only the last one can have the cause of its end."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.explain.events import Event, Seen
    from hccl_tools.explain.sources import Source

#: A launcher started all ranks again, in its own words: torchrun's two, and those of `launch`.
_STARTED_AGAIN = {"HCM957", "HCM935", "HCM936"}
#: Folders and logs with the number of their attempt: ``attempt_1/0/stderr.log``, ``rank_3.restart_2.log``.
_FOLDER = re.compile(r"(?:^|/)attempt_(\d{1,4})/")
_LOG = re.compile(r"\.restart_(\d{1,4})(?=$|\.)")
_DIGITS = re.compile(r"\d+")
#: Why a failure of an earlier attempt is not the cause.
RESTARTED = "its launcher started all ranks again after it"


class Attempts(NamedTuple):
    """Where the last attempt of a job begins.

    Attributes:
        lines: The last line with which a launcher started all ranks again, by its log and the host
            in the prefix of the line: the logs of several pods may follow each other on one screen.
        time: The latest time of such a line, None if none has one.
        earlier: The logs that are those of earlier attempts by their paths.
    """

    lines: Mapping[tuple[int, str], int]
    time: float | None
    earlier: frozenset[int]

    def is_earlier(self, one: Seen) -> bool:
        """Whether an event is of an attempt after which the launcher started all ranks again."""
        if one.event.file in self.earlier:
            return True
        if (line := self.lines.get(_screen(one.event))) is not None:
            return one.event.line < line
        return self.time is not None and one.until is not None and one.until <= self.time


def of(seen: Iterable[Seen], sources: Sequence[Source]) -> Attempts:
    """Return the attempts that the logs show."""
    lines: dict[tuple[int, str], int] = {}
    last: float | None = None
    for one in seen:
        if one.event.message.id in _STARTED_AGAIN:
            screen = _screen(one.event)
            lines[screen] = max(lines.get(screen, 0), one.event.line)
            if one.time is not None and not one.event.is_yearless:
                last = max(last or 0.0, one.time)
    return Attempts(lines, last, _earlier_logs(sources))


def _screen(event: Event) -> tuple[int, str]:
    """Return the log and the host in the prefix of a line."""
    return event.file, event.pid.rpartition(":")[0]


def _earlier_logs(sources: Sequence[Source]) -> frozenset[int]:
    """Return the logs of which there is one of a later attempt, of this rank or of another one."""
    numbers: dict[int, tuple[str, int]] = {}
    for file, one in enumerate(sources):
        if (found := _FOLDER.search(one.path)) is not None:
            numbers[file] = one.path[: found.start()], int(found[1])
            continue
        folder, name = os.path.split(one.path)
        found = _LOG.search(name)
        kind = _DIGITS.sub("0", name[: found.start()] + name[found.end() :] if found else name)
        numbers[file] = os.path.join(folder, kind), int(found[1]) if found else 0
    last: dict[str, int] = {}
    for kind, number in numbers.values():
        last[kind] = max(last.get(kind, 0), number)
    return frozenset(file for file, (kind, number) in numbers.items() if number < last[kind])
