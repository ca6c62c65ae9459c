"""The logs of a run on other hosts: each host searches its own logs and sends the messages that it found."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from hccl_tools import codec
from hccl_tools.codec import DecodeError
from hccl_tools.errors import HcclToolsError
from hccl_tools.explain import recorder_traces
from hccl_tools.explain.events import Event
from hccl_tools.explain.identities import IDENTITIES
from hccl_tools.explain.knowledge.pattern_fields import is_number, pattern_fields
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.recorder_traces import Trace  # noqa: TC001  (the codec looks it up)
from hccl_tools.explain.scanner import LONGEST_NUMBER, NUMBERS, Scanner
from hccl_tools.explain.sources import Source, collect
from hccl_tools.processes import run_files
from hccl_tools.records import Count, Index, NamedTuple, OsText, Seconds, Size, to_json
from hccl_tools.runs import remote
from hccl_tools.runs.evidence import HostEvidence  # noqa: TC001  (the codec looks it up)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hccl_tools.runs.index import Run

#: Seconds for all hosts to answer; those that do not are named in a note.
_SECONDS = 120.0
#: Messages of an answer, which the codec bounds too.
_MOST_EVENTS = 100_000
#: Seconds since the epoch: times in logs begin with 20.
_LATEST = 4_102_444_800.0


class Fetched(NamedTuple):
    """What other hosts have found; the files of the events are indices of ``sources``."""

    sources: list[Source]
    events: list[Event]
    notes: list[str]
    traces: Sequence[Trace] = ()
    evidence: Sequence[HostEvidence] = ()


class FoundLog(NamedTuple):
    """A log on the host that answers; see ``Source``."""

    path: OsText
    rank: Index | None
    pid: OsText
    group: OsText

    def source(self, host: str, ranks: Collection[int]) -> Source:
        """Return the log as one of another host: a file of the same name here is another one."""
        return Source(
            "", f"{host}:{self.path}", self.rank, self.pid, f"{host}:{self.group}", host, ranks, is_run=True
        )


class FoundEvent(NamedTuple):
    """An event with the id of its message; see ``Event``."""

    message: str
    fields: Mapping[str, OsText]
    codes: tuple[str, ...]
    file: Count
    line: Size
    time: Seconds | None
    pid: OsText
    rank: Index | None
    text: OsText
    after: Seconds | None
    before: Seconds | None
    program: OsText
    is_yearless: bool

    def check(self) -> str:
        """Return what is wrong with the fields, "" if nothing is."""
        if self.message not in messages():
            return f"message: {codec.shown(self.message)} is not known"
        if self.message in IDENTITIES:
            named = NUMBERS & re.compile(messages()[self.message].pattern).groupindex.keys()
            if missing := sorted(named - self.fields.keys()):
                return f"fields: {missing[0]} is missing"
        if problem := self._why_fields_are_wrong():
            return problem
        times = ("time", self.time), ("after", self.after), ("before", self.before)
        late = [name for name, time in times if (time or 0.0) > _LATEST]
        return f"{late[0]}: it is after the year 2099" if late else ""

    def _why_fields_are_wrong(self) -> str:
        """Return why no line with this message has these fields, "" if one can have them."""
        message = messages()[self.message]
        known = pattern_fields(message.pattern)
        # The code alone may tell the message of a line: its pattern has not matched then.
        is_by_code = bool(self.codes and message.codes)
        if not is_by_code and (missing := sorted(known.required - self.fields.keys())):
            return f"fields: {missing[0]} is missing"
        limits = {**known.numbers, **dict.fromkeys(NUMBERS, LONGEST_NUMBER)}
        for name in sorted(limits.keys() & self.fields.keys()):
            text = self.fields[name]
            if not is_number(text, limits[name]) or (name in NUMBERS and text.startswith("-")):
                return f"fields[{name}]: {codec.shown(text)} is not a number of up to {limits[name]} digits"
        return ""

    def event(self) -> Event:
        """Return the event of a log on another host."""
        return Event(messages()[self.message], *self[1:])


class HostLogs(NamedTuple):
    """What a host has found in its logs."""

    sources: tuple[FoundLog, ...]
    events: tuple[FoundEvent, ...]
    notes: tuple[OsText, ...]
    traces: tuple[Trace, ...] = ()
    evidence: tuple[HostEvidence, ...] = ()


def serve(path: str) -> None:
    """Print the messages in the logs below a run directory of this host, as JSON on one line.

    Raises:
        InputError: There is no such directory on this host.
    """
    with suppress(OSError):
        run_files.hold(path)
    found, notes = collect([path])
    logs = [one for one in found if not one.is_dump]
    dumps = recorder_traces.read(one for one in found if one.is_dump)
    notes += dumps.notes
    scanner, events = Scanner(), []
    for index, log in enumerate(logs):
        scan = scanner.scan(log.path, index)
        events += [FoundEvent(event.message.id, *event[1:]) for event in scan.events]
        notes += [scan.note] if scan.note else []
    if len(events) > _MOST_EVENTS:
        notes.append(f"only the first {_MOST_EVENTS:,} of {len(events):,} messages were sent")
    sent = tuple(FoundLog(log.path, log.rank, log.pid, log.group) for log in logs)
    answer = HostLogs(
        sent, tuple(events[:_MOST_EVENTS]), tuple(notes), tuple(dumps.traces), tuple(dumps.evidence)
    )
    sys.stdout.write(to_json(answer).decode() + "\n")


def fetch(run: Run, ranks: Mapping[str, Collection[int]], typed_ssh: str | None = None) -> Fetched:
    """Search the logs of some ranks of a run on their hosts, all at the same time.

    Where the hosts share a disk, a host finds the logs of other ranks too; they are not its own. A host that
    cannot be reached, has another version or does not answer in time costs a note.
    """
    fetched = Fetched([], [], [])
    traces: list[Trace] = []
    evidence: list[HostEvidence] = []
    with ExitStack() as connections:
        readers: dict[str, remote.RemoteLogs] = {}
        for host in ranks:
            reader = _start(run, host, typed_ssh, fetched.notes)
            if reader is not None:
                readers[host] = reader
                connections.callback(reader.close)
        for host, answer in remote.read(readers, _SECONDS).items():
            if answer.problem:
                fetched.notes.append("; ".join(filter(None, (answer.problem, answer.hint))))
                continue
            try:
                found = codec.from_json(HostLogs, answer.data)
            except DecodeError as error:
                fetched.notes.append(f"the answer of {host} cannot be read: {error.message}")
                continue
            _add(fetched, host, ranks[host], found)
            traces += [
                one._replace(shown=f"{host}:{one.shown}") for one in found.traces if one.rank in ranks[host]
            ]
            evidence += [_own(one, ranks[host]) for one in found.evidence]
    return fetched._replace(traces=traces, evidence=evidence)


def _own(evidence: HostEvidence, ranks: Collection[int]) -> HostEvidence:
    """Return what evidence says about the ranks of its host: on a shared disk it is that of all hosts."""
    return evidence._replace(ranks=tuple(one for one in evidence.ranks if one.rank in ranks))


def _start(run: Run, host: str, typed_ssh: str | None, notes: list[str]) -> remote.RemoteLogs | None:
    try:
        return remote.run_there(run, host, ["explain", remote.SERVE], typed_ssh)
    except HcclToolsError as error:
        note = f"{error.message}; {error.hint}" if error.hint else error.message
        notes += [note] if note not in notes[-1:] else []  # A reason of the run is that of all hosts.
        return None


def _add(fetched: Fetched, host: str, ranks: Collection[int], found: HostLogs) -> None:
    """Add what a host has found in the logs of its ranks."""
    own = [index for index, log in enumerate(found.sources) if log.rank is None or log.rank in ranks]
    places = {index: len(fetched.sources) + place for place, index in enumerate(own)}
    fetched.sources.extend(found.sources[index].source(host, ranks) for index in own)
    fetched.events.extend(
        event.event()._replace(file=places[event.file]) for event in found.events if event.file in places
    )
    fetched.notes.extend(f"{host}: {note}" for note in found.notes)
