"""Which rank wrote an event and which rank it names: what the logs, the run and the table say together."""

from __future__ import annotations

from collections import Counter
from statistics import median_low
from typing import TYPE_CHECKING

from hccl_tools.explain.places import Place, Places
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.explain.events import Event
    from hccl_tools.explain.sources import Source

#: Seconds by which the clocks of two hosts may differ without a note.
_CLOCK_TOLERANCE = 5.0
#: Messages that say which rank, host and device a process is.
_IDENTITY = ("HCM320", "HCM321", "HCM322", "HCM308")
_SETUP, _COMMUNICATOR = "HCM321", "HCM323"
#: A rank has joined a communicator, which it may have made with a table: no other line may name its rank.
_JOINED = "HCM328"
#: The messages that say who a process is: a line has all numbers of their patterns.
IDENTITIES = (*_IDENTITY, _JOINED, _COMMUNICATOR)
#: Messages with the time limit for connections, and for operations.
_CONNECT, _OPERATION = "HCM324", "HCM325"
_CONNECT_WAITS = ("HCM222", "HCM224", "HCM225")


class Seen(NamedTuple):
    """An event with its ranks.

    Attributes:
        event: The event.
        place: Who wrote it.
        actor: Who wrote it, as a key: two events with equal keys come from one process or rank.
        peer: The other rank, empty if the line names none.
        time: Its time, corrected by the clock of its host; None if unknown.
    """

    event: Event
    place: Place
    actor: str
    peer: Place | None = None
    time: float | None = None


class Cluster(NamedTuple):
    """All events of a job, and what is known about its ranks.

    Attributes:
        seen: The events in the order of time; those without a time are last.
        places: The known ranks.
        size: The number of ranks, 0 if unknown.
        logged: The ranks of which there is a log.
        notes: Sentences for the user.
        waits: The time limits in seconds that the logs name: for connections, for operations.
    """

    seen: list[Seen]
    places: Places
    size: int
    logged: set[int]
    notes: list[str]
    waits: tuple[float, float]


def build(events: Sequence[Event], sources: Sequence[Source], places: Places, size: int = 0) -> Cluster:
    """Join the events of all logs.

    Args:
        places: What the table and the run say about the ranks; completed from the logs.
        size: The number of ranks, if the table or the run says it.
    """
    sources = _without_wrong_ranks(events, sources)
    identities = _identities(events, sources)
    for known in identities.values():
        places.add(known)
    shifts, notes = _clock_shifts(events, sources, identities)
    alone = _alone(identities)
    seen = []
    for event in events:
        if (place := _writer(event, sources, identities, alone, places)) is None:
            continue
        shift = shifts.get(place.host, 0.0)
        time = None if event.time is None else event.time - shift
        seen.append(Seen(event, place, _actor(event, place, sources), _peer(event, places), time))
    seen.sort(key=lambda one: (one.time is None, one.time or 0.0, one.event.file, one.event.line))
    sizes = [int(event.fields["size"]) for event in events if event.fields.get("size", "").isdigit()]
    logged = {source.rank for source in sources if source.rank is not None}
    logged |= {known.rank for known in identities.values() if known.rank is not None}
    limits = _limit(events, _CONNECT, 120.0), _limit(events, _OPERATION, 1836.0)
    return Cluster(seen, places, size or max(sizes, default=0), logged, notes, limits)


def _key(event: Event, sources: Sequence[Source]) -> tuple[str, str]:
    source = sources[event.file]
    return (source.group or source.path, source.pid or event.pid or source.path)


def _without_wrong_ranks(events: Sequence[Event], sources: Sequence[Source]) -> list[Source]:
    """Return the sources without ranks that are no ranks: ``worker-3`` may be a host with eight processes.

    The lines of the largest communicator have the ranks of the job.
    """
    known = [one for one in events if one.message.id in (*_IDENTITY, _JOINED) and "size" in one.fields]
    largest = max((int(one.fields["size"]) for one in known), default=0)
    said: dict[int, set[str]] = {}
    for one in known:
        rank = sources[one.file].rank
        if rank is not None and int(one.fields["size"]) == largest:
            said.setdefault(rank, set()).add(one.fields["rank"])
    wrong = {rank for rank, others in said.items() if len(others) > 1}
    return [one._replace(rank=None) if one.rank in wrong else one for one in sources]


def _is_server_the_root_s(events: Sequence[Event]) -> bool:
    """Whether CANN 8's lines about the ranks have the host of the root: a device is there twice then."""
    ranks: dict[tuple[str, str, str], set[str]] = {}
    for one in events:
        if one.message.id == _SETUP:
            fields = one.fields
            if not fields.get("identifier", "").startswith(f"{fields.get('server', '')}%"):
                return False
            key = (fields.get("identifier", ""), fields["size"], fields["device"])
            ranks.setdefault(key, set()).add(fields["rank"])
    return any(len(several) > 1 for several in ranks.values())


def _identities(events: Sequence[Event], sources: Sequence[Source]) -> dict[tuple[str, str], Place]:
    """Return the place of each process: its rank in the largest communicator that it names."""
    best: dict[tuple[str, str], tuple[int, Place]] = {}
    sizes: dict[tuple[str, str], int] = {}
    is_root_s = _is_server_the_root_s(events)
    for event in events:
        key = _key(event, sources)
        if event.message.id == _COMMUNICATOR:
            sizes[key] = int(event.fields["size"])
        elif event.message.id in (*_IDENTITY, _JOINED):
            fields = event.fields
            size = int(fields.get("size") or sizes.get(key, 0))
            source = sources[event.file]
            rank = source.rank if source.rank is not None else int(fields["rank"])
            if not _can_be_from(source, rank):
                continue
            device = int(fields["device"]) if "device" in fields else None
            host = "" if is_root_s and event.message.id == _SETUP else fields.get("server", "")
            place = Place(rank, host or source.host, device, fields.get("address", ""))
            former = best.get(key)
            if former is None or size > former[0]:
                best[key] = (size, place.merged(former[1]) if former else place)
            elif size == former[0]:
                best[key] = (size, former[1].merged(place))
    return {key: place for key, (_, place) in best.items()}


def _alone(identities: Mapping[tuple[str, str], Place]) -> dict[str, Place]:
    """Return the places of the processes whose ids no other process has, by id."""
    counted = Counter(pid for _, pid in identities)
    return {pid: place for (_, pid), place in identities.items() if counted[pid] == 1}


def _writer(
    event: Event,
    sources: Sequence[Source],
    identities: Mapping[tuple[str, str], Place],
    alone: Mapping[str, Place],
    places: Places,
) -> Place | None:
    """Return who wrote an event; None if it is a rank of which its host cannot have logs."""
    source, fields = sources[event.file], event.fields
    rank = event.rank if event.rank is not None else source.rank
    if event.message.kind == "verdict":
        rank = None
    known = identities.get(_key(event, sources), Place())
    if "pid" in fields:
        pid = fields["pid"]  # Of a process on the same host, else of the only one with this id.
        known = identities.get((source.group, pid)) or alone.get(pid, Place())
    device = int(fields["device"]) if fields.get("device", "").isdigit() else None
    said = Place(rank, source.host, None, "").merged(known)
    own = Place(
        int(fields["rank"]) if fields.get("rank", "").isdigit() else None,
        fields.get("server", ""),
        device,
        fields.get("address", ""),
    )
    place = places.find(said.merged(own) if said.rank is not None else own.merged(said))
    if _can_be_from(source, place.rank):
        return place
    known = identities.get(_key(event, sources), Place())
    place = places.find(Place(source.rank, source.host).merged(known))
    return place if place.rank is not None else None


def _can_be_from(source: Source, rank: int | None) -> bool:
    """Whether a rank can have written a log: another host, which may lie, speaks for its own ranks only."""
    return source.ranks is None or rank is None or rank in source.ranks


def _actor(event: Event, place: Place, sources: Sequence[Source]) -> str:
    if place.rank is not None:
        return f"rank {place.rank}"
    if place.host and place.device is not None:
        return f"{place.host}/{place.device}"
    return "/".join(_key(event, sources))


def _peer(event: Event, places: Places) -> Place | None:
    fields = event.fields
    device = fields.get("peer_device", "")
    peer = Place(
        int(fields["peer"]) if fields.get("peer", "").isdigit() else None,
        fields.get("peer_server", ""),
        int(device) if device.isdigit() else None,
        fields.get("peer_address", ""),
    )
    return None if peer == Place() else places.find(peer)


def _limit(events: Iterable[Event], message: str, default: float) -> float:
    named = [
        float(event.fields["timeout"])
        for event in events
        if event.message.id == message or (message == _CONNECT and event.message.id in _CONNECT_WAITS)
        if event.fields.get("timeout", "").isdigit()
    ]
    return max(named, default=default)


def _clock_shifts(
    events: Iterable[Event], sources: Sequence[Source], identities: Mapping[tuple[str, str], Place]
) -> tuple[dict[str, float], list[str]]:
    """Return by how much the clock of each host is ahead, from the moment all ranks share.

    All ranks of a communicator write its key facts right after they have met; the times differ by the clocks.
    """
    moments: dict[str, dict[str, float]] = {}
    for event in events:
        if event.message.id == _COMMUNICATOR and event.time is not None:
            host = identities.get(_key(event, sources), Place()).host
            if host:
                moments.setdefault(event.fields.get("identifier", ""), {}).setdefault(host, event.time)
    several = [times for times in moments.values() if len(times) > 1]
    if not several:
        return {}, []
    times = max(several, key=len)
    middle = median_low(times.values())
    shifts = {host: time - middle for host, time in times.items() if abs(time - middle) > _CLOCK_TOLERANCE}
    notes = [
        f"the clock of {host} is {abs(shift):.0f} s {'ahead' if shift > 0 else 'behind'}; corrected here"
        for host, shift in shifts.items()
    ]
    return shifts, notes
