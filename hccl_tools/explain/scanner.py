"""Find the messages in a log: search for a few words, then match the patterns on the lines that have one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
from hccl_tools.explain.reader import LogReader
from hccl_tools.knowledge.registry import codes, messages
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hccl_tools.explain.reader import Block
    from hccl_tools.knowledge.message import Message

    #: A message, the word that its lines have, and its pattern.
    _Candidate = tuple[Message, bytes, re.Pattern[bytes] | None]

#: Every line with a message has one of these. Each costs about half a second per gigabyte, a long word less.
WORDS = (
    *(
        b"rror",
        b"illed",
        b"Failed",
        b" fail",
        b"abnormal",
        b"Key Info]",
        b"HcclCommInit",
        b"_TIMEOUT set by",
        b"_TIMEOUT is",
        b"WorkHCCL(",
        b"exited on signal ",
    ),
    *(b"with ranktable ", b"rank_table_file", b"crimer rank", b"0x81078603", b"non-zero exit code"),
    *(b"ssh: connect to host", b"Permission denied (publickey"),
    *(b"BAD TERMINATION", b"devNum must be", b"TLS SWITCH", b'"-.-.-.-"'),
)
#: Words with the same beginning are searched at once.
GROUPS = (re.compile(rb"E(?:[IJL]00|RROR)"), re.compile(rb"S(?:etupAgent|IGTERM)"))
#: The part of a line that is matched.
_MATCHED = 4096
_SHOWN = 300
#: How far before a line its time is looked for.
_TIME_WITHIN = 8192
#: Events of one message that are kept per process; all others say the same.
_MOST_ALIKE = 20
_MOST_EVENTS = 20_000
#: Lines of one log that are compared with the messages, at 30 microseconds each.
_MOST_LINES = 2_000_000
#: In a block with more such lines, the messages whose word it contains are looked up first.
_MANY_LINES = 300
#: The fields that are numbers, and the digits that they may have: a job of ten million ranks is none.
NUMBERS = {"rank", "size", "device", "logical", "port", "peer", "peer_device", "timeout", "pid"}
LONGEST_NUMBER = 7
#: An exception of Python, whose text may have the code of the failure.
_EXCEPTION = "HCM810"
_CODE = re.compile(
    rb"(?<![A-Za-z0-9])(E[IJL]\d{4}|[25]07\d{3})(?![A-Za-z0-9])"
    rb"|error code(?: is|:|=)? ?(\d{1,2})(?!\d)|hcclRet -> (\d{1,2})(?!\d)|errNo\[0x0000000005([0-9a-f]{6})\]"
)


class Scan(NamedTuple):
    """What one log contains: its events, its size in bytes, and a sentence on what was not read."""

    events: list[Event]
    size: int
    note: str
    first_time: float | None
    last_time: float | None


class Scanner:
    """Finds messages; ``extra`` are the user's records, which come first; at most ``most_alike`` are kept."""

    def __init__(self, extra: Iterable[Message] = (), most_alike: int = _MOST_ALIKE) -> None:
        own = tuple(extra)
        self._guard = Guard({message.id for message in own})
        self._messages = [
            (message, message.anchor, re.compile(message.pattern) if message.pattern else None)
            for message in (*own, *messages().values())
            if message.anchor
        ]
        words = (*WORDS, *(message.anchor for message in own))
        self._searches = (*(_finder(word) for word in words), *(_group(group) for group in GROUPS))
        self._codes, self._most_alike = codes(), most_alike

    def scan(self, path: str, file: int) -> Scan:
        """Return what a log contains; ``file`` is its index."""
        reader, events, last_block = LogReader(path), _Kept(self._most_alike), b""
        first: float | None = None
        is_first, left, note = True, _MOST_LINES, ""
        for block in reader.blocks():
            if is_first:
                first, is_first = time_in(block.data[:4096]), False
            starts = self._lines(block.data)
            events.add(self._events(block, starts[:left], file))
            last_block, left = block.data, left - len(starts)
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
            last_time_in(last_block[-4096:]),
        )

    def _lines(self, data: bytes) -> list[int]:
        """Return where the lines of a block begin that may have a message."""
        return sorted({data.rfind(b"\n", 0, at) + 1 for search in self._searches for at in search(data)})

    def _events(self, block: Block, starts: Sequence[int], file: int) -> Iterator[Event]:
        data, candidates = block.data, self._messages
        number, at = block.line, 0
        earlier, later = LastTime(data, _TIME_WITHIN), NextTime(data, _TIME_WITHIN)
        if len(starts) > _MANY_LINES:
            candidates = [one for one in candidates if one[1] in data]
        for start in starts:
            end = data.find(b"\n", start)
            line = data[start : end if 0 <= end < start + _MATCHED else start + _MATCHED]
            if (event := self._event(line, candidates)) is None:
                continue
            number, at = number + data.count(b"\n", at, start), start
            event = event._replace(file=file, line=number)
            yield _timed(event, line) or event._replace(
                after=earlier.before(start), before=later.after(start + len(line))
            )

    def event(self, line: bytes) -> Event | None:
        """Return the event of a line, without its place; None if no message matches."""
        return self._event(line, self._messages)

    def _event(self, line: bytes, candidates: Sequence[_Candidate]) -> Event | None:
        for message, anchor, pattern in candidates:
            if anchor not in line:
                continue
            found = self._guard.search(message, pattern, line) if pattern is not None else None
            if found is not None and not _is_plausible(found):
                continue
            if pattern is None or found is not None:
                if message.kind == "code" or message.id == _EXCEPTION:
                    by_code = self._of_code(line)
                    return self._made(by_code or message, None if by_code else found, line)
                return self._made(message, found, line)
        by_code = self._of_code(line)
        return self._made(by_code, None, line) if by_code is not None else None

    def _of_code(self, line: bytes) -> Message | None:
        """Return the message of the most telling code of a line: EI before 50xxxx before a number."""
        found = sorted(self._codes_in(line), key=lambda code: (code.isdigit(), -len(code)))
        return self._codes[found[0]] if found else None

    def _made(self, message: Message, found: re.Match[bytes] | None, line: bytes) -> Event:
        fields = {
            name: value.decode(errors="replace").strip()
            for name, value in (found.groupdict() if found else {}).items()
            if value
        }
        text = line[:_SHOWN].decode(errors="replace").strip()
        pid, program = process_in(line)
        return Event(
            message, fields, self._codes_in(line), 0, 0, None, pid, rank_in(line), text, program=program
        )

    def _codes_in(self, line: bytes) -> tuple[str, ...]:
        found = []
        for code, number, result, errno in _CODE.findall(line):
            if code:
                found.append(code.decode())
            elif b"ccl" in line or b"HCCL" in line:
                found.append(str(int(errno, 16) if errno else int(number or result)))
        return tuple(code for code in dict.fromkeys(found) if code in self._codes)


def _timed(event: Event, line: bytes) -> Event | None:
    """Return an event with the time in its line; None if the line has none."""
    time, is_yearless = time_in(line), False
    if time is None:
        time, is_yearless = syslog_time_in(line)
    return None if time is None else event._replace(time=time, is_yearless=is_yearless)


def _is_plausible(found: re.Match[bytes]) -> bool:
    """Whether the numbers of a line can be ranks, devices, ports or seconds: damaged logs have others."""
    return all(len(found[name] or b"") <= LONGEST_NUMBER for name in NUMBERS & found.re.groupindex.keys())


class _Kept:
    """The events of one log; of many alike only the first are kept."""

    def __init__(self, most_alike: int) -> None:
        self._most_alike = most_alike
        self.kept: list[Event] = []
        self._alike: dict[tuple[str, str, int | None, str], int] = {}

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            key = (event.message.id, event.pid, event.rank, event.fields.get("peer", ""))
            self._alike[key] = self._alike.get(key, 0) + 1
            if self._alike[key] <= self._most_alike and len(self.kept) < _MOST_EVENTS:
                self.kept.append(event)


def _finder(word: bytes) -> Callable[[bytes], Iterator[int]]:
    """Return a search for a word that yields one position per line."""

    def find(data: bytes) -> Iterator[int]:
        at = data.find(word)
        while at >= 0:
            yield at
            end = data.find(b"\n", at)
            at = data.find(word, end) if end >= 0 else -1

    return find


def _group(pattern: re.Pattern[bytes]) -> Callable[[bytes], Iterator[int]]:
    return lambda data: (found.start() for found in pattern.finditer(data))
