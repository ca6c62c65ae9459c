"""An event: one message that a log contains, with its place and the process that wrote it."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.knowledge.message import Message

_TIME = re.compile(rb"(20\d\d)-(\d\d)-(\d\d)[-T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{3})(?:\.?(\d{3}))?)?")
#: Bytes.
_LONGEST_TIME = 27
#: CANN writes MODULE(pid,program), torch_npu (PID:1, Device:0, RankID:3), vLLM (Worker_TP3 pid=1).
_PID = re.compile(rb"[A-Z]{2,12}\((\d+),|\(PID:(\d+),|\(\w+ pid=(\d+)\)")
#: Launchers' prefixes: ``[rank 3] ``, ``[rank3]:``, ``[default3]:``, ``[1,3]<stderr>:``, ``3: ``.
_RANK = re.compile(
    rb"^(?:\[(?:rank |rank|default)(\d{1,7})\][: ]|\[\d+,(\d{1,7})\](?:<std\w+>)?:? ?|\s{0,4}(\d{1,5}): )"
    rb"|RankID:(\d{1,7})"
)


class Event(NamedTuple):
    """One message in a log.

    Attributes:
        message: The message.
        fields: What the line names, by the names of ``knowledge.message.FIELDS``.
        codes: The codes in the line.
        file: The index of the source in its list.
        line: Its number, from 1; 0 if the event does not come from a line.
        time: Seconds since the epoch, in the clock and time zone of the host that wrote it; None if unknown.
        pid: The process in the line, "" if it names none.
        rank: The rank that a prefix of the line names, None if there is none.
        text: The line, shortened.
    """

    message: Message
    fields: Mapping[str, str]
    codes: tuple[str, ...]
    file: int
    line: int
    time: float | None = None
    pid: str = ""
    rank: int | None = None
    text: str = ""


def time_in(line: bytes) -> float | None:
    """Return the first time in a line, as seconds since the epoch if the clock showed UTC; None if none."""
    found = _TIME.search(line)
    return _seconds(found) if found else None


def last_time_in(data: bytes) -> float | None:
    """Return the last time in a text; None if there is none."""
    return LastTime(data, len(data)).before(len(data))


class LastTime:
    """Finds the last time before growing places of a text, each part of which it searches once."""

    def __init__(self, data: bytes, within: int) -> None:
        """Begin at the beginning; a time counts for the next ``within`` bytes."""
        self._data, self._within = data, within
        self._searched = 0
        self._found: re.Match[bytes] | None = None

    def before(self, place: int) -> float | None:
        """Return the last time before a place, which is not before that of the last call."""
        for found in _TIME.finditer(self._data, max(self._searched, place - self._within), place):
            self._found = found
        self._searched = max(0, place - _LONGEST_TIME)  # A time that was cut off is searched again.
        if self._found is None or self._found.start() < place - self._within:
            return None
        return _seconds(self._found)


def _seconds(found: re.Match[bytes]) -> float | None:
    year, month, day, hour, minute, second, milli, micro = found.groups()
    try:
        when = datetime(  # the zone is unknown: times are only compared with each other
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=timezone.utc
        )
    except ValueError:
        return None
    return when.timestamp() + int(milli or 0) / 1e3 + int(micro or 0) / 1e6


def clock(time: float) -> str:
    """Return a time as the log had it: ``2026-03-18 10:33:52.113``."""
    text = datetime.fromtimestamp(time, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    return text[:-3]


def pid_in(line: bytes) -> str:
    """Return the process id that a line names, or ""."""
    found = _PID.search(line)
    return next(group for group in found.groups() if group).decode() if found else ""


def rank_in(line: bytes) -> int | None:
    """Return the rank that the prefix of a line names."""
    found = _RANK.search(line)
    return int(next(group for group in found.groups() if group)) if found else None
