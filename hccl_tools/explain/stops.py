"""Jobs that a user, a container runtime or the scheduler ended, and the line that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.cause import DELAY, Cause
from hccl_tools.explain.locations import Place

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hccl_tools.explain.cause import Case, Confidence
    from hccl_tools.explain.events import Seen


#: The scheduler ended the job.
_BY_SCHEDULER = {"HCM713", "HCM716", "HCM919", "HCM926"}
#: A user did: Ctrl-C, docker compose, docker stop, a command on a screen.
BY_USER = {"HCM905", "HCM906", "HCM908", "HCM909", "HCM910", "HCM914"}
#: Keys and commands on a screen, below which a user may look at older logs.
_TYPED = {"HCM908", "HCM909", "HCM910"}
#: Seconds within which other ranks lose the rank that was stopped; a hang that a user ended takes longer.
_FOLLOWS_WITHIN = 120.0
_DIED, _SIGNALLED = "HCM907", "HCM906"
#: Lines with which all events are compared.
_MOST_STOPS = 16


def first_of(seen: Sequence[Seen]) -> list[Seen]:
    """Return the lines that say that the job was stopped: the first of each file; [] if none does.

    A container that docker stops after another one ended is a consequence: these lines do not count.
    """
    died = _Died(seen)
    found: dict[int, Seen] = {}
    for one in seen:
        if one.event.message.id == _SIGNALLED and died.before(one):
            continue
        if one.event.message.id in _BY_SCHEDULER | BY_USER:
            former = found.setdefault(one.event.file, one)
            if one.event.line < former.event.line:
                found[one.event.file] = one
    by_user = [one for one in found.values() if one.event.message.id in BY_USER]
    # A user gives the reason; the scheduler's line may follow from it.
    return sorted(by_user or list(found.values())[:1], key=_order)[:_MOST_STOPS]


def _order(one: Seen) -> tuple[bool, bool, float]:
    """The most telling line first: one that only a user writes, then the earliest one."""
    return one.event.message.id == _SIGNALLED, one.time is None, one.time or 0.0


class _Died:
    """The containers that ended by themselves: the first line of each file, and the first time of all."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        self._lines: dict[int, int] = {}
        self._time = float("inf")
        for one in seen:
            if one.event.message.id == _DIED:
                line = self._lines.get(one.event.file, one.event.line)
                self._lines[one.event.file] = min(line, one.event.line)
                self._time = min(self._time, one.time if one.time is not None else self._time)

    def before(self, one: Seen) -> bool:
        """Whether one of them ended before an event."""
        line = self._lines.get(one.event.file, one.event.line)
        return line < one.event.line or (one.time is not None and self._time < one.time)


def is_sure(stop: Seen, seen: Sequence[Seen]) -> bool:
    """Whether a line is surely about the job: a key or a command may have ended another program.

    Then a program below it says that it was interrupted.
    """
    return stop.event.message.id not in _TYPED or any(
        one.event.message.kind == "end" and one.event.message.id not in _TYPED
        for one in seen
        if one.event.file == stop.event.file and one.event.line > stop.event.line
    )


def is_after(one: Seen, stops: Sequence[Seen], sure: Collection[int] = ()) -> bool:
    """Whether an event follows from the end of the job: below one of its lines, or later.

    Args:
        sure: The ids of the stops that are surely about the job.
    """
    return any(_is_after(one, stop, is_sure=id(stop) in sure) for stop in stops)


def _is_after(one: Seen, stop: Seen, *, is_sure: bool) -> bool:
    is_typed = stop.event.message.id in _TYPED and not is_sure
    if one.event.file == stop.event.file and not is_typed:
        return one.event.line > stop.event.line
    if one.since is None or (is_typed and one.time is None):
        return False
    if stop.time is not None or stop.since is None:
        return stop.time is not None and one.since > stop.time + DELAY
    # Without a time: the job still ran at the last time before the line, and what failed soon after follows.
    return stop.since < one.since <= stop.since + _FOLLOWS_WITHIN


#: Ctrl-C, or the SIGINT with which a user stops a job.
_INTERRUPTED = "HCM897"
#: Seconds within which exceptions follow from the end of a job that a user stopped.
_PROGRAM_FOLLOWS_WITHIN = 600.0
#: A signal ended the launcher, and Kubernetes stopped a container.
_SIGNALS, _POD_STOPPED = {"HCM731", "HCM978"}, "HCM975"


def by_stop(case: Case) -> list[Cause]:
    """All that is known is that the scheduler, a user or a signal ended the job."""
    stop = case.stop or next((one for one in case.cluster.seen if one.event.message.id == _INTERRUPTED), None)
    if stop is None:
        return by_signal(case)
    sure: Confidence = "named" if is_sure(stop, case.cluster.seen) else "open"
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
        if one.since - stop.since > _PROGRAM_FOLLOWS_WITHIN
    )
    return next(found, None)


def by_signal(case: Case) -> list[Cause]:
    """A signal ended the launcher; what Kubernetes says of its pod stands beside it."""
    ends = [one for one in case.cluster.seen if one.event.message.id in {*_SIGNALS, _POD_STOPPED}]
    signal = next((one for one in ends if one.event.message.id in _SIGNALS), None)
    if signal is None or not all(is_after(one, [signal]) for one in case.events):
        return []
    pod = next((one for one in ends if one.event.message.id == _POD_STOPPED), None)
    return [Cause(signal.event.message, "named", (), signal, "", (), pod)]
