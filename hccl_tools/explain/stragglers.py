"""Find a rank that comes last to the collectives, by the times at which the ranks have begun them."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.recorder_traces import Trace

#: The fewest collectives that all ranks have begun, and the part of them to which one rank came last.
_FEWEST, _PART = 8, 0.8
#: Seconds by which it is late at least, and how many times more than the spread of the others.
_LEAST, _TIMES_MORE = 0.05, 5.0
#: Nanoseconds in a second.
_SECOND = 1e9


class Straggler(NamedTuple):
    """The rank that comes last: to ``times`` of the last ``of`` collectives, ``seconds`` after the others."""

    rank: int
    title: str
    times: int
    of: int
    seconds: float


def find(traces: Sequence[Trace]) -> Straggler | None:
    """Return the rank that comes last to most collectives of a group, None if none does.

    The clocks of hosts differ: the time of a rank counts against its usual one only if the others agree.
    """
    names = {group.name: group.title for trace in traces for group in trace.groups}
    found = [one for name, title in names.items() if (one := _in_group(traces, name, title)) is not None]
    return max(found, key=lambda one: one.seconds, default=None)


def _in_group(traces: Sequence[Trace], name: str, title: str) -> Straggler | None:
    begun: dict[int, dict[int, int]] = {}
    users = 0
    for trace in traces:
        own = {one.number: one.created for one in trace.calls if one.group == name and one.created}
        users += bool(own)
        for number, created in own.items():
            begun.setdefault(number, {})[trace.rank] = created
    common = [times for _, times in sorted(begun.items()) if len(times) == users]
    if users < 2 or len(common) < _FEWEST:
        return None
    last = [max(times, key=lambda rank: times[rank]) for times in common]
    rank, number = Counter(last).most_common(1)[0]
    if number < _PART * len(common):
        return None
    lates = []
    spreads = []
    for times in common:
        others = [time for one, time in times.items() if one != rank]
        lates.append((times[rank] - max(others)) / _SECOND)
        spreads.append((max(others) - min(others)) / _SECOND)
    late = median(lates)
    if late < max(_LEAST, _TIMES_MORE * median(spreads)):
        return None
    return Straggler(rank, title, number, len(common), late)
