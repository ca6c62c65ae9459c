"""Who a process is: its rank, host and device, and its rank in each communicator."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.explain.locations import Place
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.explain.events import Event
    from hccl_tools.explain.sources import Source

#: Messages that say which rank, host and device a process is.
IDENTITY = ("HCM320", "HCM321", "HCM322", "HCM308")
SETUP, COMMUNICATOR = "HCM321", "HCM323"
_LOCAL, _GROUP = "HCM322", "HCM308"
#: A rank has joined a communicator, which it may have made with a table: no other line may name its rank.
JOINED = "HCM328"
#: The messages that say who a process is: a line has all numbers of their patterns.
#: Messages that name the process of a rank, in one line or, with torchrun's table, in two.
_OF_LAUNCHERS = ("HCM329", "HCM330", "HCM331", "HCM332", "HCM720", "HCM724")
IDENTITIES = (*IDENTITY, JOINED, COMMUNICATOR, *_OF_LAUNCHERS)
#: A launcher names the process of a rank; torchrun does so in two lines of a table.
STARTED, _FAILED_RANK, _EXIT_CODE = "HCM329", "HCM720", "HCM724"
_STARTED = (STARTED, "HCM330", "HCM331")
#: DeepSpeed names the local rank, which is the rank if no prefix of the line names one of several hosts.
_STARTED_LOCALLY = "HCM332"
#: Lines between the rank and the process in that table.
_TABLE_WITHIN = 4
#: Slurm's lines about the end of a job.
OF_SLURM = {
    *("HCM710", "HCM711", "HCM712", "HCM713", "HCM716", "HCM991"),
    *("HCM757", "HCM758", "HCM918", "HCM919", "HCM925", "HCM926"),
}
#: Lines of the output of tools beside the logs that show a fault.
STATES = (*(f"HCM{number}" for number in range(870, 886)), "HCM992")
#: Lines of the kernel, Kubernetes and Slurm: no rank wrote them, whatever the name of their file.
OF_SYSTEM = {
    *OF_SLURM,
    *(
        "HCM750",
        "HCM751",
        "HCM752",
        "HCM753",
        "HCM754",
        "HCM971",
        "HCM974",
        "HCM975",
        "HCM986",
        "HCM987",
        "HCM988",
    ),
    *(f"HCM{number}" for number in (*range(900, 911), 930, 931, 932)),
    *("HCM801", "HCM802", "HCM809", "HCM814", "HCM815", "HCM816", "HCM817", "HCM818", "HCM819", "HCM929"),
    *STATES,
}
#: ``workerlog.3`` of paddle.distributed.launch.
_OF_PADDLE = re.compile(r"(?:^|/)workerlog\.\d{1,6}(?=$|\.)")
_NUMBER = re.compile(r"\d+")
#: Lines between two lines of one failure, one of which names the communicator.
_NEAR = 8

#: A process: the folder of its host's logs, and its id, or the path of its log.
Key = tuple[str, str]


class Groups(NamedTuple):
    """The communicators of a job.

    Attributes:
        members: The processes of each one, by their rank in it.
        sizes: The numbers of ranks.
        named: The lines that name a communicator, by file and process: line and identifier.
    """

    members: Mapping[str, Mapping[int, Key]]
    sizes: Mapping[str, int]
    named: Mapping[tuple[int, str], Sequence[tuple[int, str]]]

    def of(self, event: Event) -> str:
        """Return the communicator of an event, by its tag or by a line beside it; "" if unknown."""
        own = self.of_tag(event.fields.get("tag", ""))
        if own:
            return own
        near = [
            (abs(line - event.line), group)
            for line, group in self.named.get((event.file, event.pid), ())
            if abs(line - event.line) <= _NEAR
        ]
        return min(near, default=(0, ""))[1]

    def of_tag(self, tag: str) -> str:
        """Return the communicator in a tag: ``AllReduce_`` and the identifier."""
        group = tag.partition("_")[2]
        return group if group in self.members else ""


def key(event: Event, sources: Sequence[Source]) -> Key:
    """Return the process that wrote an event."""
    source = sources[event.file]
    return (source.group or source.path, source.pid or event.pid or source.path)


def without_wrong_ranks(events: Sequence[Event], sources: Sequence[Source]) -> list[Source]:
    """Return the sources, without numbers that are not ranks: ``worker-3`` may be a host of eight.

    The lines of the largest communicator have the ranks of the job.
    """
    known = [one for one in events if one.message.id in (*IDENTITY, JOINED) and "size" in one.fields]
    largest = max((int(one.fields["size"]) for one in known), default=0)
    said: dict[int, set[str]] = {}
    for one in known:
        rank = sources[one.file].rank
        if rank is not None and int(one.fields["size"]) == largest:
            said.setdefault(rank, set()).add(one.fields["rank"])
    wrong = {rank for rank, others in said.items() if len(others) > 1}
    local = _with_local_ranks(sources) | _with_other_prefixes(events, sources)
    return [one._replace(rank=None) if one.rank in wrong or one.path in local else one for one in sources]


def _with_other_prefixes(events: Sequence[Event], sources: Sequence[Source]) -> set[str]:
    """Return the logs of programs named like one whose lines all have prefixes of other ranks.

    Their numbers are those of pods or hosts.
    """
    prefixes: dict[int, set[int]] = {}
    for one in events:
        source = sources[one.file]
        if source.rank is not None and one.rank is not None and source.is_program_log and not source.is_run:
            prefixes.setdefault(one.file, set()).add(one.rank)
    wrong = {
        _NUMBER.sub("0", sources[file].path)
        for file, ranks in prefixes.items()
        if sources[file].rank not in ranks
    }
    return {one.path for one in sources if one.rank is not None and _NUMBER.sub("0", one.path) in wrong}


def _with_local_ranks(sources: Sequence[Source]) -> set[str]:
    """Return the logs that paddle's launcher names by the rank on their host, if hosts share a number."""
    named = [
        one for one in sources if one.rank is not None and _OF_PADDLE.search(one.path) and not one.is_run
    ]
    folders: dict[int | None, set[str]] = {}
    for one in named:
        folders.setdefault(one.rank, set()).add(one.group or os.path.dirname(one.path))
    is_local = any(len(several) > 1 for several in folders.values())
    return {one.path for one in named} if is_local else set()


def _is_server_the_root_s(events: Sequence[Event]) -> bool:
    """Whether CANN 8's lines about the ranks have the host of the root: a device is there twice then."""
    ranks: dict[tuple[str, str, str], set[str]] = {}
    for one in events:
        if one.message.id == SETUP:
            fields = one.fields
            if not fields.get("identifier", "").startswith(f"{fields.get('server', '')}%"):
                return False
            at = (fields.get("identifier", ""), fields["size"], fields["device"])
            ranks.setdefault(at, set()).add(fields["rank"])
    return any(len(several) > 1 for several in ranks.values())


def identities(events: Sequence[Event], sources: Sequence[Source]) -> dict[Key, Place]:
    """Return the place of each process: its rank in the largest communicator that it names."""
    best: dict[Key, tuple[int, Place]] = {}
    sizes: dict[Key, int] = {}
    is_root_s = _is_server_the_root_s(events)
    for event in events:
        process = key(event, sources)
        if event.message.id == COMMUNICATOR:
            sizes[process] = int(event.fields["size"])
        elif event.message.id in (*IDENTITY, JOINED):
            fields = event.fields
            size = int(fields.get("size") or sizes.get(process, 0))
            source = sources[event.file]
            rank = source.rank if source.rank is not None else int(fields["rank"])
            if not can_be_from(source, rank):
                continue
            device = int(fields["device"]) if "device" in fields else None
            host = "" if is_root_s and event.message.id == SETUP else fields.get("server", "")
            place = Place(rank, host or source.host, device, fields.get("address", ""))
            former = best.get(process)
            if former is None or size > former[0]:
                best[process] = (size, place.merged(former[1]) if former else place)
            elif size == former[0] or (not size and _is_same(former[1], place)):
                best[process] = (former[0], former[1].merged(place))
    found = {process: place for process, (_, place) in best.items()}
    return {**_of_launchers(events, sources, found), **found}


def _is_same(known: Place, local: Place) -> bool:
    """Whether a line without the size of its communicator is about the same rank and device."""
    return known.rank == local.rank and local.address != "" and known.address == local.address


def _of_launchers(
    events: Sequence[Event], sources: Sequence[Source], known: Mapping[Key, Place]
) -> dict[Key, Place]:
    """Return the ranks of processes that do not say theirs, by the lines of launchers and of their logs."""
    processes: dict[str, dict[Key, None]] = {}
    for one in sources:
        if one.pid and one.process not in known:
            processes.setdefault(one.pid, {})[one.process] = None
    told = {pid for _, pid in known}
    said: dict[Key, dict[int, str]] = {}
    for event, pid, rank in _started(events):
        source = sources[event.file]
        folder = source.group or source.path
        process: Key | None = None if pid in told else (folder, pid)
        if pid in processes:
            process = _nearest(list(processes[pid]), folder)
        if process is not None and can_be_from(source, rank):
            said.setdefault(process, {})[rank] = source.host
    ranks = Counter(rank for several in said.values() for rank in several)
    return {
        process: Place(rank, host)
        for process, several in said.items()
        for rank, host in several.items()
        if len(several) == 1 and ranks[rank] == 1
    }


def _nearest(processes: Sequence[Key], group: str) -> Key | None:
    """Return the process whose folder is nearest to that of a launcher's log; None if several are as near."""
    if len(processes) < 2:
        return processes[0] if processes else None
    own = group.split(os.sep)
    near = Counter({one: _shared(one[0].split(os.sep), own) for one in processes})
    (first, depth), (_, second) = near.most_common(2)
    return first if depth > second else None


def _shared(folder: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of parts that the beginnings of two paths share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(folder, other, strict=False)))


def _started(events: Sequence[Event]) -> Iterator[tuple[Event, str, int]]:
    """Yield the processes that launchers name with their ranks."""
    rows: dict[int, Event] = {}
    for event in events:
        fields = event.fields
        if event.message.id in _STARTED:
            yield event, fields["pid"], int(fields["rank"])
        elif event.message.id == _STARTED_LOCALLY and "server" not in fields:
            yield event, fields["pid"], int(fields["logical"])
        elif event.message.id == _FAILED_RANK:
            rows[event.file] = event
        elif event.message.id == _EXIT_CODE:
            row = rows.get(event.file)
            if row is not None and 0 <= event.line - row.line <= _TABLE_WITHIN:
                yield event, fields["pid"], int(row.fields["rank"])


def groups(events: Sequence[Event], sources: Sequence[Source]) -> Groups:
    """Return the communicators that the lines name."""
    members: dict[str, dict[int, Key]] = {}
    sizes: dict[str, int] = {}
    named: dict[tuple[int, str], list[tuple[int, str]]] = {}
    current: dict[Key, str] = {}
    for event in events:
        process, fields = key(event, sources), event.fields
        if event.message.id == COMMUNICATOR:
            current[process] = fields.get("identifier", "")
            sizes[current[process]] = int(fields["size"])
        elif event.message.id in (*IDENTITY, JOINED):
            group = fields.get("identifier", "") or (
                current.get(process, "") if event.message.id == _LOCAL else ""
            )
            if not group:
                continue
            members.setdefault(group, {}).setdefault(int(fields["rank"]), process)
            if "size" in fields:
                sizes[group] = int(fields["size"])
            if event.message.id == _GROUP:
                named.setdefault((event.file, event.pid), []).append((event.line, group))
    for event in events:
        if event.message.limit == "watchdog":
            continue  # The tag is an operation of torch, such as _ALLGATHER_BASE, without a communicator.
        if group := event.fields.get("tag", "").partition("_")[2]:
            named.setdefault((event.file, event.pid), []).append((event.line, group))
    return Groups(members, sizes, named)


def alone(known: Mapping[Key, Place]) -> dict[str, Place]:
    """Return the places of the processes whose ids no other process has, by id."""
    counted = Counter(pid for _, pid in known)
    return {pid: place for (_, pid), place in known.items() if counted[pid] == 1}


def can_be_from(source: Source, rank: int | None) -> bool:
    """Whether a rank can have written a log: another host, which may lie, speaks for its own ranks only."""
    return source.ranks is None or rank is None or rank in source.ranks
