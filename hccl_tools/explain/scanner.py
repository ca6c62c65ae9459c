"""Find the messages in a log: one pass finds the lines that can have one, then their patterns are matched."""

from __future__ import annotations

import re
import signal
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_tools.explain import screens, sieve, tracebacks
from hccl_tools.explain.alike import MOST_ALIKE, Kept, Settled
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
from hccl_tools.explain.handled import HANDLED, is_handled, says_handled
from hccl_tools.explain.knowledge import patterns
from hccl_tools.explain.knowledge.registry import codes, messages
from hccl_tools.explain.reader import Block, Extent, LogReader
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.reader import Part
    from hccl_tools.explain.screens import Prefix
    from hccl_tools.explain.sieve import Hit


#: Seconds for one line.
_LONGEST_SEARCH = 0.5


class _TooSlowError(Exception):
    pass


class Guard:
    """Searches with patterns; those of the messages ``guarded`` have a time limit."""

    def __init__(self, guarded: Collection[str]) -> None:
        self._guarded = set(guarded)
        self._dropped: list[str] = []
        self._told = 0

    def search(self, message: Message, pattern: re.Pattern[bytes], line: bytes) -> re.Match[bytes] | None:
        """Return the match of a message's pattern in a line."""
        if message.id not in self._guarded:
            return pattern.search(line)
        if message.id in self._dropped:
            return None
        if threading.current_thread() is not threading.main_thread():
            return None  # A signal, the only way to interrupt a search, reaches the main thread alone.
        former = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, _LONGEST_SEARCH)
        try:
            return pattern.search(line)
        except _TooSlowError:
            self._dropped.append(message.id)
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)

    def note(self) -> str:
        """Return a sentence on the messages that were dropped since the last call."""
        dropped, self._told = self._dropped[self._told :], len(self._dropped)
        if not dropped:
            return ""
        which = ", ".join(dropped)
        return f"the pattern of {which} took longer than {_LONGEST_SEARCH} s on a line: it was no longer used"


def _stop(_number: int, _frame: Any) -> None:
    raise _TooSlowError


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
#: Lines of one log that are compared with the messages, at 30 microseconds each.
_MOST_LINES = 2_000_000
#: Tracebacks of one log whose last lines are looked for, and exceptions whose surroundings are read.
_MOST_TRACEBACKS = 2_000
#: The fields that are numbers, and the digits that they may have: a job of ten million ranks is none.
NUMBERS = {"rank", "size", "device", "logical", "port", "peer", "peer_device", "timeout", "pid"}
LONGEST_NUMBER = 7
#: An exception of Python, whose text may have the code of the failure.
_EXCEPTION = "HCM810"
#: Messages whose reason may stand below them.
_WITH_REASON = (_EXCEPTION, "HCM613")
#: Exceptions that a program may handle.
_OF_PROGRAMS = (_EXCEPTION, "HCM664", "HCM813", "HCM842", "HCM844", "HCM889")
_CODE = re.compile(
    rb"(?<![A-Za-z0-9])(E[A-Z]\d{4}|E\d{5})(?![A-Za-z0-9])"
    # A number of six digits is a code only after a word that says so.
    rb"|(?:rr(?:or)?[ _]?[Cc]ode|rrno|rrNo|[Rr]et(?:[Cc]ode|val)?|eturn(?:s|ed)?(?:[ _][Cc]ode| value)?"
    rb"|[Rr]esult)(?: is| was)?[ =:\[(>-]{1,5}([1-9]\d{5})(?!\d)"
    rb"|(?:error code(?: is|:|=)? ?|hccl interface return err.{0,200}?retcode: )(\d{1,2})(?!\d)"
    rb"|hcclRet -> (\d{1,2})(?!\d)|errNo\[0x0000000005([0-9a-f]{6})\]"
)
#: The same in a line of which every digit is 0, wherever one may begin.
_CODE_SHAPE = re.compile(
    b"(?=" + _CODE.pattern.replace(rb"[1-9]\d{5}", rb"0{6}").replace(b"0x0000000005", b"0x0000000000") + b")"
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
        is_whole: Whether all of it was read.
    """

    events: list[Event]
    size: int
    note: str
    first_time: float | None
    last_time: float | None
    lines: int = 0
    pid: str = ""
    unknown: tuple[int, str] | None = None
    is_whole: bool = True

    @property
    def extent(self) -> Extent | None:
        """What was read of it, None if that is not all."""
        return Extent(self.size, self.lines) if self.is_whole else None


class _Candidate:
    """A message that a line with its anchor can have; its pattern is compiled when it is needed."""

    def __init__(self, message: Message) -> None:
        self.message, self.anchor = message, message.anchor

    @cached_property
    def pattern(self) -> re.Pattern[bytes] | None:
        return re.compile(self.message.pattern) if self.message.pattern else None

    @cached_property
    def needed(self) -> Sequence[Collection[bytes]]:
        return patterns.needed(self.message.pattern) if self.message.pattern else ()

    @cached_property
    def is_blind_to_digits(self) -> bool:
        """Whether the digits of a line change nothing, if those of a code that is the anchor are equal."""
        pattern = self.message.pattern
        if _CODE.fullmatch(self.anchor):
            pattern = pattern.replace(self.anchor, b"E")
        return b"0x" not in pattern and patterns.is_blind_to_digits(pattern)


class Scanner:
    """Finds messages; ``extra`` are the user's records, which come first; at most ``most_alike`` are kept."""

    def __init__(self, extra: Iterable[Message] = (), most_alike: int = MOST_ALIKE) -> None:
        own = tuple(extra)
        self._guard = Guard({message.id for message in own})
        self._messages = [_Candidate(one) for one in (*own, *messages().values()) if one.anchor]
        anchors = [one.anchor for one in self._messages]
        self._sieve = sieve.Sieve(
            [*anchors, tracebacks.TRACEBACK, *_LEVELS],
            _BEFORE_CODES,
            lambda index: self._messages[index].needed if index < len(self._messages) else (),
        )
        self._codes, self._most_alike = codes(), most_alike
        self._kept = Kept(most_alike)
        self._settled = Settled(_CODE_SHAPE, filter(self._is_numbered, anchors))
        self._tracebacks = self._exceptions = 0
        self._unknown: tuple[int, str] | None = None

    def _is_numbered(self, anchor: bytes) -> bool:
        """Whether a line with other digits lacks an anchor; the digits of a known code count in any case."""
        return bool(re.search(rb"\d", anchor)) and not (
            _CODE.fullmatch(anchor) and anchor.decode() in self._codes
        )

    def scan(self, path: str, file: int, part: Part | None = None) -> Scan:
        """Return what a log, or a part of it, contains; ``file`` is its index."""
        reader, last_block = LogReader(path, part), Block(b"", 1)
        first: float | None = None
        pid = ""
        self._kept, self._unknown = Kept(self._most_alike), None
        self._tracebacks = self._exceptions = 0
        self._settled.begin_log()
        is_first, left, note = True, _MOST_LINES, ""
        for block in reader.blocks():
            data = screens.plain(block.data)
            if is_first:
                first, is_first = time_in(data[:4096]), False
                pid = process_in(data[:_HEAD])[0]
            hits = self._sieve.hits(data, self._settled)
            self._kept.add(self._events(Block(data, block.line), hits[:left], file))
            last_block, left = block, left - len(hits)
            if left < 0:
                note = (
                    f"{path} has more than {_MOST_LINES:,} lines that may name a fault: only these were read"
                )
                break
        return Scan(
            self._kept.kept,
            reader.size,
            note or reader.note or self._guard.note(),
            first,
            last_time_in(last_block.data[-4096:]),
            last_block.line - 1 + last_block.data.count(b"\n"),
            pid,
            self._unknown,
            left >= 0,
        )

    def _events(self, block: Block, hits: Sequence[Hit], file: int) -> Iterator[Event]:
        data = block.data
        number, at = block.line, 0
        earlier, later = LastTime(data, _TIME_WITHIN), NextTime(data, _TIME_WITHIN)
        for hit in hits:
            begin = hit.start if hit.at < hit.start + _NEAR else hit.at - _BEFORE
            line = data[begin : sieve.end_of_line(data, begin, _MATCHED)]
            place, event, is_of_line = self._judged(data, begin, line, hit)
            if event is not None:
                number, at = number + data.count(b"\n", at, begin), begin
                event = event._replace(file=file, line=number + data.count(b"\n", begin, place))
                yield _timed(event, line) or event._replace(
                    after=earlier.before(begin), before=later.after(begin + len(line))
                )
            is_level = event is None and _LEVEL.search(line, 0, _LEVEL_WITHIN) is not None
            if is_level and self._unknown is None:
                shown = line[:_SHOWN].decode(errors="replace").strip()
                self._unknown = block.line + data.count(b"\n", 0, begin), shown
            if is_of_line and (event is None or self._kept.is_full(event)):
                self._settled.add(line, event, is_of_log=event is not None or is_level)

    def _judged(self, data: bytes, begin: int, line: bytes, hit: Hit) -> tuple[int, Event | None, bool]:
        """Return the place and the event of a line, and whether only its text without most digits decides."""
        if not hit.anchors and not self._codes_in(line, max(0, hit.at - begin - _BEFORE_WORD)):
            return begin, None, True  # Only a word that a code may follow.
        candidates = self._candidates(hit)
        place, event = begin, self._event(line, candidates)
        is_of_line = all(one.is_blind_to_digits for one in candidates)
        if event is None and len(self._messages) in hit.anchors and self._tracebacks < _MOST_TRACEBACKS:
            (place, event), is_of_line = self._raised(data, begin), False
        if event is None:
            return place, None, is_of_line
        is_program_s = event.message.id in _OF_PROGRAMS
        if is_program_s or event.message.id in _WITH_REASON:
            self._exceptions += 1
            if self._exceptions > _MOST_TRACEBACKS and self._kept.is_full(event):
                return place, event, is_of_line
        if is_program_s and is_handled(data, place):
            return place, event._replace(message=messages()[HANDLED]), False
        if event.message.kind == "code" and says_handled(line):
            event = event._replace(message=messages()[HANDLED])
        elif event.message.id in _WITH_REASON:
            end = sieve.end_of_line(data, place, _MATCHED)
            reason = tracebacks.with_reason(event.fields.get("reason", ""), data, end)
            event, is_of_line = self._with_reason(event, reason), False
        return place, event, is_of_line and not is_program_s

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
        found = tracebacks.raised(data, begin)
        if found is None or self.event(found[1]) is not None:
            return begin, None
        place, text = found
        line = data[place : sieve.end_of_line(data, place, _MATCHED)]
        event = Event(messages()[_EXCEPTION], {"reason": text.decode(errors="replace").strip()}, (), 0, 0)
        return place, _written(line, screens.prefix(line), event)

    def event(self, line: bytes) -> Event | None:
        """Return the event of a line, without its place; None if no message matches."""
        return self._event(line, [one for one in self._messages if one.anchor in line])

    def _event(self, whole: bytes, candidates: Sequence[_Candidate]) -> Event | None:
        if not candidates and not self._codes_in(whole):
            return None
        prefix = screens.prefix(whole)
        event = self._matched(whole[prefix.length :], candidates)
        return _written(whole, prefix, event) if event is not None else None

    def _matched(self, line: bytes, candidates: Sequence[_Candidate]) -> Event | None:
        codes_in_line = self._codes_in(line)
        by_code = self._of_code(codes_in_line)
        for one in candidates:
            message, pattern = one.message, one.pattern
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


def _written(whole: bytes, prefix: Prefix, event: Event) -> Event:
    """Return an event with the process, the rank and the host that wrote its line."""
    line = whole[prefix.length :]
    named, program = process_in(line)
    pid, fields = prefix.pid or named, event.fields
    if prefix.host:
        pid, fields = f"{prefix.host}:{pid}", {"server": prefix.host, **fields}
    rank = prefix.rank if prefix.rank is not None else rank_in(line)
    text = whole[:_SHOWN].decode(errors="replace").strip()
    return event._replace(fields=fields, pid=pid, rank=rank, text=text, program=program)


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
