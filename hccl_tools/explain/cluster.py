"""Which rank wrote an event and which rank it names: what the logs, the run and the table say together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.explain import attempts, clocks, handled, identities, jobs, pod_events, slurm_rows
from hccl_tools.explain.events import Seen
from hccl_tools.explain.locations import Place, Places
from hccl_tools.explain.sources import host_folders, named_hosts
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hccl_tools.explain.attempts import Attempts
    from hccl_tools.explain.events import Event
    from hccl_tools.explain.identities import Groups, Key
    from hccl_tools.explain.jobs import Job
    from hccl_tools.explain.recorder_traces import Trace
    from hccl_tools.explain.sources import Source
    from hccl_tools.runs.evidence import HostEvidence


#: The limits that HCCL has if no line says otherwise, in seconds.
_CONNECT_SECONDS, _OPERATION_SECONDS = 120.0, 1836.0
#: Messages with the time limit for connections, and for operations.
_CONNECT, _OPERATION = "HCM324", "HCM325"
_CONNECT_WAITS = ("HCM222", "HCM224", "HCM225")
#: Waits for the root, which is rank 0 of the communicator.
_FOR_ROOT = {"HCM225", "HCM226", "HCM231"}
#: Why the end of a pod is not about this job.
_FORMER_POD = "a container of a pod of this name started after it: it is about the pod before"
#: Seconds between the lines around one without a time, within which its time is known.
_ABOUT = 2.0


class Cluster(NamedTuple):
    """All events of a job, and what is known about its ranks.

    Attributes:
        seen: The events in the order of time; those without a time are last.
        places: The known ranks.
        size: The number of ranks, 0 if unknown.
        logged: The ranks of which there is a log.
        notes: Sentences for the user.
        waits: The time limits in seconds by their names: ``connect``, ``operation``.
        others: The events that are not about this job.
        ends: The time of the last line of each source that has one, by its index.
        sources: The logs.
        ranks: The rank of each process that is known.
        ahead: By how many seconds the clock of the host of a source is ahead, by its index.
        traces: What the dumps of the flight recorders say.
        evidence: What hosts have found of their ranks before the end.
        attempts: Where the last attempt begins; None if all events may be of it.
    """

    seen: list[Seen]
    places: Places
    size: int
    logged: set[int]
    notes: list[str]
    waits: Mapping[str, float]
    others: Sequence[Seen] = ()
    ends: Mapping[int, float] = {}
    sources: Sequence[Source] = ()
    ranks: Mapping[Key, int] = {}
    ahead: Mapping[int, float] = {}
    traces: Sequence[Trace] = ()
    evidence: Sequence[HostEvidence] = ()
    attempts: Attempts | None = None


def build(
    events: Sequence[Event],
    sources: Sequence[Source],
    places: Places,
    size: int = 0,
    ends: Mapping[int, float] | None = None,
) -> Cluster:
    """Join the events of all logs.

    Args:
        places: What the table and the run say about the ranks; completed from the logs.
        size: The number of ranks, if the table or the run says it.
        ends: The time of the last line of each source that has one.
    """
    told = places.copy()
    built, job, said = _built(events, sources, places, size, ends or {})
    known = identities.identities(events, sources)
    foreign = {process: place for process, place in known.items() if process in job.others}
    if not foreign:
        return built
    # Processes of other jobs say that they are ranks, too, and have devices of their own.
    own = [one for one in events if identities.key(one, sources) not in job.others]
    again, _, more = _built(own, sources, told, size, ends or {}, foreign=foreign, others=job.others)
    return again._replace(notes=[*again.notes, *(one for one in said if one not in more)])


def _built(
    events: Sequence[Event],
    sources: Sequence[Source],
    places: Places,
    size: int,
    ends: Mapping[int, float],
    *,
    foreign: Mapping[Key, Place] | None = None,
    others: frozenset[Key] = frozenset(),
) -> tuple[Cluster, Job, list[str]]:
    """Join the events, and return the job that they are about, and a sentence on those of other jobs.

    Args:
        foreign: The places of processes of other jobs.
        others: All processes of other jobs.
    """
    sources = identities.without_wrong_ranks(events, sources)
    known = identities.identities(events, sources)
    for place in known.values():
        places.add(place)
    limits = _limits(events)
    folders = [
        folder or host for folder, host in zip(host_folders(sources), named_hosts(sources), strict=True)
    ]
    shifts, notes = clocks.shifts(events, sources, known, folders, limits)
    known_sizes = (_number(event.fields, "size") for event in events)
    sizes = [number for number in known_sizes if number is not None]
    reader = _Reader(
        sources,
        folders,
        known,
        places,
        identities.groups(events, sources),
        size=size or max(sizes, default=0),
    )
    seen = [one for event in events if (one := reader.read(event, shifts)) is not None]
    seen = slurm_rows.at_their_end(seen, sources)
    ahead = _ahead(seen, shifts, folders)
    ends = {file: end - ahead.get(file, 0.0) for file, end in ends.items()}
    tried = attempts.of(seen, sources)
    seen, earlier = _of_last_attempt(seen, tried)
    job, left_out, said = jobs.choose(seen, sources, ends, ahead, max(limits.values()))
    job = job.beside(job.others | others)
    left_out_ids = set(map(id, left_out))
    own, apart = _tied(
        [one for one in seen if id(one) not in left_out_ids], job, sources, ends, (foreign or {}, known)
    )
    own.sort(key=lambda one: (one.time is None, one.time or one.since or 0.0, one.event.file, one.event.line))
    logged = _logged(own, sources, known)
    size = reader.size or (len(logged) if logged == set(range(len(logged))) else 0)
    ranks = {process: place.rank for process, place in known.items() if place.rank is not None}
    built = Cluster(own, places, size, logged, [*notes, *said], limits, apart, ends, sources, ranks, ahead)
    return built._replace(others=[*earlier, *apart], attempts=tried), job, said


def _of_last_attempt(seen: Sequence[Seen], tried: Attempts) -> tuple[list[Seen], list[Seen]]:
    """Part the events into those of the last attempt and of earlier ones; all are own if nothing fails later.

    What the lines of earlier attempts say about the job itself still counts.
    """
    earlier = [
        one._replace(why=attempts.RESTARTED)
        for one in seen
        if one.event.message.kind not in {"fact", "end"} and tried.is_earlier(one)
    ]
    own = [one for one in seen if one.event.message.kind == "fact" or not tried.is_earlier(one)]
    has_failed = any(
        one.event.message.kind not in {"fact", "end"} and not handled.is_warning(one) for one in own
    )
    return (own, earlier) if has_failed else (list(seen), [])


def _logged(own: Iterable[Seen], sources: Sequence[Source], known: Mapping[Key, Place]) -> set[int]:
    """Return the ranks of which there is a log that would have their errors."""
    written = {identities.key(one.event, sources) for one in own if sources[one.event.file].has_errors}
    written |= {(source.group, source.pid) for source in sources if source.pid and source.has_errors}
    written |= _without_errors(sources, written)
    found = {known[process].rank for process in written if process in known}
    found |= {source.rank for source in sources if source.has_errors}
    return {rank for rank in found if rank is not None}


def _tied(
    seen: Iterable[Seen],
    job: Job,
    sources: Sequence[Source],
    ends: Mapping[int, float],
    known: tuple[Mapping[Key, Place], Mapping[Key, Place]],
) -> tuple[list[Seen], list[Seen]]:
    """Part the events into those that may be about the job, and the others with the reason.

    Args:
        known: The places of the processes of other jobs, and of this one.
    """
    theirs, ours = _Devices(known[0]), _Devices(known[1])
    seen = list(seen)
    last = job.end or max(
        (one.since for one in seen if one.since and not one.event.is_yearless), default=None
    )
    seen = [
        one._replace(time=(time := jobs.in_year(one.time, last)), since=time, until=time)
        if one.event.is_yearless and one.time is not None
        else one
        for one in seen
    ]
    messages = {one.event.message.id for one in seen}
    former, of_rows = pod_events.of_former(seen), slurm_rows.Objections(sources, ends)
    own: list[Seen] = []
    others: list[Seen] = []
    for one in seen:
        why = _FORMER_POD if id(one) in former else jobs.objection(one, job, sources, messages)
        if one.event.message.id in slurm_rows.ROWS:
            why = why or of_rows.to(one)
        path, device = sources[one.event.file].path, one.place.device
        if one.place.rank is None and not why and theirs.has(path, device) and not ours.has(path, device):
            why = f"device {one.place.device} is that of a process of another job"
        (others if why else own).append(one._replace(why=why))
    return own, others


def _ahead(seen: Iterable[Seen], shifts: Mapping[str, float], folders: Sequence[str]) -> dict[int, float]:
    hosts = {one.event.file: one.place.host for one in seen}
    found = {file: _shift(shifts, hosts.get(file, ""), folder) for file, folder in enumerate(folders)}
    return {file: shift for file, shift in found.items() if shift}


def _shift(shifts: Mapping[str, float], host: str, folder: str) -> float:
    """Return by how much the clock of a host is ahead, whose logs are in a folder."""
    return shifts.get(host, shifts.get(folder, 0.0))


def _without_errors(sources: Sequence[Source], written: Collection[Key]) -> set[Key]:
    """Return the processes with a run log and without another one, of hosts where most have both.

    The logs of errors were collected there, so that such a process has written none.
    """
    running: dict[str, set[Key]] = {}
    for source in sources:
        if source.pid and not source.has_errors:
            running.setdefault(source.group, set()).add((source.group, source.pid))
    return {
        process
        for processes in running.values()
        if 2 * len(processes & set(written)) > len(processes)
        for process in processes
    }


def _devices(
    sources: Sequence[Source], folders: Sequence[str], known: Mapping[Key, Place]
) -> dict[tuple[str, int], Place | None]:
    """Return the rank of each device of a host, by the folder with the logs of that host; None if several."""
    found: dict[tuple[str, int], Place | None] = {}
    for source, folder in zip(sources, folders, strict=True):
        place = known.get(source.process) if source.pid and folder else None
        if place is not None and place.rank is not None and place.device is not None:
            key = (folder, place.device)
            found[key] = place if found.get(key, place) == place else None
    return found


class _Devices:
    """The devices that some processes use, by the folders of the logs of their hosts."""

    def __init__(self, known: Mapping[Key, Place]) -> None:
        self._folders: dict[int, set[str]] = {}
        for (folder, _), place in known.items():
            if place.device is not None:
                self._folders.setdefault(place.device, set()).add(folder)

    def has(self, file: str, device: int | None) -> bool:
        """Whether a process of the host of a file uses a device."""
        folder = os.path.dirname(file)
        there = self._folders.get(device, ()) if device is not None else ()
        return any(one == folder or one.startswith(folder + os.sep) for one in there)


class _Reader:
    """Gives events their ranks and times."""

    def __init__(
        self,
        sources: Sequence[Source],
        folders: Sequence[str],
        known: Mapping[Key, Place],
        places: Places,
        groups: Groups,
        *,
        size: int,
    ) -> None:
        self._sources, self._known, self._places = sources, known, places
        self._groups, self.size = groups, size
        self._alone = identities.alone(known)
        self._of_folder = _devices(sources, folders, known)
        self._folders = folders

    def read(self, event: Event, shifts: Mapping[str, float]) -> Seen | None:
        """Return an event with its ranks; None if it is of a rank of which its host cannot have logs."""
        if (place := self._writer(event)) is None:
            return None
        shift = _shift(shifts, place.host, self._folders[event.file])
        group = self._groups.of(event)
        time, since, until = _times(event)
        return Seen(
            event,
            place,
            self._actor(event, place),
            self._peer(event, place, group),
            None if time is None else time - shift,
            None if since is None else since - shift,
            None if until is None else until - shift,
            group,
        )

    def _writer(self, event: Event) -> Place | None:
        source, fields = self._sources[event.file], event.fields
        rank = event.rank if event.rank is not None else source.rank
        if event.message.kind == "verdict" or event.message.id in identities.OF_SYSTEM:
            rank = None
        process = identities.key(event, self._sources)
        known = self._known.get(process, Place())
        if "pid" in fields:
            pid = fields["pid"]  # Of a process on the same host, else of the only one with this id.
            known = self._known.get((source.group, pid)) or self._alone.get(pid, Place())
        said = Place(rank, source.host, None, "").merged(known)
        own = Place(
            _number(fields, "rank"),
            fields.get("server", ""),
            _number(fields, "device"),
            fields.get("address", ""),
        )
        if own.rank is not None and said.rank is None and (there := self._places.at_device(own)) is not None:
            own = there  # The rank in the line is that in a group.
        if own.device is not None and own == Place(device=own.device) and said.rank is None and not said.host:
            own = self._of_folder.get((self._folders[event.file], own.device)) or own
        place = self._places.find(said.merged(own) if said.rank is not None else own.merged(said))
        if not place.host:
            place = place.merged(Place(None, source.host_folder, source.device_folder))
        if identities.can_be_from(source, place.rank):
            return place
        known = self._known.get(process, Place())
        place = self._places.find(Place(source.rank, source.host).merged(known))
        return place if place.rank is not None else None

    def _actor(self, event: Event, place: Place) -> str:
        if place.rank is not None:
            return f"rank {place.rank}"
        if place.host and place.device is not None:
            return f"{place.host}/{place.device}"
        return "/".join(identities.key(event, self._sources))

    def _peer(self, event: Event, place: Place, group: str) -> Place | None:
        fields = event.fields
        if "self" in fields:
            return place
        peer = Place(
            _number(fields, "peer"),
            fields.get("peer_server", ""),
            _number(fields, "peer_device"),
            fields.get("peer_address", ""),
        )
        if event.message.id in _FOR_ROOT and peer.rank is None and place.rank != 0:
            peer = self._places.find(Place(self._in_job(0, group)))._replace(address=peer.address)
        if (there := self._places.at_device(peer)) is not None:
            return there
        if peer.rank is not None and event.message.kind != "verdict":
            peer = peer._replace(rank=self._in_job(peer.rank, group))
        if peer.rank is not None and peer.host and peer.device is not None:
            self._places.add(peer)  # Its own log may be missing.
        return None if peer == Place() else self._places.find(peer)

    def _in_job(self, rank: int, group: str) -> int | None:
        """Return the rank in the job of a rank of a communicator; None if that is unknown."""
        process = self._groups.members.get(group, {}).get(rank)
        if process is not None and process in self._known:
            return self._known[process].rank
        size = self._groups.sizes.get(group, self.size)
        return rank if size >= self.size else None


def _number(fields: Mapping[str, str], name: str) -> int | None:
    return whole_number(fields.get(name, ""))


def _times(event: Event) -> tuple[float | None, float | None, float | None]:
    """Return the time of an event, and the earliest and the latest one that it can have."""
    if event.time is not None:
        return event.time, event.time, event.time
    after, before = event.after, event.before
    if after is not None and before is not None and after <= before:
        return (after if before - after <= _ABOUT else None), after, before
    if after is not None and before is not None and event.rank is not None:
        return None, None, None  # The blocks of several ranks stand in the order in which they ended.
    return None, after, before if after is None else None


def _limits(events: Sequence[Event]) -> dict[str, float]:
    return {
        "connect": _limit(events, _CONNECT, _CONNECT_SECONDS),
        "operation": _limit(events, _OPERATION, _OPERATION_SECONDS),
    }


def _limit(events: Iterable[Event], message: str, default: float) -> float:
    named = [
        float(seconds)
        for event in events
        if event.message.id == message or (message == _CONNECT and event.message.id in _CONNECT_WAITS)
        if (seconds := _number(event.fields, "timeout")) is not None
    ]
    return max(named, default=default)


class RanksOfFiles:
    """Finds the ranks of the host of a file by the folders of all logs, which are walked once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of_folder: dict[str, set[int]] = {}
        for source in cluster.sources:
            rank = source.rank if source.rank is not None else cluster.ranks.get(source.process)
            if rank is not None and source.is_file:
                for folder in _upwards(os.path.dirname(source.path)):
                    self._of_folder.setdefault(folder, set()).add(rank)
        self._all = set().union(*self._of_folder.values())
        known = cluster.places.by_rank
        self._hosts = {known[rank].host for rank in self._all & known.keys()} - {""}

    def ranks(self, file: int) -> frozenset[int]:
        """Return the ranks of the host of a file; none if that is not known, as of a folder with all logs."""
        source = self._cluster.sources[file]
        if source.host:
            known = self._cluster.places.by_rank
            named = frozenset(rank for rank, place in known.items() if place.host == source.host)
            if named:
                return named
        for folder in _upwards(os.path.dirname(source.path)) if source.is_file else ():
            if found := self._of_folder.get(folder):
                is_one_host = found != self._all or len(self._hosts) == 1
                return frozenset(found) if is_one_host else frozenset()
        return frozenset()


def _upwards(folder: str) -> list[str]:
    """Return a folder and those above it."""
    found = [folder]
    while (above := os.path.dirname(found[-1])) and above != found[-1]:
        found.append(above)
    return found
