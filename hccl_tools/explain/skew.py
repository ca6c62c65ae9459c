"""Ranks that began to make a communicator later than the others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Case, Cause, is_before
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.waiting import ranks_text

if TYPE_CHECKING:
    from hccl_tools.explain.events import Seen

_LATE = "HCM825"
#: Lines that a rank writes when it begins: CANN's entry line, else the first one with its rank.
_BEGINNINGS = ("HCM320", "HCM321")


def late_starts(case: Case) -> list[Cause]:
    """Return the ranks that began after the first one had given up, if a rank gave up a connection."""
    if not any(one.event.message.limit == "connect" for one in case.events):
        return []
    limit = case.cluster.waits["connect"]
    for message in _BEGINNINGS:
        begun: dict[str, dict[str, Seen]] = {}
        for one in case.cluster.seen:
            if one.event.message.id == message and one.time is not None:
                begun.setdefault(one.event.fields.get("identifier", ""), {}).setdefault(one.actor, one)
        for starts in begun.values():
            first = min(starts.values(), key=_time)
            late = [one for one in starts.values() if _time(one) - _time(first) > limit]
            late = [one for one in late if not _still_waited(case, first, one)]
            if late:
                return [_cause(sorted(late, key=_time), first, limit)]
    return []


def _still_waited(case: Case, first: Seen, late: Seen) -> bool:
    """Whether the first rank gave up only after the late one had begun: it was not too late for that rank."""
    return any(
        one.actor == first.actor and one.event.message.limit == "connect" and is_before(late, one)
        for one in case.events
    )


def _time(one: Seen) -> float:
    return one.time or 0.0


def _cause(late: list[Seen], first: Seen, limit: float) -> Cause:
    places = tuple(dict.fromkeys(one.place for one in late))
    spread = _time(late[-1]) - _time(first)
    reason = (
        f"it began {spread:.1f} s after {ranks_text([first.place])}, and the others wait for {limit:.0f} s:"
        f" HCCL_CONNECT_TIMEOUT above {spread:.0f} would bridge it"
    )
    if late[-1].place.host != first.place.host:
        reason += ", if the clocks of both hosts agree"
    return Cause(messages()[_LATE], "order", places, late[-1], reason, places, first)
