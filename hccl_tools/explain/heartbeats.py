"""Lost heartbeats joined: those of one host, and those of two hosts that lost each other."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from hccl_tools.explain import last_lines
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.waiting import ranks_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.events import Seen

#: HCCL's heartbeat was lost; two hosts lost each other.
LOST, _APART = "HCM343", "HCM970"
#: HCCL's heartbeat reports a device that still answers: it is late, or it hangs.
_STUCK = {"HCM301", "HCM302"}
_FORMAT = "%a %b %d %H:%M:%S %Y"
#: Seconds within which two hosts lose each other, and within which the devices of one host are lost.
_TOGETHER = 60.0
#: Lost heartbeats that are compared.
_MOST = 4096


def arrival(one: Seen) -> float | None:
    """Return when a heartbeat was lost, by the line that reports it later; None if it does not say it."""
    text = " ".join(one.event.fields.get("moment", "").split())
    try:
        return datetime.strptime(text, _FORMAT).replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def apart(case: Case) -> list[Cause]:
    """Return the network between two hosts whose processes lost each other: each still ran, and says so.

    A process that has ended reports nothing. A device that lost another one, and that this one has lost at
    the same time, shows that both were alive.
    """
    lost = [one for one in case.events if one.event.message.id == LOST and one.peer is not None][:_MOST]
    found: dict[tuple[str, str], Seen] = {}
    for one in lost:
        there, here = one.event.fields["peer_server"], one.event.fields.get("finder", "")
        if here and here != there:
            found.setdefault((here, there), one)
    for (here, there), one in found.items():
        other = found.get((there, here))
        if other is not None and _are_near(arrival(one), arrival(other)):
            number = len({frozenset(pair) for pair in found if (pair[1], pair[0]) in found})
            hosts = " and ".join(sorted((here, there)))
            more = f", and {number - 1} more pairs of hosts" if number > 1 else ""
            when = one.event.fields.get("moment", "")
            reason = f"{hosts} lost each other at {when}{more}, and processes of both went on"
            return [Cause(messages()[_APART], "compared", (), one, reason, (), other)]
    return []


def joined(causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, the first loss first, with the devices of one host as one cause."""
    found: dict[object, Cause] = {}
    for cause in sorted(causes, key=_order):
        mark = _mark(cause)
        former = found.get(mark)
        if former is None or (cause.message.id == LOST and not _is_same_loss(former, cause)):
            mark = mark if former is None else (mark, len(found))
            found[mark] = cause
            continue
        places = tuple(dict.fromkeys((*former.places, *cause.places)))
        fetch = tuple(dict.fromkeys((*former.fetch, *cause.fetch)))
        found[mark] = former._replace(places=places, fetch=fetch)
    return list(found.values())


def with_work(case: Case, causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, in which a device that is only reported as stuck has the last line of its rank.

    The others do not know what it does. It may work longer than their time limit.
    """
    ranks = {
        place.rank: cause
        for cause in causes
        if cause.confidence == "reported" and cause.message.id in _STUCK
        for place in cause.places
        if place.rank is not None
    }
    reports = [cause.seen for cause in ranks.values() if cause.seen is not None]
    waits = [one for one in case.events if one.event.message.kind == "timeout"]
    times = [one.event.time for one in (*reports, *waits) if one.event.time is not None]
    lines = last_lines.of(case.cluster, ranks.keys() - {None}, min(times, default=None)) if ranks else {}
    busy = {rank: line for rank, line in lines.items() if line.event.message.id == last_lines.BUSY}
    if busy:
        first = min(busy)
        places = tuple(busy[rank].place for rank in sorted(busy))
        waited = ranks_text(list(dict.fromkeys(one.place for one in waits if one.place.rank not in busy)))
        reason = f"HCCL's heartbeat reports {'it' if len(busy) == 1 else 'them'} as stuck"
        reason += f", and {waited} gave up waiting" if waited else ""
        reason += f"; the line is that of rank {first}" if len(busy) > 1 else ""
        work = busy[first]
        return [
            Cause(work.event.message, "compared", places, work, reason, places, ranks[first].seen),
            *(one for one in causes if not any(place.rank in busy for place in one.places)),
        ]
    return [_with_line(cause, lines) for cause in causes]


def _with_line(cause: Cause, lines: Mapping[int, Seen]) -> Cause:
    ranks = [place.rank for place in cause.places if place.rank is not None]
    line = next((lines[rank] for rank in ranks if rank in lines), None)
    if line is None or cause.confidence != "reported" or cause.beside is not None:
        return cause
    return cause._replace(reason="below it is the last line of its own log", beside=line)


def _mark(cause: Cause) -> object:
    """Return what is equal for the causes that are the end of one host, or one line about a process there."""
    hosts = {place.host for place in cause.places}
    if cause.seen is None or len(hosts) != 1 or hosts == {""}:
        return id(cause)
    line = (
        ""
        if cause.message.id in {LOST, *_STUCK} and cause.confidence == "reported"
        else (cause.seen.event.file, cause.seen.event.line)
    )
    return cause.message.id, line, *hosts


def _is_same_loss(one: Cause, other: Cause) -> bool:
    return (
        one.seen is not None and other.seen is not None and _are_near(arrival(one.seen), arrival(other.seen))
    )


def _order(cause: Cause) -> tuple[bool, float]:
    if cause.message.id != LOST or cause.seen is None:
        return False, 0.0
    when = arrival(cause.seen)
    return True, when if when is not None else float("inf")


def _are_near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _TOGETHER
