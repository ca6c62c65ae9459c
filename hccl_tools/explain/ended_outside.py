"""Jobs of which all that is known is that the scheduler, a user or a signal ended them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain import stops
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.locations import Place

if TYPE_CHECKING:
    from hccl_tools.explain.cause import Case, Confidence
    from hccl_tools.explain.events import Seen

#: Ctrl-C, or the SIGINT with which a user stops a job.
_INTERRUPTED = "HCM897"
#: Seconds within which exceptions follow from the end of a job that a user stopped.
_FOLLOWS_WITHIN = 600.0
#: A signal ended the launcher, and Kubernetes stopped a container.
_SIGNALS, _POD_STOPPED = {"HCM731", "HCM978"}, "HCM975"


def by_stop(case: Case) -> list[Cause]:
    """All that is known is that the scheduler, a user or a signal ended the job."""
    stop = case.stop or next((one for one in case.cluster.seen if one.event.message.id == _INTERRUPTED), None)
    if stop is None:
        return by_signal(case)
    sure: Confidence = "named" if stops.is_sure(stop, case.cluster.seen) else "open"
    if (later := _long_after(case, stop)) is not None:
        # The program was probably started again on the same screen.
        reason = "it is long after the line with which the job above it was stopped"
        return [
            Cause(
                later.event.message, "open", (later.place,) if later.place != Place() else (), later, reason
            ),
            Cause(stop.event.message, "open", (), stop),
        ]
    return [Cause(stop.event.message, sure, (), stop)]


def _long_after(case: Case, stop: Seen) -> Seen | None:
    """Return the first exception of a rank below a stop in its log that is too late to follow from it."""
    found = (
        one
        for one in case.cluster.seen
        if one.event.message.id == "HCM810" and one.event.file == stop.event.file
        if one.event.line > stop.event.line and one.since is not None and stop.since is not None
        if one.since - stop.since > _FOLLOWS_WITHIN
    )
    return next(found, None)


def by_signal(case: Case) -> list[Cause]:
    """A signal ended the launcher; what Kubernetes says of its pod stands beside it."""
    ends = [one for one in case.cluster.seen if one.event.message.id in {*_SIGNALS, _POD_STOPPED}]
    signal = next((one for one in ends if one.event.message.id in _SIGNALS), None)
    if signal is None or not all(stops.is_after(one, [signal]) for one in case.events):
        return []
    pod = next((one for one in ends if one.event.message.id == _POD_STOPPED), None)
    return [Cause(signal.event.message, "named", (), signal, "", (), pod)]
