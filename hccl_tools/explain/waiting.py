"""Find the rank for which all others wait: missing, silent, late, or at the end of the chain of waits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import absent, last_lines, unreachable
from hccl_tools.explain.candidates import MOST_RANKS
from hccl_tools.explain.cause import Case, Cause, is_before
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping, Sequence

    from hccl_tools.explain.absent import Absent
    from hccl_tools.explain.cause import Confidence
    from hccl_tools.explain.events import Seen

#: The most names, and the most ranges of ranks, in a sentence.
_MOST_NAMED, _MOST_SPANS = 8, 20
_SILENT, _LATE, _CYCLE, _NOT_COLLECTED = "HCM824", "HCM825", "HCM826", "HCM893"
#: All ranks wait in one operation; two ranks of a ring only wait for each other.
_RING, _SHORTEST_RING = "HCM995", 3
#: A rank says for which other one it waits, and the fewest ranks that do.
_SAYS, _SEVERAL = "HCM619", 2
#: The message with the number of an operation.
_DATA = "HCM390"
#: The limits by which ranks that gave up are compared: waits for a store or a watchdog begin at any time.
_COMPARED = ("connect", "operation")


def causes(case: Case, timeouts: Sequence[Seen]) -> list[Cause]:
    """Return the cause of a job in which ranks only report that they waited."""
    missing = _missing(case)
    if cause := unreachable.cause(case, timeouts):
        return [cause]
    if missing:
        places = _places(case, missing)
        which = "it" if len(missing) == 1 else "them"
        reason = f"the root lists {which} as missing{absent.like_a_host(case, places)}"
        lines = last_lines.of(case.cluster, missing, _first_end(timeouts))
        if lines and len(lines) == len(missing):
            last = lines[min(lines)]
            sure: Confidence = "compared" if last.event.message.id == last_lines.BUSY else "named"
            return [Cause(last.event.message, sure, places, last, reason, places, _naming(case))]
        has_written = any(one.place.rank in missing for one in case.events)
        known: Confidence = "reported" if has_written else "named"
        return [Cause(messages()[_SILENT], known, places, _naming(case), reason, places)]
    waiting = {one.place.rank: one for one in reversed(timeouts) if one.place.rank is not None}
    quiet = absent.ranks(case, set(waiting))
    if quiet.silent:
        return [_silent(case, quiet.silent, set(waiting), timeouts)]
    if late := _late(case, list(waiting.values())):
        return late
    if late := _late_and_well(case, set(waiting), timeouts, is_complete=not quiet.uncollected):
        return late
    found = _where_nothing_is_known(case, _end_of_waits(case, timeouts), timeouts, quiet)
    if found[0].confidence == "open" and (busy := _busy(case, quiet, timeouts)):
        return [_at_work(case, busy, set(waiting), timeouts)]
    if found[0].confidence == "open" and not case.cluster.size:
        return _on_screens(case, timeouts) or found
    return found


def _on_screens(case: Case, timeouts: Sequence[Seen]) -> list[Cause]:
    """Return the writers of common screens that were at work, if no line says how many ranks there are."""
    busy = last_lines.of_screens(case.cluster, timeouts, _first_end(timeouts))
    writers = len({one.actor for one in timeouts})
    if not busy or len(busy) > writers:
        return []
    places = tuple(one.place for one in busy if one.place != Place())
    reason = f"{writers} others on the same screen report that they waited"
    return [Cause(busy[0].event.message, "compared", places, busy[0], reason, (), timeouts[0])]


def _silent(case: Case, silent: set[int], waiting: set[int], timeouts: Sequence[Seen]) -> Cause:
    """Return the silent ranks, with the last line of the first one of which there is a log."""
    lines = last_lines.of(case.cluster, silent, _first_end(timeouts))
    busy = {rank: one for rank, one in lines.items() if one.event.message.id == last_lines.BUSY}
    if busy:
        return _at_work(case, busy, waiting, timeouts, silent - busy.keys())
    places = _places(case, silent)
    reason = _who_waits(case, silent, waiting)
    if not lines:
        if not silent & case.cluster.logged:
            reason += f", and there is no log of {_them(silent)}"
        return Cause(messages()[_SILENT], "silent", places, timeouts[0], reason, places)
    last = lines[min(lines)]
    return Cause(messages()[_SILENT], "silent", places, last, reason, places, timeouts[0])


def _at_work(
    case: Case,
    busy: Mapping[int, Seen],
    waiting: set[int],
    timeouts: Sequence[Seen],
    others: Collection[int] = (),
) -> Cause:
    """Return the ranks that were at work when the others gave up, by their last lines."""
    places = tuple(busy[rank].place for rank in sorted(busy))
    reason = _who_waits(case, set(busy), waiting)
    if len(busy) > 1:
        reason += f"; the line is the last one of rank {min(busy)}"
    if others:
        reason += f"; the last lines of {ranks_text(_places(case, set(others)))} name no work"
    return Cause(
        messages()[last_lines.BUSY],
        "compared",
        places,
        busy[min(busy)],
        reason,
        places,
        timeouts[0],
    )


def _who_waits(case: Case, silent: Collection[int], waiting: set[int]) -> str:
    all_wait = len(waiting) + len(silent) == case.cluster.size
    others = "all other ranks report" if all_wait else f"{ranks_text(_places(case, waiting))} report"
    return f"{others} that they waited" if len(waiting) > 1 else f"a rank waited for {_them(silent)}"


def _them(ranks: Collection[int]) -> str:
    return "it" if len(ranks) == 1 else "them"


def _busy(case: Case, quiet: Absent, timeouts: Sequence[Seen]) -> Mapping[int, Seen]:
    """Return the ranks at work that were ended, or whose lines are on a screen of several ranks."""
    named = {one.peer.rank for one in timeouts if one.peer is not None and one.peer.rank is not None}
    ranks = quiet.ended | quiet.uncollected
    if not named <= ranks:
        return {}
    lines = last_lines.of(case.cluster, ranks, _first_end(timeouts))
    return {rank: one for rank, one in lines.items() if one.event.message.id == last_lines.BUSY}


def _late_and_well(
    case: Case, waiting: set[int], timeouts: Sequence[Seen], *, is_complete: bool
) -> list[Cause]:
    """Return the only rank that does not wait, and reports nothing before all others had given up.

    It was late: it went on, and found their connections closed. The others may say that they wait for it.

    Args:
        is_complete: Whether no rank is known whose log was not collected.
    """
    said = {
        (one.peer.rank, one.place.rank)
        for one in case.cluster.seen
        if one.event.message.id == _SAYS and one.peer is not None and one.place.rank in waiting
    }
    others = {one.place.rank for one in case.events if one.event.message.kind != "code"} - waiting - {None}
    named = {rank for rank, _ in said} or (others if is_complete else set())
    late = next(iter(named)) if len(named) == 1 else None
    if late is None or late in waiting or len(waiting) < _SEVERAL or others - named:
        return []
    own = [one for one in case.events if one.place.rank == late and one.event.message.kind != "code"]
    ends = _ends(timeouts)
    if not own or not all(is_before(end, one) for end in ends for one in own):
        return []
    by = {rank for _, rank in said if rank is not None}
    seconds = case.cluster.waits.get(timeouts[0].event.message.limit)
    who = f"{ranks_text(_places(case, by or waiting))} {'say that they wait for it, and ' if by else ''}"
    reason = f"{who}gave up{f' after {seconds:.0f} s' if seconds else ''}"
    later = min((one.since for one in own if one.since is not None), default=None)
    gave_up = max((end.until for end in ends if end.until is not None), default=None)
    if later is not None and gave_up is not None:
        reason += f"; it went on, and reports a failure {later - gave_up:.0f} s later"
    seen = last_lines.of(case.cluster, (late,), _first_end(timeouts)).get(late)
    reason += "; its last line until then is below" if seen is not None else ""
    place = case.cluster.places.find(Place(late))
    return [Cause(messages()[_LATE], "waits", (place,), seen or own[0], reason, (place,), timeouts[0])]


def _first_end(timeouts: Sequence[Seen]) -> float | None:
    """Return when the first rank gave up, in the clock of its host."""
    times = [one.event.time for one in timeouts if one.event.time is not None and not one.event.is_yearless]
    return min(times, default=None)


def _where_nothing_is_known(
    case: Case, found: list[Cause], timeouts: Sequence[Seen], quiet: Absent
) -> list[Cause]:
    """Replace an open end by the ranks that report nothing, if the waits name none of the others."""
    first = found[0]
    named = {one.peer.rank for one in timeouts if one.peer is not None}
    is_open = first.confidence == "open" and (not named or (len(named) > 1 and named <= quiet.uncollected))
    if is_open and quiet.uncollected:
        places = _places(case, quiet.uncollected)
        whose = "it" if len(places) == 1 else "them"
        reason = f"no log of {whose} was collected{absent.like_a_host(case, places)}"
        return [Cause(messages()[_NOT_COLLECTED], "open", places, first.seen, reason, places)]
    if is_open and quiet.ended and not named:
        places = _places(case, quiet.ended)
        was = "was" if len(places) == 1 else "were"
        reason = f"{ranks_text(places)}, which {was} ended from outside, did not report what happened there"
        return [first._replace(reason=reason, fetch=places)]
    return found


def _numbers(text: str) -> set[int]:
    found = map(int, re.findall(r"(?<![0-9])[0-9]{1,20}(?![0-9])", text))
    return {number for number in found if number < MOST_RANKS}


def _missing(case: Case) -> set[int]:
    """Return the ranks that the root misses, by its own words."""
    named, connected, needed = set[int](), set[int](), 0
    for one in case.cluster.seen:
        fields = one.event.fields
        named |= _numbers(fields.get("missing", ""))
        connected |= _numbers(fields.get("connected", ""))
        if one.event.message.id == "HCM229":
            needed = max({needed} | _numbers(fields.get("size", "")))
    if connected and not named:
        named = set(range(needed or min(case.cluster.size, MOST_RANKS))) - connected
    return named


def _naming(case: Case) -> Seen | None:
    return next(
        (one for one in case.cluster.seen if {"missing", "connected"} & one.event.fields.keys()), None
    )


def _late(case: Case, waits: Sequence[Seen]) -> list[Cause]:
    """All ranks gave up, and the last one so late that the first had given up before it began to wait."""
    for limit in _COMPARED:
        timed = [one for one in waits if one.time is not None and one.event.message.limit == limit]
        timed.sort(key=_time)
        seconds = case.cluster.waits[limit]
        if len(timed) > 1 and (spread := _time(timed[-1]) - _time(timed[0])) > seconds:
            last = timed[-1]
            reason = f"it gave up {spread:.0f} s after the first rank, with a time limit of {seconds:.0f} s"
            found = Cause(messages()[_LATE], "order", (last.place,), last, reason, (last.place,))
            return [_with_work(case, found, timed[0])]
    return []


def _with_work(case: Case, late: Cause, first: Seen) -> Cause:
    """Return a late rank with what it did when the first rank gave up, if its log says so."""
    rank = late.places[0].rank
    lines = last_lines.of(case.cluster, () if rank is None else (rank,), first.event.time)
    busy = next((one for one in lines.values() if one.event.message.id == last_lines.BUSY), None)
    if busy is None or busy.event.time is None or busy.event.is_yearless:
        return late
    return late._replace(reason=f"{late.reason}; until then it was at work, by its line below", beside=busy)


def _first_phase(timeouts: Sequence[Seen]) -> list[Seen]:
    """Return the waits with one limit if they ended before all others did; else all waits."""
    phases: dict[str, list[Seen]] = {}
    for one in timeouts:
        phases.setdefault(one.event.message.limit, []).append(one)
    for phase in phases.values():
        others = [one for one in timeouts if one.event.message.limit != phase[0].event.message.limit]
        if others and all(is_before(one, other) for one in _ends(phase) for other in _ends(others)):
            return phase
    return list(timeouts)


def _ends(timeouts: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return the earliest and the latest of several waits; all if a time is unknown."""
    if any(one.time is None for one in timeouts):
        return tuple(timeouts)
    return min(timeouts, key=_time), max(timeouts, key=_time)


def _time(one: Seen) -> float:
    return one.time or 0.0


def _end_of_waits(case: Case, timeouts: Sequence[Seen]) -> list[Cause]:
    """Follow who waits for whom to the end, or to a cycle."""
    edges: dict[str, Seen] = {}
    timeouts = _first_phase(timeouts)
    for one in timeouts:
        if one.peer is not None and one.place != Place():
            edges.setdefault(_key(one.place), one)
    if not edges:
        return [_open(timeouts)]
    lengths = _lengths(edges)
    end, path = _follow(edges, max(edges, key=lengths.__getitem__))  # The longest chain says most.
    if end in path:
        cycle = [edges[key] for key in path[path.index(end) :]]
        places = tuple(one.place for one in cycle)
        if (same := _in_one_operation(case, cycle)) is not None:
            reason = f"each of {ranks_text(places)} waits for the next one, and all are in {same}"
            return [Cause(messages()[_RING], "open", places, cycle[0], reason, places)]
        if len(places) == 1:
            text = "it waits for itself: an operation that it began before has not ended"
        elif len(places) == 2:
            text = f"{places[0].name} and {places[1].name} wait for each other"
        else:
            text = " -> ".join(place.short for place in (*places, places[0]))
        is_link = len(places) == 2 and cycle[0].event.message.limit == "connect"
        message = cycle[0].event.message if is_link else messages()[_CYCLE]
        return [Cause(message, "waits", places, cycle[0], text, places)]
    last = edges[path[-1]]
    peer = last.peer or Place()
    own = next((one for one in case.events if _key(one.place) == end), None)
    chain = " -> ".join([*(edges[key].place.short for key in path), peer.short])
    if own is not None:
        return [Cause(own.event.message, "waits", (peer,), own, f"the waits end there: {chain}", (peer,))]
    is_ended = peer.rank in case.ended
    if peer.rank is None or peer.rank not in case.cluster.logged or is_ended:
        reason = f"there is no log of {peer.short}, for which {last.place.short} waits"
        if is_ended and (busy := _at_work_on_screen(case, peer, last, timeouts)) is not None:
            return [busy]
        if is_ended:
            reason = f"{peer.short}, for which {last.place.short} waits, was ended from outside"
        fetch = peer if peer.rank is not None or peer.host else last.place
        message = last.event.message
        alike = [one.place for one in timeouts if one.peer == peer and one.event.message is message]
        return [Cause(message, "open", tuple(dict.fromkeys(alike)), last, reason, (fetch,))]
    reason = f"the waits end there: {chain}"
    for own in last_lines.of(case.cluster, (peer.rank,), _first_end(timeouts)).values():
        return [Cause(own.event.message, "waits", (peer,), own, reason, (peer,), last)]
    return [Cause(messages()[_SILENT], "waits", (peer,), last, reason, (peer,))]


def _open(timeouts: Sequence[Seen]) -> Cause:
    """Return a wait of which no line says for whom, with all ranks that report it."""
    explained = {later for one in timeouts for later in one.event.message.explains}
    first = next((one for one in timeouts if one.event.message.id not in explained), timeouts[0])
    at = (first.place,) if first.place != Place() else ()
    alike = [one.place for one in timeouts if one.event.message is first.event.message]
    places = tuple(dict.fromkeys(place for place in (*at, *alike) if place.rank is not None)) or at
    return Cause(first.event.message, "open", places, first, "", at)


def _in_one_operation(case: Case, cycle: Sequence[Seen]) -> str | None:
    """Return the operation in which more than two ranks of a cycle all are, by its number: none is behind."""
    if len(cycle) < _SHORTEST_RING or any(one.event.message.limit != "operation" for one in cycle):
        return None
    tags: dict[str, str] = {}
    for one in case.events:
        if one.event.message.limit == "operation" and (tag := one.event.fields.get("tag", "")):
            tags.setdefault(one.actor, tag)
    numbers: dict[str, str] = {}
    for one in case.cluster.seen:
        if one.event.message.id == _DATA:
            numbers.setdefault(one.actor, one.event.fields.get("index", ""))
    of_cycle = {(tags.get(one.actor, ""), numbers.get(one.actor, "")) for one in cycle}
    tag, number = of_cycle.pop() if len(of_cycle) == 1 else ("", "")
    return f"operation {number} ({tag.partition('_')[0]})" if tag and number else None


def _at_work_on_screen(case: Case, peer: Place, last: Seen, timeouts: Sequence[Seen]) -> Cause | None:
    """Return a rank that was at work on its launcher's screen, and was ended when all others had given up."""
    waited = {one.place.rank for one in timeouts}
    if peer.rank is None or not case.cluster.size or len(waited - {None, peer.rank}) + 1 < case.cluster.size:
        return None
    busy = last_lines.of_launcher(case.cluster, peer.rank, _first_end(timeouts))
    if busy is None:
        return None
    reason = (
        "all other ranks waited for it, and its launcher ended it after them; the line is on the launcher's"
    )
    reason += " screen and names no rank"
    return Cause(busy.event.message, "compared", (peer,), busy, reason, (peer,), last)


def _follow(edges: Mapping[str, Seen], start: str, known: Container[str] = ()) -> tuple[str, list[str]]:
    """Return the chain of waits from a rank, and what follows: its end, or a rank in it or in ``known``."""
    path: dict[str, None] = {}
    here = start
    while here in edges and here not in path and here not in known:
        path[here] = None
        peer = edges[here].peer
        here = _key(peer) if peer is not None else ""
    return here, list(path)


def _lengths(edges: Mapping[str, Seen]) -> dict[str, int]:
    """Return the length of the chain from each rank, in a time that grows as the number of ranks."""
    lengths: dict[str, int] = {}
    for start in edges:
        end, path = _follow(edges, start, lengths)
        begin = path.index(end) if end in path else len(path)
        cycle = path[begin:]
        lengths.update(dict.fromkeys(cycle, len(cycle)))  # all ranks of a cycle have its length
        for key in reversed(path[:begin]):
            lengths[key] = lengths.get(end, 0) + 1
            end = key
    return lengths


def _key(place: Place) -> str:
    if place.rank is not None:
        return f"rank {place.rank}"
    return f"{place.host}/{place.device}" if place.host else place.address


def _places(case: Case, ranks: set[int]) -> tuple[Place, ...]:
    return tuple(case.cluster.places.find(Place(rank)) for rank in sorted(ranks))


def ranks_text(places: Sequence[Place]) -> str:
    """Return ranks as ``rank 3`` or ``ranks 0-4,7``, other places by their names."""
    ranks = sorted({place.rank for place in places if place.rank is not None and place.rank >= 0})
    if not ranks:
        return and_more(list(dict.fromkeys(filter(None, _names(places)))), _MOST_NAMED)
    spans = number_list.fold(ranks).split(",")
    listed = ",".join(spans) if len(spans) <= _MOST_SPANS else and_more(spans, _MOST_SPANS)
    return f"rank{'' if len(ranks) == 1 else 's'} {listed}"


def _names(places: Sequence[Place]) -> Iterator[str]:
    """Yield the names of places without ranks: the devices of one host together."""
    devices: dict[str, set[int]] = {}
    for place in places:
        if place.host and place.device is not None:
            devices.setdefault(place.host, set()).add(place.device)
    for place in places:
        several = devices.get(place.host, set()) if place.device is not None else set()
        if len(several) > 1:
            yield f"devices {number_list.fold(sorted(several))} of {place.host}"
        else:
            yield place.name
