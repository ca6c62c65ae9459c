"""An event: one message that a log contains, with its place and the process that wrote it."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.locations import Place

_TIME = re.compile(rb"(20\d\d)-(\d\d)-(\d\d)[-T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{3})(?:\.?(\d{3}))?)?")
#: Bytes.
_LONGEST_TIME = 27
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
#: ``Feb 20 03:11:12`` of syslog, and ``[Wed Mar 18 10:31:52 2026]`` of ``dmesg -T``.
_SYSLOG = re.compile(
    rb"^\[?(?:[A-Z][a-z]{2} )?("
    + rb"|".join(_MONTHS)
    + rb") {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (20\d\d))?"
)
#: The year that a time without one gets: a leap year.
YEARLESS = 2000
#: CANN writes MODULE(pid,program), MindSpore MODULE(pid:thread,name), torch_npu (PID:1, Device:0, RankID:3),
#: vLLM (Worker_TP3 pid=1).
_PID = re.compile(
    rb"[A-Z]{2,12}\((\d+),(?P<program>[\w.+-]{1,64})?|[A-Z]{2,12}\((\d+):\d+,"
    rb"|\(PID:(\d+),|\(\w+ pid=(\d+)\)|\[PID: (\d+)\]"
)
#: torch_npu names the rank in its lines; -1 is none.
_RANK = re.compile(rb"RankID:(\d{1,7})")


class Event(NamedTuple):
    """One message in a log.

    Attributes:
        message: The message.
        fields: What the line names, by the names of ``explain.knowledge.message.FIELDS``.
        codes: The codes in the line.
        file: The index of the source in its list.
        line: Its number, from 1; 0 if the event does not come from a line.
        time: Seconds since the epoch, in the clock and time zone of the host that wrote it; None if unknown.
        pid: The process in the line, with the host of its prefix (``worker-1:4711``); "" if it names none.
        rank: The rank that a prefix of the line or torch_npu names, None if there is none.
        text: The line, shortened.
        after: A line without a time: the last time before it, None if there is none.
        before: A line without a time: the next time after it, None if there is none.
        program: The program in the line, "" if it names none.
        is_yearless: Whether the time has no year, as in syslog: it is counted from the year 2000.
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
    after: float | None = None
    before: float | None = None
    program: str = ""
    is_yearless: bool = False


class Seen(NamedTuple):
    """An event with its ranks.

    Attributes:
        event: The event.
        place: Who wrote it.
        actor: Who wrote it, as a key: two events with equal keys come from one process or rank.
        peer: The other rank, empty if the line names none.
        time: Its time, corrected by the clock of its host; None if unknown.
        since: The earliest time that it can have, None if unknown.
        until: The latest one.
        group: The communicator that it is about, "" if unknown.
        why: Why it is not about this job, "" if it may be.
    """

    event: Event
    place: Place
    actor: str
    peer: Place | None = None
    time: float | None = None
    since: float | None = None
    until: float | None = None
    group: str = ""
    why: str = ""


def time_in(line: bytes) -> float | None:
    """Return the first time in a line, as seconds since the epoch if the clock showed UTC; None if none."""
    found = _TIME.search(line)
    return _seconds(found) if found else None


#: ``W0617 02:21:23.000000`` of glog; torch leaves out the zero of a month: ``[E203 02:49:07.356``.
_GLOG = re.compile(rb"(?:^|[\[ ])[EWIF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.\d{3}")
_GLOG_WITHIN = 80


def _glog_time_in(line: bytes) -> float | None:
    found = _GLOG.search(line, 0, _GLOG_WITHIN)
    if found is None:
        return None
    month, day, hour, minute, second = map(int, found.groups())
    try:
        return datetime(YEARLESS, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def syslog_time_in(line: bytes) -> tuple[float | None, bool]:
    """Return the time that begins a line of syslog, dmesg or glog, and whether its year is unknown."""
    found = _SYSLOG.search(line)
    if found is None:
        time = _glog_time_in(line)
        return time, time is not None
    month, day, hour, minute, second, year = found.groups()
    numbers = (int(year or YEARLESS), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second))
    try:
        return datetime(*numbers, tzinfo=timezone.utc).timestamp(), year is None
    except ValueError:
        return None, False


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


class NextTime:
    """Finds the next time after growing places of a text, each part of which it searches once."""

    def __init__(self, data: bytes, within: int) -> None:
        """Begin at the beginning; a time counts up to ``within`` bytes after a place."""
        self._data, self._within = data, within
        self._searched = 0
        self._found: re.Match[bytes] | None = None

    def after(self, place: int) -> float | None:
        """Return the first time after a place, which is not before that of the last call."""
        if self._found is None or self._found.start() < place:
            begin = max(place, self._searched)
            self._found = _TIME.search(self._data, begin, place + self._within)
            if self._found is None:
                self._searched = max(begin, place + self._within - _LONGEST_TIME)  # It may be cut off there.
        return _seconds(self._found) if self._found is not None else None


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


def moment(event: Event) -> str:
    """Return the time of an event that has one as its line has it, which may have no year."""
    text = clock(event.time or 0.0)
    return text[len("2000-") :] if event.is_yearless else text


def process_in(line: bytes) -> tuple[str, str]:
    """Return the process id and the program that a line names, or ""."""
    found = _PID.search(line)
    if found is None:
        return "", ""
    pid = next(group for group in found.groups() if group and group.isdigit())
    return pid.decode(), (found["program"] or b"").decode(errors="replace")


def rank_in(line: bytes) -> int | None:
    """Return the rank that torch_npu names in a line."""
    found = _RANK.search(line)
    return int(found[1]) if found else None
