"""How far the clocks of the hosts are apart, from moments that their processes share."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

from hccl_tools.explain import screens
from hccl_tools.explain.identities import COMMUNICATOR, JOINED, SETUP, Key, key
from hccl_tools.explain.locations import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.explain.events import Event
    from hccl_tools.explain.sources import Source

#: Seconds by which the clocks of two hosts may differ without a note.
_TOLERANCE = 5.0
#: Time zones differ by multiples of these seconds, from half an hour on; ranks start within the margin.
_ZONE, _LEAST_ZONE, _ZONE_MARGIN = 900.0, 1800.0, 120.0
_HOUR = 3600.0
#: Steps that the logs of two hosts must share, hosts, and the bytes of the ends of their logs.
_FEWEST_STEPS, _MOST_HOSTS, _MOST_BYTES = 5, 64, 1 << 18
#: The greatest difference between two clocks: the same steps of two days are those of two jobs.
_MOST_SHIFT = 14 * _HOUR
#: A rank begins to make a communicator; the ranks do so at different times.
_ENTRY = "HCM320"
#: Waits for a device: the rank knows the addresses of all ranks, which have met before.
_AFTER_MEETING = {"HCM220", "HCM221", "HCM222", "HCM223", "HCM237", "HCM238", "HCM239", "HCM290", "HCM293"}

#: The earliest time of each host, by communicator.
_Moments = dict[str, dict[str, float]]


def shifts(
    events: Sequence[Event],
    sources: Sequence[Source],
    known: Mapping[Key, Place],
    folders: Sequence[str],
    limits: Mapping[str, float],
) -> tuple[dict[str, float], list[str]]:
    """Return by how many seconds the clock of each host is ahead, and sentences for the user.

    All ranks of a communicator write its key facts, or that they have joined it, right after they have met.
    Without these lines the times of the same steps of the training are compared, in which all ranks meet,
    else those at which the ranks began: the clocks differ if these differ by a time zone, or by more than the
    ranks can have waited for each other.

    Args:
        folders: The folder of each source that is probably that of its host: the name of a host that no
            line names.
        limits: The time limits in seconds: see ``Cluster.waits``.
    """
    hosts = [(one, known.get(key(one, sources), Place()).host or folders[one.file]) for one in events]
    met = _moments(hosts, (COMMUNICATOR, JOINED))
    found = _differences(met, _TOLERANCE)
    if found is None:
        found = _by_steps(sources, folders)
    if found is None:
        begun = _moments(hosts, (SETUP, _ENTRY))
        found = {
            host: _zone(shift) or shift
            for host, shift in (_differences(begun, limits["connect"]) or {}).items()
            if _zone(shift) or _have_met(host, hosts)
        }
        failed = _first_failures(hosts, limits)
        if _spread(failed, found) > _spread(failed, {}):
            found = {}  # The failures are at the same time as they are: a rank began late, or again.
    return found, [_sentence(host, shift) for host, shift in found.items()]


def _first_failures(events: Iterable[tuple[Event, str]], limits: Mapping[str, float]) -> dict[str, float]:
    """Return the time of the first failure on each host; that of a wait is its beginning."""
    found: dict[str, float] = {}
    for event, host in events:
        if host and event.time is not None and event.message.kind not in {"fact", "end"}:
            time = event.time - limits.get(event.message.limit, 0.0)
            found[host] = min(found.get(host, time), time)
    return found


def _spread(times: Mapping[str, float], shifts: Mapping[str, float]) -> float:
    corrected = [time - shifts.get(host, 0.0) for host, time in times.items()]
    return max(corrected) - min(corrected) if corrected else 0.0


def _moments(events: Iterable[tuple[Event, str]], messages: Sequence[str]) -> _Moments:
    moments: _Moments = {}
    for event, host in events:
        group = event.fields.get("identifier", "")
        if event.message.id in messages and event.time is not None and host and group:
            of_host = moments.setdefault(f"{event.message.id} {group}", {})
            of_host[host] = min(of_host.get(host, event.time), event.time)
    return moments


def _differences(moments: _Moments, tolerance: float) -> dict[str, float] | None:
    """Return the differences to the middle host in the communicator of most hosts; None if there is none."""
    several = [times for times in moments.values() if len(times) > 1]
    if not several:
        return None
    times = max(several, key=len)
    middle = median_low(times.values())
    return {host: time - middle for host, time in times.items() if abs(time - middle) > tolerance}


def _by_steps(sources: Sequence[Source], folders: Sequence[str]) -> dict[str, float] | None:
    """Return the differences between the times at which the hosts write the same steps; None if they do not.

    The ranks of a training meet in each step, so that the difference is the same in all of them.
    """
    steps: dict[str, dict[int, float]] = {}
    for source, folder in zip(sources, folders, strict=True):
        host = source.host or source.host_folder or folder
        if host and source.is_program_log and not source.is_run and len(steps) < _MOST_HOSTS:
            for number, time in screens.steps_at_end(source, _MOST_BYTES).items():
                steps.setdefault(host, {}).setdefault(number, time)
    several = {host: times for host, times in steps.items() if len(times) >= _FEWEST_STEPS}
    if len(several) < 2:
        return None
    first = next(iter(several.values()))
    shifts = {host: _constant(first, times) for host, times in several.items()}
    if any(shift is None for shift in shifts.values()):
        return None  # Their steps are not those of one job, or not of the same time.
    known = {host: shift for host, shift in shifts.items() if shift is not None}
    middle = median_low(known.values())
    return {host: shift - middle for host, shift in known.items() if abs(shift - middle) > _TOLERANCE}


def _constant(times: Mapping[int, float], others: Mapping[int, float]) -> float | None:
    """Return the difference between the times of the same steps, None if it is not always the same."""
    both = times.keys() & others.keys()
    differences = [others[number] - times[number] for number in both]
    if len(both) < _FEWEST_STEPS or max(differences) - min(differences) > _TOLERANCE:
        return None
    shift = median_low(differences)
    return shift if abs(shift) <= _MOST_SHIFT else None


def _zone(shift: float) -> float:
    """Return the difference of the time zones that a shift can be, 0 if it is none."""
    zone = round(shift / _ZONE) * _ZONE
    return zone if abs(zone) >= _LEAST_ZONE and abs(shift - zone) <= _ZONE_MARGIN else 0.0


def _have_met(host: str, events: Iterable[tuple[Event, str]]) -> bool:
    """Whether a process of a host was past the meeting of all ranks: it cannot have been too late for it."""
    return any(
        event.message.id in _AFTER_MEETING or event.message.limit == "operation"
        for event, its_host in events
        if its_host == host
    )


def _sentence(host: str, shift: float) -> str:
    direction = "ahead" if shift > 0 else "behind"
    if abs(shift) >= _HOUR and shift % (_HOUR / 2) == 0:
        return (
            f"the clock of {host} is {abs(shift) / _HOUR:g} h {direction} (another time zone); corrected here"
        )
    return f"the clock of {host} is {abs(shift):.0f} s {direction}; corrected here"
