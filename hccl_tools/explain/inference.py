"""Decide which event is the cause: the decision table of ``docs/explain.md``.

Each function is one row of the table: it returns the causes that it finds, or [] to hand on to the next row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain import disagreement, waiting
from hccl_tools.explain.case import Case, Cause
from hccl_tools.explain.places import Place
from hccl_tools.knowledge.registry import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hccl_tools.explain.cluster import Cluster, Seen

#: Seconds by which an event may be later than what it causes: logs are written with a delay.
_DELAY = 1.0
#: Characters of a line that have its level, after the prefix of a launcher.
_LEVEL_WITHIN = 40
#: A rank that raises an exception or exits after an error of HCCL only passes that error on.
_FOLLOW_UP = {"HCM810", "HCM821", "HCM701", "HCM706", "HCM707", "HCM714", "HCM720", "HCM722"}


def causes(
    cluster: Cluster, ended: Collection[int] = (), *, not_started: Collection[int] = ()
) -> list[Cause]:
    """Return the causes, the most likely first; [] if no event is one.

    Args:
        ended: The ranks that the launcher ended: what they report after that is no cause.
        not_started: The ranks that did not start because another rank failed: they cannot write a log.
    """
    case = _case(cluster, ended)._replace(not_started=frozenset(not_started))
    for rule in (_verdicts, _named_causes, disagreement.tls, _earliest_error, _waits, _codes):
        if found := rule(case):
            return found
    return []


def _case(cluster: Cluster, ended: Collection[int]) -> Case:
    events = [one for one in cluster.seen if one.event.message.kind not in {"fact", "end"}]
    failed = {one.actor for one in events if not _is_warning(one)}
    events = [one for one in events if one.actor in failed]
    own = [one.time for one in events if one.place.rank not in ended and one.time is not None]
    limit = min(own, default=None)
    if ended and limit is not None:
        events = [
            one
            for one in events
            if one.place.rank not in ended or (one.time is not None and one.time <= limit)
        ]
    first: dict[str, Seen] = {}
    for one in events:
        former = first.get(one.actor)
        if former is None or _is_more_telling(one, former):
            first[one.actor] = one
    return Case(cluster, events, first)


def _is_warning(one: Seen) -> bool:
    """Whether a line is a warning: what a healthy job may write, too, such as each try to connect."""
    return "[WARNING]" in one.event.text[:_LEVEL_WITHIN]


def _is_more_telling(one: Seen, former: Seen) -> bool:
    """Whether a later event of the same rank says more than its first one about the same failure."""
    near = one.time is None or former.time is None or one.time - former.time <= _DELAY
    if former.event.message.id in _FOLLOW_UP or former.event.message.kind == "code":
        return near and one.event.message.kind != "code" and one.event.message.id not in _FOLLOW_UP
    is_peer_new = former.peer is None and one.peer is not None
    return near and former.event.message.kind == one.event.message.kind == "timeout" and is_peer_new


def _verdicts(case: Case) -> list[Cause]:
    """HCCL's own "Cluster Exception Location" comes before every inference."""
    found: dict[str, Cause] = {}
    errors = _errors_of_ranks(case)
    for one in case.events:
        if one.event.message.kind != "verdict" or one.peer is None or one.peer.name in found:
            continue
        own = [
            event
            for event in errors.get(one.peer.rank, ())
            if event.time is None or one.time is None or event.time <= one.time
        ]
        own.sort(key=lambda event: event.event.message.kind != "cause")
        if own:
            reason = f"HCCL's heartbeat names the same device ({one.event.fields.get('reason', 'lost')})"
            found[one.peer.name] = Cause(own[0].event.message, "named", (one.peer,), own[0], reason)
        else:
            what = one.event.fields.get("reason")
            reason = f"HCCL reports: {what}" if what else ""
            found[one.peer.name] = Cause(one.event.message, "named", (one.peer,), one, reason, (one.peer,))
    return list(found.values())


def _errors_of_ranks(case: Case) -> dict[int | None, list[Seen]]:
    """Return the events that can explain a verdict: by rank and kind the first with and without a time."""
    found: dict[int, dict[tuple[str, bool], Seen]] = {}
    for one in case.events:
        kind, rank = one.event.message.kind, one.place.rank
        if rank is not None and kind in {"cause", "error"}:
            found.setdefault(rank, {}).setdefault((kind, one.time is None), one)
    return {rank: list(first.values()) for rank, first in found.items()}


def _named_causes(case: Case) -> list[Cause]:
    """A message that names a fault, unless it came after what it would have to explain."""
    first: dict[str, Seen] = {}
    for one in case.events:
        if one.event.message.kind in {"timeout", "error"}:
            first.setdefault(one.actor, one)
    waits = list(first.values())[:2]  # The earliest one, and the earliest of another actor.
    groups: dict[str, list[Seen]] = {}
    for one in case.events:
        if one.event.message.kind == "cause" and not any(
            _is_before(wait, one) for wait in waits if wait.actor != one.actor
        ):
            groups.setdefault(one.event.message.meaning, []).append(one)
    explained = {later for group in groups.values() for later in group[0].event.message.explains}
    kept = [
        group
        for group in groups.values()
        if group[0].event.message.id not in explained
        and not any(_says_more(other[0], group[0]) for other in groups.values())
    ]
    return [_of_group(group) for group in kept or groups.values()]


def _says_more(one: Seen, other: Seen) -> bool:
    """Whether two messages of a rank are about one failure, and the first has more details."""
    codes = [{code.code for code in seen.event.message.codes} for seen in (one, other)]
    is_same = one.actor == other.actor and not _is_before(one, other) and not _is_before(other, one)
    return bool(codes[0] & codes[1]) and is_same and len(one.event.fields) > len(other.event.fields)


def _is_before(one: Seen, other: Seen) -> bool:
    """Whether an event is earlier than another by more than logs are delayed; False if a time is unknown."""
    return one.time is not None and other.time is not None and one.time + _DELAY < other.time


def _of_group(group: Sequence[Seen]) -> Cause:
    group = disagreement.differing(group)
    places = tuple(dict.fromkeys(one.place for one in group if one.place != Place()))
    best = max(group, key=lambda one: len(one.event.fields))  # The line with the details, not the code alone.
    best = best if best.actor == group[0].actor else group[0]
    return Cause(best.event.message, "named", places, best)


def _earliest_error(case: Case) -> list[Cause]:
    """The earliest error, if no rank gave up waiting before; a peer's own error comes before a link error."""
    errors = [one for one in case.first.values() if one.event.message.kind == "error"]
    if not errors:
        return []
    errors.sort(key=lambda one: (one.time is None, one.time or 0.0, one.event.message.id in _FOLLOW_UP))
    waits = [one for one in case.first.values() if one.event.message.kind == "timeout"]
    if any(_is_before(wait, errors[0]) for wait in waits):
        return []
    first = errors[0]
    for one in errors[1:]:
        is_peer = first.peer is not None and one.place.rank == first.peer.rank is not None
        names_back = one.peer is not None and one.peer.rank == first.place.rank
        if is_peer and not names_back and not _is_before(first, one):
            first = one
            break
    blamed = [one.peer for one in errors if one.peer is not None and one.peer.rank is not None]
    reporting = {one.place.rank for one in case.events}
    silent = [peer for peer in blamed if peer.rank not in reporting]
    if silent and blamed.count(silent[0]) > 1:
        reason = f"{blamed.count(silent[0])} ranks report errors of their connection to it"
        return [Cause(messages()["HCM824"], "silent", (silent[0],), first, reason, (silent[0],))]
    others = len(case.first) > 1
    fetch = (first.peer,) if first.peer is not None and first.peer in silent else ()
    reason = "it is the earliest error of all ranks" if others and first.time is not None else ""
    return [Cause(first.event.message, "order" if others else "named", (first.place,), first, reason, fetch)]


def _waits(case: Case) -> list[Cause]:
    """All that is known is who waited: the rank that is missing, silent, late, or at the end of the waits."""
    timeouts = [one for one in case.events if one.event.message.kind == "timeout"]
    return waiting.causes(case, timeouts) if timeouts else []


def _codes(case: Case) -> list[Cause]:
    """Codes alone: the first one, and where the reason is."""
    if not case.events:
        return []
    first = case.events[0]
    fetch = (first.place,) if first.place != Place() else ()
    return [Cause(first.event.message, "open", fetch, first, "", fetch)]
