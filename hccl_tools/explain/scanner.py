"""Find the messages in a log: one pass finds the lines that can have one, then their patterns are matched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import screens, sieve, tracebacks
from hccl_tools.explain.events import (
    Event,
    LastTime,
    NextTime,
    last_time_in,
    process_in,
    rank_in,
    syslog_time_in,
    time_in,
)
from hccl_tools.explain.guard import Guard
from hccl_tools.explain.handled import HANDLED, is_handled, says_handled
from hccl_tools.explain.reader import Block, LogReader
from hccl_tools.knowledge.registry import codes, messages
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.explain.reader import Part
    from hccl_tools.explain.sieve import Hit
    from hccl_tools.knowledge.message import Message

    #: A message, the word that its lines have, and its pattern.
    _Candidate = tuple[Message, bytes, re.Pattern[bytes] | None]

#: Words that a number such as 507046 or 11 may follow.
_BEFORE_CODES = (
    *(b"rror code", b"rrorCode", b"rror_code", b"rrcode", b"rr code", b"rrno", b"rrNo[", b"hcclRet"),
    *(b"rtRet", b"etCode", b"etcode", b"etval"),
    *(b"ret =", b"ret=", b"ret:", b"ret[", b"ret(", b"ret ", b"eturn"),
    *(b"esult =", b"esult:", b"esult=", b"esult[", b"esult is"),
)
#: The bytes before such a word in which a text with a code may begin.
_BEFORE_WORD = 32
#: The part of a line that is matched.
_MATCHED = 4096
#: A word that is farther from the beginning of its line is matched with the bytes before it.
_NEAR, _BEFORE = 3072, 1024
_SHOWN = 300
#: How far before a line its time is looked for.
_TIME_WITHIN = 8192
#: Bytes of a log in which its process is looked for.
_HEAD = 1 << 16
#: Events of one message that are kept per process; all others say the same.
MOST_ALIKE = 20
_MOST_EVENTS = 20_000
#: Lines of one log that are compared with the messages, at 30 microseconds each.
_MOST_LINES = 2_000_000
#: Tracebacks of one log whose last lines are looked for.
_MOST_TRACEBACKS = 2_000
#: The fields that are numbers, and the digits that they may have: a job of ten million ranks is none.
NUMBERS = {"rank", "size", "device", "logical", "port", "peer", "peer_device", "timeout", "pid"}
LONGEST_NUMBER = 7
#: An exception of Python, whose text may have the code of the failure.
_EXCEPTION = "HCM810"
#: Messages whose reason may stand below them.
_WITH_REASON = (_EXCEPTION, "HCM613")
#: Exceptions that a program may handle.
_OF_PROGRAMS = (_EXCEPTION, "HCM664", "HCM813", "HCM842", "HCM844")
_CODE = re.compile(
    rb"(?<![A-Za-z0-9])(E[A-Z]\d{4}|E\d{5})(?![A-Za-z0-9])"
    # A number of six digits is a code only after a word that says so.
    rb"|(?:rr(?:or)?[ _]?[Cc]ode|rrno|rrNo|[Rr]et(?:[Cc]ode|val)?|eturn(?:s|ed)?(?:[ _][Cc]ode| value)?"
    rb"|[Rr]esult)(?: is| was)?[ =:\[(>-]{1,5}([1-9]\d{5})(?!\d)"
    rb"|(?:error code(?: is|:|=)? ?|hccl interface return err.{0,200}?retcode: )(\d{1,2})(?!\d)"
    rb"|hcclRet -> (\d{1,2})(?!\d)|errNo\[0x0000000005([0-9a-f]{6})\]"
)
#: The level of a line that reports a failure, and the part of the line in which it stands.
_LEVELS = (b"ERROR", b"FATAL", b"CRITICAL")
_LEVEL = re.compile(rb"\b(?:ERROR|FATAL|CRITICAL)\b(?![-_=./])")
_LEVEL_WITHIN = 160
#: HcclResult 0: the call succeeded.
_SUCCESS = "0"


class Scan(NamedTuple):
    """What one log, or a part of it, contains.

    Attributes:
        events: Its events.
        size: Its size in bytes.
        note: A sentence on what was not read, "" if all was.
        first_time: Its first time, None if there is none near its beginning.
        last_time: Its last time, None if there is none near its end.
        lines: The number of its line breaks.
        pid: The process that its first line with one names, "" if none near its beginning does.
        unknown: The number and the text of its first line of level ERROR that no message explains.
    """

    events: list[Event]
    size: int
    note: str
    first_time: float | None
    last_time: float | None
    lines: int = 0
    pid: str = ""
    unknown: tuple[int, str] | None = None


class Scanner:
    """Finds messages; ``extra`` are the user's records, which come first; at most ``most_alike`` are kept."""

    def __init__(self, extra: Iterable[Message] = (), most_alike: int = MOST_ALIKE) -> None:
        own = tuple(extra)
        self._guard = Guard({message.id for message in own})
        self._messages = [
            (message, message.anchor, re.compile(message.pattern) if message.pattern else None)
            for message in (*own, *messages().values())
            if message.anchor
        ]
        anchors = [anchor for _, anchor, _ in self._messages]
        self._sieve = sieve.Sieve([*anchors, tracebacks.TRACEBACK, *_LEVELS], _BEFORE_CODES)
        self._codes, self._most_alike = codes(), most_alike
        self._tracebacks = 0
        self._unknown: tuple[int, str] | None = None

    def scan(self, path: str, file: int, part: Part | None = None) -> Scan:
        """Return what a log, or a part of it, contains; ``file`` is its index."""
        reader, events, last_block = LogReader(path, part), Kept(self._most_alike), Block(b"", 1)
        first: float | None = None
        pid = ""
        self._tracebacks, self._unknown = 0, None
        is_first, left, note = True, _MOST_LINES, ""
        for block in reader.blocks():
            data = screens.plain(block.data)
            if is_first:
                first, is_first = time_in(data[:4096]), False
                pid = process_in(data[:_HEAD])[0]
            hits = self._sieve.hits(data)
            events.add(self._events(Block(data, block.line), hits[:left], file))
            last_block, left = block, left - len(hits)
            if left < 0:
                note = (
                    f"{path} has more than {_MOST_LINES:,} lines that may name a fault: only these were read"
                )
                break
        return Scan(
            events.kept,
            reader.size,
            reader.note or note or self._guard.note(),
            first,
            last_time_in(last_block.data[-4096:]),
            last_block.line - 1 + last_block.data.count(b"\n"),
            pid,
            self._unknown,
        )

    def _events(self, block: Block, hits: Sequence[Hit], file: int) -> Iterator[Event]:
        data = block.data
        number, at = block.line, 0
        earlier, later = LastTime(data, _TIME_WITHIN), NextTime(data, _TIME_WITHIN)
        for hit in hits:
            begin = hit.start if hit.at < hit.start + _NEAR else hit.at - _BEFORE
            line = data[begin : sieve.end_of_line(data, begin, _MATCHED)]
            if not hit.anchors and not self._codes_in(line, max(0, hit.at - begin - _BEFORE_WORD)):
                continue  # Only a word that a code may follow.
            found = begin, self._event(line, self._candidates(hit))
            if found[1] is None and len(self._messages) in hit.anchors:
                found = self._raised(data, begin)
            if (event := found[1]) is None:
                if self._unknown is None and _LEVEL.search(line, 0, _LEVEL_WITHIN):
                    shown = line[:_SHOWN].decode(errors="replace").strip()
                    self._unknown = block.line + data.count(b"\n", 0, begin), shown
                continue
            is_program_s = event.message.id in _OF_PROGRAMS and is_handled(data, found[0])
            if is_program_s or (event.message.kind == "code" and says_handled(line)):
                event = event._replace(message=messages()[HANDLED])
            elif event.message.id in _WITH_REASON:
                end = sieve.end_of_line(data, found[0], _MATCHED)
                reason = tracebacks.with_reason(event.fields.get("reason", ""), data, end)
                event = self._with_reason(event, reason)
            number, at = number + data.count(b"\n", at, begin), begin
            event = event._replace(file=file, line=number + data.count(b"\n", begin, found[0]))
            yield _timed(event, line) or event._replace(
                after=earlier.before(begin), before=later.after(begin + len(line))
            )

    def _with_reason(self, event: Event, reason: str) -> Event:
        """Return an exception with its reason; one whose reason has a code only passes that failure on."""
        fields, found = {**event.fields, "reason": reason}, self._codes_in(reason.encode())
        by_code = self._of_code(found) if not event.codes else None
        if by_code is None:
            return event._replace(fields=fields)
        return event._replace(message=by_code, fields=fields, codes=found)

    def _candidates(self, hit: Hit) -> list[_Candidate]:
        return [self._messages[index] for index in sorted(hit.anchors) if index < len(self._messages)]

    def _raised(self, data: bytes, begin: int) -> tuple[int, Event | None]:
        """Return the place and the event of an exception, by its traceback, if no message has its line."""
        self._tracebacks += 1
        found = tracebacks.raised(data, begin) if self._tracebacks <= _MOST_TRACEBACKS else None
        if found is None or self.event(found[1]) is not None:
            return begin, None
        place, text = found
        line = data[place : sieve.end_of_line(data, place, _MATCHED)]
        message = messages()[_EXCEPTION]
        return place, self._written(
            line, Event(message, {"reason": text.decode(errors="replace").strip()}, (), 0, 0)
        )

    def event(self, line: bytes) -> Event | None:
        """Return the event of a line, without its place; None if no message matches."""
        return self._event(line, [one for one in self._messages if one[1] in line])

    def _event(self, whole: bytes, candidates: Sequence[_Candidate]) -> Event | None:
        if not candidates and not self._codes_in(whole):
            return None
        event = self._matched(whole[screens.prefix(whole).length :], candidates)
        return self._written(whole, event) if event is not None else None

    @staticmethod
    def _written(whole: bytes, event: Event) -> Event:
        """Return an event with the process, the rank and the host that wrote its line."""
        prefix = screens.prefix(whole)
        line = whole[prefix.length :]
        named, program = process_in(line)
        pid, fields = prefix.pid or named, event.fields
        if prefix.host:
            pid, fields = f"{prefix.host}:{pid}", {"server": prefix.host, **fields}
        rank = prefix.rank if prefix.rank is not None else rank_in(line)
        text = whole[:_SHOWN].decode(errors="replace").strip()
        return event._replace(fields=fields, pid=pid, rank=rank, text=text, program=program)

    def _matched(self, line: bytes, candidates: Sequence[_Candidate]) -> Event | None:
        codes_in_line = self._codes_in(line)
        by_code = self._of_code(codes_in_line)
        for message, _, pattern in candidates:
            found = self._guard.search(message, pattern, line) if pattern is not None else None
            if found is not None and not _is_plausible(found):
                continue
            if pattern is None or found is not None:
                if by_code is not None and (message.kind == "code" or message.id == _EXCEPTION):
                    return _made(by_code, None, codes_in_line)
                return _made(message, found, codes_in_line)
        return _made(by_code, None, codes_in_line) if by_code is not None else None

    def _of_code(self, found: Sequence[str]) -> Message | None:
        """Return the message of the most telling code of a line: EI before 50xxxx before a number."""
        first = min(found, key=lambda code: (code.isdigit(), -len(code)), default=None)
        return self._codes[first] if first is not None else None

    def _codes_in(self, line: bytes, start: int = 0) -> tuple[str, ...]:
        found = []
        for code, number, result, returned, errno in _CODE.findall(line, start):
            if code or number:
                found.append((code or number).decode())
            elif b"ccl" in line or b"HCCL" in line:
                found.append(str(int(errno, 16) if errno else int(result or returned)))
        return tuple(code for code in dict.fromkeys(found) if code in self._codes and code != _SUCCESS)


def _made(message: Message, found: re.Match[bytes] | None, codes_in_line: tuple[str, ...]) -> Event:
    fields = {
        name: value.decode(errors="replace").strip()
        for name, value in (found.groupdict() if found else {}).items()
        if value
    }
    return Event(message, fields, codes_in_line, 0, 0)


def _timed(event: Event, line: bytes) -> Event | None:
    """Return an event with the time in its line; None if the line has none."""
    time, is_yearless = time_in(line), False
    if time is None:
        time, is_yearless = syslog_time_in(line)
    return None if time is None else event._replace(time=time, is_yearless=is_yearless)


def _is_plausible(found: re.Match[bytes]) -> bool:
    """Whether the numbers of a line can be ranks, devices, ports or seconds: damaged logs have others."""
    return all(len(found[name] or b"") <= LONGEST_NUMBER for name in NUMBERS & found.re.groupindex.keys())


class Kept:
    """The events of one log; of many alike only the first are kept."""

    def __init__(self, most_alike: int = MOST_ALIKE) -> None:
        self._most_alike = most_alike
        self.kept: list[Event] = []
        self._alike: dict[tuple[str, str, int | None, str], int] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add events in the order of their lines."""
        for event in events:
            key = (event.message.id, event.pid, event.rank, event.fields.get("peer", ""))
            self._alike[key] = self._alike.get(key, 0) + 1
            if self._alike[key] <= self._most_alike and len(self.kept) < _MOST_EVENTS:
                self.kept.append(event)
