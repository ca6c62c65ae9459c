"""The dumps of flight recorders with the errors in the logs: why a rank is behind, which link failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain import candidates, recorder
from hccl_tools.explain.cause import Case, Cause, is_before

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hccl_tools.explain.events import Seen

#: A rank that is behind by its own dump, one without a dump, and an operation that all ranks have begun.
_BEHIND, _WITHOUT_DUMP, _TRANSPORT = "HCM895", "HCM941", "HCM940"
#: What says which rank is at fault.
_SHOWN = {_BEHIND, "HCM894"}
#: The kernel killed a process.
_KILLED = {"HCM801", "HCM802"}


def causes(case: Case) -> list[Cause]:
    """Return what the dumps show, or the error in the logs from which it follows."""
    return _joined(case, recorder.causes(case))


def despite_named_faults(case: Case) -> list[Cause]:
    """Return what the dumps show, if the logs name faults that cannot be its reason.

    These are faults of ranks that wait, as their own dumps show, and processes that the kernel killed
    although all ranks have left a dump.
    """
    named = [one for one in case.events if one.event.message.kind == "cause"]
    if not named or not case.cluster.traces:
        return []
    shown = recorder.causes(case)
    if not shown or shown[0].message.id not in _SHOWN or shown[0].confidence != "compared":
        return []
    missing = {place.rank for place in shown[0].places}
    dumped = {trace.rank for trace in case.cluster.traces}
    alive = dumped - missing
    is_whole = len(dumped) >= max(case.cluster.size, len(dumped | missing))
    for one in named:
        is_killed = is_whole and one.place.rank is None and one.event.message.id in _KILLED
        if one.place.rank not in alive and not is_killed:
            return []
    return _joined(case, shown)


def before_failures(case: Case) -> list[Cause]:
    """Return what the dumps show, if ranks failed because they had waited."""
    return _joined(case, recorder.before_failures(case, candidates.failures_of_ranks(case)))


def _joined(case: Case, found: list[Cause]) -> list[Cause]:
    if not found or found[0].message.id not in {_BEHIND, _WITHOUT_DUMP, _TRANSPORT}:
        return found
    shown = found[0]
    ranks = {place.rank for place in shown.places} - {None}
    errors = _before_the_waits(case, _errors(case, ranks))
    if shown.message.id != _WITHOUT_DUMP:  # It may have gone on after another error, as its dump shows.
        errors = [one for one in errors if candidates.is_device_fault(one)]
    if errors:
        return [_of_fault(errors[0], shown)]
    if shown.message.id == _TRANSPORT:
        return [_with_link(case, shown)]
    return found


def _with_link(case: Case, shown: Cause) -> Cause:
    """Return that all ranks have begun an operation with the earliest error of a link in their logs."""
    ranks = {place.rank for place in shown.places}
    links = [one for one in case.events if one.event.message.id in candidates.LINK_ERRORS]
    links = _before_the_waits(case, [one for one in links if one.place.rank in ranks])
    if not links:
        return shown
    first = next((one for one in links if one.peer is not None and one.actor == links[0].actor), links[0])
    reason = f"{shown.reason}; {first.place.short} reports that {first.event.message.meaning}"
    if first.peer is not None and first.peer.name:
        reason += f"; the other end is {first.peer.name}"
    return shown._replace(reason=reason, beside=first)


def _errors(case: Case, ranks: Collection[int | None]) -> list[Seen]:
    """Return the errors of ranks themselves that follow from no other event."""
    own = [one for one in case.events if one.place.rank in ranks and one.peer is None]
    set_aside = candidates.FOLLOW_UP | candidates.LOST_CONNECTIONS | candidates.LINK_ERRORS
    own = [one for one in own if one.event.message.id not in set_aside]
    return [
        one
        for one in own
        if one.event.message.kind == "error"
        or (one.event.message.kind == "code" and candidates.is_device_fault(one))
    ]


def _before_the_waits(case: Case, events: Sequence[Seen]) -> list[Seen]:
    """Return the events that no wait of another rank is known to precede, the earliest first."""
    waits = [one for one in case.events if one.event.message.kind == "timeout"]
    waits = [one for one in waits if not candidates.is_attempt(one)]
    return [
        one for one in events if not any(is_before(wait, one) for wait in waits if wait.actor != one.actor)
    ]


def _of_fault(fault: Seen, shown: Cause) -> Cause:
    """Return the fault of a rank for which the others wait, with what the dumps show beside it."""
    others = [one for one in (shown.seen, shown.beside) if one is not None and one.place != fault.place]
    beside = others[0] if others else None
    return Cause(fault.event.message, "waits", (fault.place,), fault, shown.reason, (), beside)
