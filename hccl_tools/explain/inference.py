"""Decide which event is the cause: the decision table of ``docs/en/reference/explain.md``.

Each function is one row of the table: it returns the causes that it finds, or [] to hand on to the next row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import (
    candidates,
    lost_hosts,
    operations,
    outliers,
    pods,
    progress,
    recorded,
    shell_settings,
    skew,
    stacks,
    states,
    stood_still,
    stops,
    ties,
    unreachable,
    verdicts,
    waiting,
)
from hccl_tools.explain.cause import Case, Cause, is_before
from hccl_tools.explain.identities import OF_SYSTEM
from hccl_tools.explain.jobs import LONGEST_PAUSE
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.outlived import is_outlived

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hccl_tools.explain.cause import Confidence
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen


#: The results of calls of HCCL, which say less than the codes of the runtime.
_OF_HCCL = "HCM1"

#: The kernel's words on disks and file servers, from which an exception of these kinds does not follow.
_STORAGE = {"HCM814", "HCM815", "HCM816", "HCM818", "HCM819"}
_OF_PROGRAM = re.compile(
    r"(?:Value|Key|Type|Attribute|Index|Assertion|Name|Import|ModuleNotFound|ZeroDivision|NotImplemented)Error\b"
)
#: The scheduler ended the job, and says why.
_BY_SCHEDULER = {"HCM711", "HCM716", "HCM919", "HCM925", "HCM926"}
#: How sure an answer is that only says who waits for whom.
GUESSES = {"open", "silent", "waits", "reported"}
#: The answers that only the order of the lines supports.
_BY_ORDER = {"alone", "order", "named"}
#: Ranks are in different operations: one may have had fewer steps.
_DIFFERENT = {"HCM894", "HCM895"}
#: Seconds within which ranks fail that have the same fault.
_TOGETHER = 30.0
#: Ranks with different failures without times that are all named.
_MOST_UNTIMED = 4
#: Failures that a job outlived, of which each is found by reading its log again.
_MOST_OUTLIVED = 8


def causes(
    cluster: Cluster, ended: Collection[int] = (), *, not_started: Collection[int] = ()
) -> list[Cause]:
    """Return the causes, the most likely first; [] if no event is one.

    Args:
        ended: The ranks that the launcher ended: what they report after that is no cause.
        not_started: The ranks that did not start because another rank failed: they cannot write a log.
    """
    case = candidates.of(cluster, ended, not_started)
    if case.stop is None and (signalled := stops.by_signal(case)):
        return stood_still.before(case, signalled[0].seen) or signalled
    found = _causes(case)
    for _ in range(_MOST_OUTLIVED):
        seen = found[0].seen if found else None
        if seen is None or not is_outlived(cluster, seen):
            break
        case = candidates.after(case, seen)
        found = _causes(case)
    if case.handled and (not found or found[0].confidence in GUESSES):
        found = _with_handled(case, found)
    ends = progress.Progress(case)
    if not found or found[0].confidence in GUESSES or found[0].message.id in _DIFFERENT:
        found = [*ends.uneven(), *found]
    if not found or found[0].confidence in GUESSES:
        found = [*stacks.elsewhere(case), *found]
    if not found and (behind := ends.slow()):
        return behind
    if case.stop is not None and case.stop.event.message.id in stops.BY_USER:
        # The exit codes of its containers follow from it. Ranks may have waited before.
        if not found:
            return [*ends.behind(), *(stood_still.before(case, case.stop) or stops.by_stop(case))]
        if found[0].confidence in GUESSES:
            return [*found, Cause(case.stop.event.message, "open", (), case.stop)]
    if found and found[0].message.id in _BY_SCHEDULER:
        found = [*stood_still.before(case, found[0].seen), *found]
    found = states.joined(case, lost_hosts.explained(case, found))
    return found or stood_still.before(case, case.stop) or stops.by_stop(case)


def _with_handled(case: Case, found: list[Cause]) -> list[Cause]:
    """Return a cause among the errors after which a process went on, if the others say only who waits."""
    second = _causes(candidates.with_handled(case))
    is_better = second and second[0].confidence not in GUESSES
    ranks = {place.rank for cause in (found[:1], second[:1]) for place in (cause[0].places if cause else ())}
    own = [one for one in case.handled if one.place.rank is not None and one.place.rank in ranks]
    named = [one for one in own if one.event.message.kind == "cause"]
    if not named and not found and not is_better:
        return []  # Ranks waited, and all went on.
    if not named and is_better:
        return [_gone_on(case, cause) for cause in second]
    first = _first_of(named or own)
    if first is None:
        return found
    reason = "the other ranks wait for it"
    return [Cause(first.event.message, "waits", (first.place,), first, reason)]


def _gone_on(case: Case, cause: Cause) -> Cause:
    """Return a cause that is not certain if the log goes on after its line: an earlier run, or handled."""
    seen = cause.seen
    if seen is None or not any(one is seen for one in case.handled) or cause.confidence not in _BY_ORDER:
        return cause
    end = case.cluster.ends.get(seen.event.file)
    if end is None or seen.until is None:
        return cause
    seconds = f"{end - seen.until:,.0f} s"
    return cause._replace(confidence="open", reason=f"its log goes on for {seconds} after it")


def _causes(case: Case) -> list[Cause]:
    later = (
        recorded.before_failures,
        _own_failures,
        recorded.causes,
        skew.late_starts,
        _before_all_waits,
        operations.differences,
        _earliest_error,
    )
    for rule in (
        verdicts.causes,
        recorded.despite_named_faults,
        _named_causes,
        outliers.tls,
        _local_address,
        *later,
        shell_settings.unreached_masters,
        unreachable.foreign_addresses,
        _early_codes,
        operations.other_groups,
        operations.all_begun,
        _waits,
        _effects,
        _codes,
    ):
        if found := rule(case):
            return found
    return []


def _named_causes(case: Case) -> list[Cause]:
    """A message that names a fault, unless it came after what it would have to explain."""
    first: dict[str, Seen] = {}
    for one in case.events:
        if one.event.message.kind in {"timeout", "error"} and not candidates.is_attempt(one):
            first.setdefault(one.actor, one)
    waits = list(first.values())[:2]  # The earliest one, and the earliest of another actor.
    own = ties.of_programs(candidates.failures_of_ranks(case))
    groups: dict[str, list[Seen]] = {}
    end = _went_on_until(case)
    for one in case.events:
        if one.event.message.kind == "cause" and not any(
            is_before(wait, one) for wait in waits if wait.actor != one.actor
        ):
            if end is not None and one.until is not None and one.until < end:
                continue
            if ties.is_apart(one, case.cluster, own):
                continue
            groups.setdefault(one.event.message.meaning, []).append(one)
    explained = {later for group in groups.values() for later in group[0].event.message.explains}
    kept = [
        group
        for group in groups.values()
        if group[0].event.message.id not in explained
        and not any(candidates.says_more(other[0], group[0]) for other in groups.values())
    ]
    kept = kept or list(groups.values())
    # One failure of one process is one cause, however many messages it has.
    several = [
        group
        for at, group in enumerate(kept)
        if not any(
            candidates.is_one_failure(former[0], group[0]) or candidates.is_same_fault(former, group)
            for former in kept[:at]
        )
    ]
    return [_of_group(_in_full(group, kept), case) for group in several]


def _in_full(group: list[Seen], others: Sequence[list[Seen]]) -> list[Seen]:
    """Return the lines about the same fault in the same file that say more, the same ones if none does."""
    same = [
        other
        for other in others
        if other[0].event.file == group[0].event.file and candidates.is_same_fault(group, other)
    ]
    return max([group, *same], key=lambda one: len(one[0].event.fields))


def _went_on_until(case: Case) -> float | None:
    """Return the time before which a fault cannot have ended the job, because the job went on after it.

    It went on to an exception of a rank, or to the operation in which the first rank waited until the time
    limit. A rank that failed ends the others within the time limits for connections.
    """
    own = [
        one.since
        for one in candidates.failures_of_ranks(case)
        if one.since is not None and (one.time is not None or _is_alone_in_its_file(case, one))
    ]
    if not own:
        waits = [one for one in case.first.values() if one.event.message.kind == "timeout"]
        if any(one.event.message.limit != "operation" or one.since is None for one in waits):
            return None
        own = [(one.since or 0.0) - case.cluster.waits["operation"] for one in waits]
    return min(own) - 3 * case.cluster.waits["connect"] if own else None


def _is_alone_in_its_file(case: Case, one: Seen) -> bool:
    """Whether a file has lines of one rank only: on a screen, the lines above may be later ones of others."""
    actors = {other.actor for other in case.cluster.seen if other.event.file == one.event.file}
    return len(actors) == 1


def _of_group(group: Sequence[Seen], case: Case) -> Cause:
    if (cause := outliers.listed(group[0], case.cluster.places)) is not None:
        return cause
    if (cause := outliers.common_peer(case, group[0])) is not None:
        return cause
    reason = outliers.by_host(group)
    group = outliers.differing(group)
    places = tuple(dict.fromkeys(one.place for one in group if one.place != Place()))
    best = max(
        group, key=lambda one: (one.event.codes != (), len(one.event.fields))
    )  # The line with the details, not the code alone.
    best = best if best.actor == group[0].actor or best.event.codes else group[0]
    sure: Confidence = "named"
    if ties.is_loose(best, case.cluster) and candidates.failures_of_ranks(case):
        sure, reason = "order", "no line says that it is about a rank of this job"
    return pods.named(Cause(best.event.message, sure, places, best, reason), case.cluster.sources)


def _own_failures(case: Case) -> list[Cause]:
    """The earliest exception, exit or signal of a rank that does not only pass a failure of HCCL on."""
    failures = candidates.failures_of_ranks(case)
    first = _first_of(failures)
    if first is None or _is_after_a_wait(case, first):
        return []
    first = candidates.observed_first(case, failures, first)
    earlier = [
        one
        for one in case.first.values()
        if one.event.message.kind == "error" and one.actor != first.actor and is_before(one, first)
        if not candidates.is_lost_with(one, first)
        if not (one.event.message.id in _STORAGE and _OF_PROGRAM.match(first.event.fields.get("reason", "")))
    ]
    if earlier:
        return []
    return _without_times(case, first) or [_error(case, first)]


def _without_times(case: Case, first: Seen) -> list[Cause]:
    """Return the failures of several ranks if no line has a time: which of them was first is not known."""
    found = {
        one.actor: one for one in reversed(candidates.failures_of_ranks(case)) if one.place.rank is not None
    }
    others = [one for one in found.values() if one.since is None and one.until is None]
    if first.since is not None or len({one.event.fields.get("reason") for one in others}) < 2:
        return []
    if len(others) != len(found) or len(others) > _MOST_UNTIMED:
        return []
    reason = f"{len(others)} ranks failed, and no line has a time: which was first is not known"
    others.sort(key=lambda one: one.place.rank or 0)
    return [Cause(one.event.message, "open", (one.place,), one, reason) for one in others]


def _local_address(case: Case) -> list[Cause]:
    """An address of one host that the others cannot reach, unless a rank failed before they tried."""
    found = unreachable.local_addresses(case)
    if not found or found[0].seen is None:
        return []
    tried = found[0].seen
    first = _first_of([one for one in candidates.failures_of_ranks(case) if one.actor != tried.actor])
    return [] if first is not None and is_before(first, tried) else found


def _earliest_error(case: Case) -> list[Cause]:
    """The earliest error, if no rank gave up waiting before; a peer's own error comes before a link error."""
    errors = [
        one
        for one in case.first.values()
        if one.event.message.kind == "error" and one.event.message.id not in candidates.LOST_CONNECTIONS
    ]
    first = _first_of(errors)
    if first is None or _is_after_a_wait(case, first):
        return []
    for one in errors:
        is_peer = _is_peer(first, one)
        names_back = one.peer is not None and one.peer.rank == first.place.rank
        if one is not first and is_peer and not names_back and not is_before(first, one):
            first = one
            break
    if (fault := _fault_of(case, first)) is not None:
        first = fault
    blamed = [one.peer for one in errors if one.peer is not None and one.peer.rank is not None]
    reporting = {one.place.rank for one in case.events}
    silent = [peer for peer in blamed if peer.rank not in reporting]
    if silent and blamed.count(silent[0]) > 1:
        reason = f"{blamed.count(silent[0])} ranks report errors of their connection to it"
        if silent[0].rank in case.ended:
            reason = f"{reason[:-2]}{silent[0].short}, which was ended from outside"
            return [Cause(first.event.message, "open", (first.place,), first, reason, (silent[0],))]
        return [Cause(messages()["HCM824"], "silent", (silent[0],), first, reason, (silent[0],))]
    fetch = (first.peer,) if first.peer is not None and first.peer in silent else ()
    return [_error(case, first)._replace(fetch=fetch)]


def _before_all_waits(case: Case) -> list[Cause]:
    """The earliest error, if it is of a rank that does not wait, from before the waits of all others.

    It says more than the operations in which the others then wait.
    """
    waits = [one for one in case.events if one.event.message.kind == "timeout"]
    waiting_actors = {one.actor for one in waits}
    timed = [one for one in waits if one.since is not None and not candidates.is_attempt(one)]
    found = _earliest_error(case) if timed else []
    first = found[0].seen if found else None
    if first is None or first.peer is not None or first.actor in waiting_actors:
        return []
    if first.place.rank is None:  # Another line of the same process may say that it waits.
        pid = first.event.pid or case.cluster.sources[first.event.file].pid
        if not pid or first.event.message.id in OF_SYSTEM or pid in {one.event.pid for one in waits}:
            return []
    return found if all(is_before(first, wait) for wait in timed) else []


def _is_peer(error: Seen, other: Seen) -> bool:
    """Whether another event is of the rank at the other end of an error."""
    return error.peer is not None and other.place.rank == error.peer.rank is not None


def _fault_of(case: Case, link: Seen) -> Seen | None:
    """Return the fault of its device that the other end of a failed link reports."""
    faults = (
        one
        for one in case.events
        if _is_peer(link, one) and one.event.message.kind != "timeout"
        if candidates.is_device_fault(one)
    )
    return next(faults, None)


def _first_of(errors: Sequence[Seen]) -> Seen | None:
    """Return the earliest of several errors; those without a time are last, and follow-ups after others."""

    def order(one: Seen) -> tuple[bool, float, bool]:
        time = one.time if one.time is not None else one.since
        return time is None, time or 0.0, one.event.message.id in candidates.FOLLOW_UP

    return min(errors, key=order, default=None)


def _is_after_a_wait(case: Case, error: Seen) -> bool:
    waits = [one for one in case.first.values() if _has_given_up(one)]
    return any(
        is_before(wait, error) and not _is_long_before(wait, error)
        for wait in waits
        if wait.actor != error.actor
    )


def _has_given_up(one: Seen) -> bool:
    """Whether a rank waited until a time limit; after an attempt, it tries again."""
    return one.event.message.kind == "timeout" and not candidates.is_attempt(one)


def _is_long_before(one: Seen, other: Seen) -> bool:
    """Whether an event is from an earlier job, whose lines the same log has."""
    return one.until is not None and other.since is not None and other.since - one.until > LONGEST_PAUSE


def _error(case: Case, first: Seen) -> Cause:
    alike = _alike(case, first)
    others = bool(case.first.keys() - {first.actor, *(one.actor for one in alike)})
    places = tuple(dict.fromkeys([first.place, *(one.place for one in alike)]))
    reason = "it is the earliest error of all ranks" if others and first.time is not None else ""
    return Cause(first.event.message, "order" if others else "alone", places, first, reason)


def _alike(case: Case, first: Seen) -> list[Seen]:
    """Return the errors of other ranks that say the same at about the same time: they have one cause."""
    return [
        one
        for one in case.first.values()
        if one.event.message is first.event.message
        if one.event.fields == first.event.fields and one.event.codes == first.event.codes
        if one.place.rank is not None and first.place.rank is not None and one.peer == first.peer
        if one.time is None or first.time is None or one.time - first.time <= _TOGETHER
    ]


def _waits(case: Case) -> list[Cause]:
    """All that is known is who waited: the rank that is missing, silent, late, or at the end of the waits."""
    timeouts = [one for one in case.events if one.event.message.kind == "timeout"]
    timeouts = [one for one in timeouts if _has_given_up(one)] or timeouts
    return waiting.causes(case, timeouts) if timeouts else []


def _effects(case: Case) -> list[Cause]:
    """Connections that ended alone: the cause is at an end that these lines do not show."""
    first = _first_of([one for one in case.events if one.event.message.id in candidates.LOST_CONNECTIONS])
    if first is None:
        return []
    if store := lost_hosts.of_store(case):
        return [store]
    blamed = [
        one.peer
        for one in case.events
        if one.event.message.id in candidates.LOST_CONNECTIONS and one.peer is not None
    ]
    own = (first.place,) if first.place != Place() else ()
    fetch = tuple(dict.fromkeys(blamed))[:1]
    places = () if fetch else own
    return [Cause(first.event.message, "open", places, first, "the other end ended it first", fetch or own)]


def _early_codes(case: Case) -> list[Cause]:
    """The code of a rank that does not wait, from before the time at which the first rank gave up waiting."""
    waits = [one for one in case.events if one.event.message.kind == "timeout"]
    waiting_actors = {one.actor for one in waits}
    codes = [
        one
        for one in case.first.values()
        if one.event.message.kind == "code" and one.actor not in waiting_actors
    ]
    first = _first_of([one for one in codes if waits and all(is_before(one, wait) for wait in waits)])
    reason = "it reports this before the first rank gave up waiting, and does not wait itself"
    if first is None and not waits:
        first = _before_lost_connections(case, codes)
        reason = "another process lost its connection just after it"
    if first is None:
        return []
    return [
        Cause(first.event.message, "order", (first.place,) if first.place != Place() else (), first, reason)
    ]


def _before_lost_connections(case: Case, codes: Sequence[Seen]) -> Seen | None:
    """Return the first code of a process from before all connections that others lost."""
    lost = [one for one in case.events if one.event.message.id in candidates.LOST_CONNECTIONS]
    own = [one for one in codes if one.time is not None and not one.event.message.id.startswith(_OF_HCCL)]
    first = _first_of(own)
    if first is None or first.time is None or not lost:
        return None
    times = [one.time for one in lost if one.actor != first.actor]
    return first if all(time is not None and first.time <= time for time in times) and times else None


def _codes(case: Case) -> list[Cause]:
    """Codes alone: the first one, and where the reason is."""
    if not case.events:
        return []
    first = case.events[0]
    fetch = (first.place,) if first.place != Place() else ()
    return [Cause(first.event.message, "open", fetch, first, "", fetch)]
