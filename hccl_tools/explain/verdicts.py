"""The devices that HCCL's heartbeat found at fault, joined with what their ranks, hosts and peers report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain import candidates, heartbeats, pods, stacks, ties
from hccl_tools.explain.candidates import FOLLOW_UP
from hccl_tools.explain.cause import Case, Cause, is_before
from hccl_tools.explain.cluster import RanksOfFiles
from hccl_tools.explain.knowledge.message import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.explain.cause import Confidence
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.locations import Place

#: HCCL's heartbeat was lost, for which the process, its host or the network can be the reason.
_LOST = heartbeats.LOST
#: The kernel lost a device on the PCIe bus, and what the rank of such a device reports at about that time.
_PCIE = {"HCM930", "HCM931", "HCM932"}
_MOST_PCIE = 64
#: The kinds of the events of a rank, the most telling first.
_KINDS = ("cause", "error", "code")
#: A rank did not take part any more, for which its stack can say what it does.
_STUCK = "Stuck"
#: HCCL reports a failed completion with the device itself as the place (heartbeat.cc, SetStatus(uid_, uid_)).
_SEEN_THERE = "cqe"
_DEVICE_LOST, _PCIE_WITHIN = {"EL0001", "507010", "507901", "507899"}, 300.0
#: A process, a container or a pod ended, and the line may not say of which rank.
_ENDS_OF_PROCESSES = {
    *("HCM702", "HCM710", "HCM712", "HCM991", "HCM726", "HCM750", "HCM751", "HCM752"),
    *("HCM971", "HCM974", "HCM988", "HCM790", "HCM801", "HCM802", "HCM853", "HCM854"),
}


def causes(case: Case) -> list[Cause]:
    """Return a cause for each device at fault: HCCL's own verdict comes before every inference."""
    reported = _Reported(case)
    found: dict[str, Cause] = {}
    for one in case.events:
        if one.event.message.kind == "verdict" and one.peer is not None and one.peer.name not in found:
            if _SEEN_THERE in one.event.fields.get("reason", "").lower() and not reported.has_own(one.peer):
                continue  # The device is the one that saw the error, not the one at fault.
            if reported.has_reason(one, one.peer):
                continue
            found[one.peer.name] = reported.cause(one, one.peer)
    if any(map(_is_stuck, found.values())) and (shown := stacks.elsewhere(case)):
        return shown
    is_lost = all(cause.message.id == _LOST for cause in found.values())
    if found and is_lost and (apart := heartbeats.apart(case)):
        return apart
    alive = [cause for cause in found.values() if cause.places[0].rank not in case.ended]
    # A rank that the launcher ended is lost as a consequence.
    joined = heartbeats.joined(alive or list(found.values()))
    joined = heartbeats.with_work(case, joined)
    return [pods.named(cause, case.cluster.sources) for cause in joined]


def _is_stuck(cause: Cause) -> bool:
    said = cause.seen.event.fields.get("reason", "") if cause.seen is not None else ""
    return _STUCK in said or _STUCK in cause.reason


class _Reported:
    """What is reported beside the verdicts, of which a job of many ranks has as many: each is looked up."""

    def __init__(self, case: Case) -> None:
        self._errors = _errors_of_ranks(case.events)
        self._of_files = RanksOfFiles(case.cluster)
        self._stop = case.stop
        self._faults = list(
            {one.event.message.id: one for one in reversed(case.events) if _is_fault(one)}.values()
        )
        self._failed = _first_failure(case)
        self._ends = _first_ends(case.events)
        self._pcie = [one for one in case.cluster.seen if one.event.message.id in _PCIE][:_MOST_PCIE]
        self._active = {one.place.rank for one in case.events} | case.ended
        self._blamed = _blamed_ends(case.events)
        self._of_host: dict[str, list[Place]] = {}
        for place in case.cluster.places.by_rank.values():
            self._of_host.setdefault(place.host, []).append(place)

    def has_own(self, device: Place) -> bool:
        """Whether the rank of a device reports an error of its own."""
        return bool(self._errors.get(device.rank))

    def has_reason(self, verdict: Seen, device: Place) -> bool:
        """Whether a fault or the end of the job is earlier than a report, which follows from it."""
        if self._errors.get(device.rank):
            return False
        is_stopped = self._stop is not None and not is_before(verdict, self._stop)
        if is_stopped or any(is_before(one, verdict) for one in self._faults):
            return True
        return self._has_failed_before(heartbeats.arrival(verdict))

    def _has_failed_before(self, lost: float | None) -> bool:
        """Whether a rank failed before a heartbeat was lost: its launcher then ends the others."""
        return lost is not None and self._failed is not None and self._failed <= lost

    def cause(self, verdict: Seen, device: Place) -> Cause:
        """Return the cause for a device that HCCL has found at fault, which may have an error of its own."""
        own = [
            event
            for event in self._errors.get(device.rank, ())
            if event.time is None or verdict.time is None or event.time <= verdict.time
        ]
        if not own:
            return self._without_error(verdict, device)
        first = min(own, key=lambda event: _KINDS.index(event.event.message.kind))
        if (lost := self._lost_on_pcie(first)) is not None:
            codes = ", ".join(first.event.codes)
            reason = f"at that time {device.short} reports that its device does not answer ({codes})"
            return Cause(lost.event.message, "order", (device,), lost, reason, (), first)
        blamed, number = self._blamed.get(first.event.message.id, (None, 0))
        if blamed is not None and first.peer == blamed and blamed.rank != first.place.rank:
            reason = f"{number} ranks report errors of their connection to it"
            return Cause(first.event.message, "order", (blamed,), first, reason)
        reason = f"HCCL's heartbeat names the same device ({verdict.event.fields.get('reason', 'lost')})"
        # An error that is not a cause by itself can be a consequence of what the others report.
        sure: Confidence = "named" if first.event.message.kind == "cause" else "order"
        return Cause(first.event.message, sure, (device,), first, reason)

    def _without_error(self, verdict: Seen, device: Place) -> Cause:
        is_lost = verdict.event.message.id == _LOST
        if is_lost and (end := self._end_of_a_process(verdict, device)) is not None:
            reason = f"HCCL's heartbeat lost {device.name} then, and no other process ended before"
            end = self._in_full(end)
            return Cause(end.event.message, "order", (device,), end, reason)
        places = self._lost_with(device) if is_lost else (device,)
        return Cause(verdict.event.message, "reported", places, verdict, "", places)

    def _lost_on_pcie(self, own: Seen) -> Seen | None:
        """Return what the kernel reports of the PCIe bus about when a rank lost its device."""
        if not _DEVICE_LOST & set(own.event.codes):
            return None
        return next((one for one in self._pcie if _are_near(one, own)), None)

    def _end_of_a_process(self, verdict: Seen, lost: Place) -> Seen | None:
        """Return the end of a process or container before a heartbeat was lost, if there is only one."""
        kinds, logs, pids, first = set(), set(), set(), None
        for one in self._ends:
            if lost.rank is not None and one.place.rank not in {None, lost.rank}:
                continue
            if is_before(verdict, one) or self._is_elsewhere(one, lost):
                continue
            first = one if first is None or is_before(one, first) else first
            kinds.add(one.event.message.id)
            logs.add(one.event.file)
            pids.add(one.event.fields.get("pid", one.event.pid))
            if len(kinds) > 1 and len(logs) > 1 and len(pids - {""}) != 1:
                return None
        return first

    def _is_elsewhere(self, end: Seen, lost: Place) -> bool:
        """Whether the file with the end of a process, which names no rank, is of another host."""
        there = (
            self._of_files.ranks(end.event.file) if end.place.rank is None and lost.rank is not None else ()
        )
        return bool(there) and lost.rank not in there

    def _in_full(self, end: Seen) -> Seen:
        """Return the line about the same end in the same file that says more, the same one if none does."""
        fault = fault_of(end.event.message.id)
        same = (
            one
            for one in self._ends
            if one.event.file == end.event.file and fault_of(one.event.message.id) == fault
        )
        return max((end, *same), key=lambda one: len(one.event.fields))

    def _lost_with(self, lost: Place) -> tuple[Place, ...]:
        """Return a lost rank, or all ranks of its host if none of them has reported anything."""
        together = self._of_host.get(lost.host, []) if lost.host else []
        is_whole = len(self._of_host) > 1 and not any(place.rank in self._active for place in together)
        return tuple(together) if together and is_whole else (lost,)


def _is_fault(one: Seen) -> bool:
    message = one.event.message
    is_own = message.kind == "error" and one.place.rank is not None and one.peer is None
    is_own = is_own and message.id not in FOLLOW_UP
    return (message.kind == "cause" or is_own) and message.id not in _ENDS_OF_PROCESSES


def _first_failure(case: Case) -> float | None:
    """Return the latest time that the first failure of a rank's own can have; None if no rank has one.

    An exception of a program about its own data or code does not follow from a lost heartbeat.
    """
    latest: float | None = None
    named = {one.actor for one in case.events if one.event.message.id == candidates.OBSERVED_FIRST}
    failures = candidates.failures_of_ranks(case)
    own = set(map(id, ties.of_programs(failures)))
    for one in (*failures, *(one for one in case.events if _is_fault(one))):
        if one.place.rank is None or one.peer is not None:
            continue
        until = one.until
        if id(one) in own and until is None:
            until = one.since if one.since is not None else 0.0
        # Without its own time, an exception is that of the rank only if its launcher says that it failed.
        if until is not None and (one.time is not None or one.actor in named or id(one) in own):
            latest = until if latest is None else min(latest, until)
    return latest


def _are_near(one: Seen, other: Seen) -> bool:
    hosts = {place.host for place in (one.place, other.place) if place.host}
    times = one.time, other.time if other.time is not None else other.since
    if len(hosts) > 1 or times[0] is None or times[1] is None:
        return False
    return abs(times[0] - times[1]) <= _PCIE_WITHIN


def _errors_of_ranks(events: Iterable[Seen]) -> dict[int | None, list[Seen]]:
    """Return the events that can explain a verdict: by rank and kind the first with and without a time."""
    found: dict[int, dict[tuple[str, bool], Seen]] = {}
    for one in events:
        kind, rank = one.event.message.kind, one.place.rank
        if rank is not None and kind in {"cause", "error", "code"}:
            found.setdefault(rank, {}).setdefault((kind, one.time is None), one)
    return {rank: list(first.values()) for rank, first in found.items()}


def _first_ends(events: Iterable[Seen]) -> list[Seen]:
    """Return the first end of a process of each kind, log and rank."""
    found: dict[tuple[str, int, int | None], Seen] = {}
    for one in events:
        if one.event.message.id in _ENDS_OF_PROCESSES:
            found.setdefault((one.event.message.id, one.event.file, one.place.rank), one)
    return list(found.values())


def _blamed_ends(events: Iterable[Seen]) -> dict[str, tuple[Place, int]]:
    """Return by message the one other end that most ranks blame, if these are several, and their number."""
    blaming: dict[str, dict[Place, set[str]]] = {}
    for one in events:
        if one.peer is not None and one.peer.rank is not None:
            blaming.setdefault(one.event.message.id, {}).setdefault(one.peer, set()).add(one.actor)
    found = {}
    for message, ends in blaming.items():
        most = max(map(len, ends.values()))
        named = [peer for peer, actors in ends.items() if len(actors) == most]
        if most > 1 and len(named) == 1:
            found[message] = (named[0], most)
    return found
