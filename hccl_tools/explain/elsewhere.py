"""The logs of a run on other hosts: each host searches its own logs and sends the messages that it found."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import HcclToolsError
from hccl_tools.explain.events import Event
from hccl_tools.explain.scanner import Scanner
from hccl_tools.explain.sources import Source, collect
from hccl_tools.knowledge.registry import messages
from hccl_tools.launch import run_files
from hccl_tools.launch.logs import remote
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hccl_tools.launch.runs.index import Run

#: Seconds for all hosts to answer; those that do not are named in a note.
_SECONDS = 120.0
#: Bytes of an answer; 20,000 events have about 10 MB.
_LARGEST = 1 << 26
#: Seconds between two looks at the answers.
_PAUSE = 0.05


class Fetched(NamedTuple):
    """What other hosts have found; the files of the events are indices of ``sources``."""

    sources: list[Source]
    events: list[Event]
    notes: list[str]


def serve(path: str) -> None:
    """Print the messages in the logs below a run directory of this host, as JSON on one line.

    Raises:
        InputError: There is no such directory on this host.
    """
    with suppress(OSError):
        run_files.hold(path)
    logs, notes = collect([path])
    scanner, events = Scanner(), []
    for index, log in enumerate(logs):
        scan = scanner.scan(log.path, index)
        events += [[event.message.id, *event[1:]] for event in scan.events]
        notes += [scan.note] if scan.note else []
    found = [[log.path, log.rank, log.pid, log.group] for log in logs]
    sys.stdout.write(json.dumps({"sources": found, "events": events, "notes": notes}) + "\n")


def fetch(run: Run, ranks: Mapping[str, Collection[int]], typed_ssh: str | None = None) -> Fetched:
    """Search the logs of some ranks of a run on their hosts, all at the same time.

    Where the hosts share a disk, a host finds the logs of other ranks too; they are not its own. A host that
    cannot be reached, has another version or does not answer in time costs a note.
    """
    fetched = Fetched([], [], [])
    with ExitStack() as connections:
        readers: dict[str, remote.RemoteLogs] = {}
        for host in ranks:
            reader = _start(run, host, typed_ssh, fetched.notes)
            if reader is not None:
                readers[host] = reader
                connections.callback(reader.close)
        answers = dict.fromkeys(readers, b"")
        deadline = time.monotonic() + _SECONDS
        while waiting := [host for host, reader in readers.items() if not reader.ended]:
            if time.monotonic() > deadline:
                break
            got = [_more(readers[host], host, answers) for host in waiting]
            if not any(got):
                time.sleep(_PAUSE)
        for host, reader in readers.items():
            if reader.error is not None:
                fetched.notes.append(f"{reader.error.message}; {reader.error.hint}")
            elif not reader.ended:
                fetched.notes.append(f"{host} did not send its part of the logs within {_SECONDS:.0f} s")
            elif not _add(fetched, host, ranks[host], answers[host]):
                fetched.notes.append(f"{host} sent an answer that this version does not understand")
    return fetched


def _start(run: Run, host: str, typed_ssh: str | None, notes: list[str]) -> remote.RemoteLogs | None:
    try:
        return remote.run_there(run, host, ["explain", remote.SERVE], typed_ssh)
    except HcclToolsError as error:
        notes.append(f"{error.message}; {error.hint}" if error.hint else error.message)
        return None


def _more(reader: remote.RemoteLogs, host: str, answers: dict[str, bytes]) -> bool:
    data = reader.read(last=False)
    if len(answers[host]) + len(data) <= _LARGEST:
        answers[host] += data
    return bool(data)


def _add(fetched: Fetched, host: str, ranks: Collection[int], answer: bytes) -> bool:
    """Add what a host has found in the logs of its ranks; return False if this version cannot read it."""
    known = messages()
    try:
        value: Any = json.loads(answer)
        logs = [
            Source(path, f"{host}:{path}", rank, pid, f"{host}:{group}", host)
            for path, rank, pid, group in value["sources"]
        ]
        own = [index for index, log in enumerate(logs) if log.rank is None or log.rank in ranks]
        places = {index: len(fetched.sources) + place for place, index in enumerate(own)}
        events = [
            Event(known[record[0]], *record[1:])._replace(file=places[record[3]])
            for record in value["events"]
            if record[3] in places
        ]
        notes = [f"{host}: {note}" for note in value["notes"]]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return False
    # The path is one of the other host: a file of the same name here is another one.
    fetched.sources.extend(logs[index]._replace(path="") for index in own)
    fetched.events.extend(event._replace(codes=tuple(event.codes)) for event in events)
    fetched.notes.extend(notes)
    return True
