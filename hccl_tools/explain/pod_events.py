"""Lines of Kubernetes about pods in the order of time: what was over when a container of a pod started."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.explain.events import Seen

STARTED, _SCHEDULED = "HCM904", "HCM755"
#: The pod ended: Kubernetes evicted it, stopped it, or it was deleted.
_ENDS_POD = {"HCM750", "HCM751", "HCM974", "HCM975"}
#: A volume, an image or a node that a pod waits for before its container starts.
_BEFORE_START = {"HCM753", "HCM754", "HCM876", "HCM877", "HCM879"}
_FAULTS = {"cause", "error", "code"}
#: Ages are rounded: 3h5m, 26h.
_OLDER, _ROUNDED = 1.2, 60
_POD = re.compile(r"\bpods?/([a-z0-9][a-z0-9.-]{0,252})")
#: How long ago an event was: ``2m10s``; the first one of ``2m10s (x3 over 14m)`` is that of the last time.
_AGO = re.compile(
    r"(?<![\w.:-])(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,4})m)?(?:(\d{1,4})s)?(?<=[dhms])(?![\w.:-])"
)
_SECONDS = (86_400, 3_600, 60, 1)


def over(seen: Sequence[Seen]) -> set[int]:
    """Return the ids of the faults after which a container of the same pod started."""
    starts: dict[object, list[Seen]] = {}
    for one in seen:
        if one.event.message.id == STARTED:
            for key in {pod_of(one), one.event.file} - {""}:
                starts.setdefault(key, []).append(one)
    written = {one.event.fields["server"] for one in seen if one.event.fields.get("server")}
    faults = [one for one in seen if one.event.message.id in _BEFORE_START]
    return {id(one) for one in faults if pod_of(one) in written or _is_over(one, _of_pod(one, starts))}


def of_former(seen: Sequence[Seen]) -> set[int]:
    """Return the ids of the ends of pods that are known to be older than the start of a pod of the same name.

    A pod that was evicted or deleted does not start again: the one with its name is a new one.
    """
    starts: dict[str, list[Seen]] = {}
    for one in seen:
        if one.event.message.id == STARTED and (pod := pod_of(one)):
            starts.setdefault(pod, []).append(one)
    ends = [one for one in seen if one.event.message.id in _ENDS_POD]
    former = {
        id(one) for one in ends if any(_is_younger(start, one) for start in starts.get(pod_of(one), ()))
    }
    return former | _before_their_pods(seen)


def _before_their_pods(seen: Sequence[Seen]) -> set[int]:
    """Return the ids of the faults in descriptions of pods that are older than the pod itself."""
    ages: dict[int, dict[str, int]] = {}
    for one in seen:
        if one.event.message.id == _SCHEDULED and (age := _age(one)) is not None:
            of_file = ages.setdefault(one.event.file, {})
            of_file[pod_of(one)] = min(of_file.get(pod_of(one), age), age)
    faults = [one for one in seen if one.event.file in ages and one.event.message.kind in _FAULTS]
    found = set()
    for one in faults:
        pods, age = ages[one.event.file], _age(one)
        own = pods.get(pod_of(one)) if pod_of(one) in pods or len(pods) > 1 else next(iter(pods.values()))
        if age is not None and own is not None and age > _OLDER * own + _ROUNDED:
            found.add(id(one))
    return found


def _is_younger(start: Seen, end: Seen) -> bool:
    """Whether a start is known to be later than an end, by how long ago both were, or by their times."""
    ages = _age(start), _age(end)
    if ages[0] is not None and ages[1] is not None:
        return ages[0] < ages[1]
    return start.time is not None and end.time is not None and start.time > end.time


def _of_pod(fault: Seen, starts: dict[object, list[Seen]]) -> Iterable[Seen]:
    """Return the starts of the pod of a fault, or those in its file if the lines name no pods."""
    pod = pod_of(fault)
    same = starts.get(pod, []) if pod else []
    return same or [one for one in starts.get(fault.event.file, ()) if not pod or not pod_of(one)]


def _is_over(fault: Seen, starts: Iterable[Seen]) -> bool:
    return any(_is_later(start, fault) for start in starts)


def _is_later(start: Seen, fault: Seen) -> bool:
    ages = _age(start), _age(fault)
    if ages[0] is not None and ages[1] is not None:
        return ages[0] <= ages[1]
    if start.time is not None and fault.time is not None:
        return start.time >= fault.time
    return start.event.file == fault.event.file and start.event.line > fault.event.line


def pod_of(one: Seen) -> str:
    """Return the pod that a line names, "" if it names none."""
    found = _POD.search(one.event.text)
    return one.event.fields.get("pod", "") or (found[1] if found else "")


def _age(one: Seen) -> int | None:
    found = _AGO.search(one.event.text)
    if found is None:
        return None
    return sum(int(number or 0) * seconds for number, seconds in zip(found.groups(), _SECONDS, strict=True))
