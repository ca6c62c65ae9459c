"""Which rank is behind: dumps of flight recorders and torch's lines on its work, joined with the stacks."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from hccl_tools.explain import recorder_groups, stacks
from hccl_tools.explain.cause import Case, Cause
from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.recorder_traces import Call, Group, Trace
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.cause import Confidence
    from hccl_tools.explain.recorder_groups import Found, Wait
    from hccl_tools.explain.stacks import Stack


#: What each finding is called.
_MESSAGES = {
    "operation": "HCM894",
    "size": "HCM894",
    "order": "HCM894",
    "behind": "HCM895",
    "unknown": "HCM941",
    "transport": "HCM940",
    "times": "HCM976",
}
_SLOW, _ELSEWHERE = "HCM942", "HCM996"
#: The lines of torch's watchdog: a collective that is late, and the numbers of the last ones.
_LATE, _LAST = "HCM690", "HCM943"
#: The end of a wait, in the words of an exception.
_GAVE_UP = re.compile(r"[Tt]imed? ?out\b")
#: Seconds after which a wait is no usual one.
_LONG_WAIT = 60.0
#: Ranks of which it is said what they do.
_MOST_DOING = 4


def before_failures(case: Case, failed: Sequence[Seen]) -> list[Cause]:
    """Return what the dumps show if the failures follow from it: ranks gave up waiting, or waited.

    ``failed`` are the failures of ranks.
    """
    if not case.cluster.traces or not failed:
        return []
    found = recorder_groups.found(case.cluster.traces, case.cluster.size)
    if found is None or found.kind not in {"operation", "size", "behind", "order"}:
        return []
    if _is_short(case, found, {trace.rank: trace for trace in case.cluster.traces}):
        return []
    waiting = {rank for wait in found.waits for rank in wait.waiting}
    own = [one for one in failed if not _GAVE_UP.search(one.event.text) and one.place.rank not in waiting]
    return causes(case) if not own else []


def causes(case: Case) -> list[Cause]:
    """Return what the dumps show; lines of torch's watchdog alone may only show that a rank is behind."""
    traces = _all_traces(case)
    by_rank = {trace.rank: trace for trace in traces}
    if not case.cluster.traces and not any(one.event.message.id == _LAST for one in case.cluster.seen):
        return _elsewhere(case, traces)
    found = recorder_groups.found(traces, case.cluster.size)
    if found is None:
        return _slow(case)
    looked_at = {one.rank for host in case.cluster.evidence for one in host.ranks}
    if found.kind == "unknown" and looked_at and not looked_at >= set(found.ranks):
        return []  # The evidence of their hosts is not here.
    dumped = {trace.rank for trace in case.cluster.traces}
    if found.kind in {"unknown", "transport"} and not dumped >= set(found.waits[0].waiting):
        return []  # Only some ranks write such lines: that others have none says nothing.
    if not _is_short(case, found, by_rank):
        return [_cause(case, found, by_rank)]
    late = _slow(case)
    if late or found.kind == "transport":
        return late
    cause = _cause(case, found, by_rank)
    reason = f"{cause.reason}; when the job was ended they had not waited for long"
    return [cause._replace(confidence="open", reason=reason)]


def _is_short(case: Case, found: Found, traces: Mapping[int, Trace]) -> bool:
    """Return whether a wait may be a usual one: it was short, and the job was not ended because it hung."""
    if found.kind not in {"behind", "transport"} or not case.cluster.evidence:
        return False
    if any(host.reason == "hang" for host in case.cluster.evidence):
        return False
    waited = [_waited(traces[rank], found) for rank in found.waits[0].waiting if rank in traces]
    return max(waited, default=0.0) < _LONG_WAIT


def _waited(trace: Trace, found: Found) -> float:
    """Return for how many seconds a rank had been in a collective, 0 if that is unknown."""
    call = found.waits[0].calls.get(trace.rank)
    if call is None or not trace.taken or not call.created:
        return 0.0
    return max(0.0, (trace.taken - call.created) / 1e9)


def _stacks_of_ranks(case: Case) -> dict[int, stacks.Stack]:
    """Return the stacks of the processes whose ranks are known."""
    return {rank: stack for rank, stack in stacks.of_ranks(case).items() if isinstance(rank, int)}


def _elsewhere(case: Case, traces: Sequence[Trace]) -> list[Cause]:
    """Return the ranks without a line of the watchdog whose stacks show that they are in no collective."""
    if len(traces) < 2:
        return []
    known = _stacks_of_ranks(case)
    size = max(case.cluster.size, max(known, default=-1) + 1)
    found = recorder_groups.found(traces, size)
    if found is None or found.kind != "unknown" or len(found.ranks) > len(found.waits[0].waiting):
        return []
    if any(rank not in known or known[rank].collective for rank in found.ranks):
        return []
    places = tuple(case.cluster.places.find(Place(rank)) for rank in found.ranks)
    who = recorder_groups.names_of(found.ranks)
    doing = _doing(found, known).removeprefix(" and ")
    where = doing if doing.startswith("rank") else f"{who} {doing}"
    stack = known[found.ranks[0]]
    seen = stacks.seen(case, found.ranks[0], stack)
    return [Cause(messages()[_ELSEWHERE], "compared", places, seen, f"{found.reason}; {where}")]


def _cause(case: Case, found: Found, traces: Mapping[int, Trace]) -> Cause:
    known = _stacks_of_ranks(case)
    places = tuple(case.cluster.places.find(Place(rank)) for rank in found.ranks)
    reason = found.reason
    if found.kind == "behind":
        reason += f"; {_last_calls(found)}{_doing(found, known)}"
        if not found.is_sure:
            reason += "; or the others have issued one too many"
    elif found.kind == "unknown":
        reason += f"; {_without_dump(case, found)}{_doing(found, known)}"
    sure: Confidence = "compared" if found.is_sure else "open"
    seen = _seen(case, traces.get(found.ranks[0]), found)
    beside = None if found.other is None else _seen(case, traces.get(found.other), found)
    seen, beside = (seen, beside) if seen is not None else (beside, None)
    return Cause(messages()[_MESSAGES[found.kind]], sure, places, seen, reason, (), beside)


def _last_calls(found: Found) -> str:
    """Return what the ranks that are behind have issued last in their groups."""
    of_wait = [(wait, [rank for rank in found.ranks if rank in wait.behind]) for wait in found.waits]
    return ", ".join(_last_of(wait, ranks) for wait, ranks in of_wait)


def _last_of(wait: Wait, ranks: Sequence[int]) -> str:
    numbers = {wait.behind[rank] for rank in ranks}
    who, have = recorder_groups.names_of(ranks), "has" if len(ranks) == 1 else "have"
    if wait.transfer:
        return f"{who} {have} not issued the {wait.counterpart}"
    if numbers == {0}:
        return f"{who} {have} issued nothing in this group"
    if numbers == {wait.number}:
        devices = "its device has" if len(ranks) == 1 else "their devices have"
        return f"{who} {have} issued it, and {devices} not begun it"
    if len(numbers) == 1:
        return f"{who} last issued number {numbers.pop():,}"
    return f"{who} last issued numbers {min(numbers):,} to {max(numbers):,}"


def _doing(found: Found, known: Mapping[int, Stack]) -> str:
    """Return where the ranks are, by their stacks; "" without one."""
    places: dict[str, list[int]] = {}
    for rank in found.ranks:
        if (stack := known.get(rank)) is not None:
            where = f"in {stack.frame}" if not stack.collective else f"in {stack.collective}, {stack.frame}"
            places.setdefault(where, []).append(rank)
    listed = [
        f"{'is' if len(ranks) == 1 else 'are'} {where}"
        if len(places) == 1 and len(ranks) == len(found.ranks)
        else f"{recorder_groups.names_of(ranks)} {'is' if len(ranks) == 1 else 'are'} {where}"
        for where, ranks in list(places.items())[:_MOST_DOING]
    ]
    return f" and {', '.join(listed)}" if listed else ""


def _without_dump(case: Case, found: Found) -> str:
    """Return that ranks have no dump, and what the evidence says about them."""
    who, have = recorder_groups.names_of(found.ranks), "has" if len(found.ranks) == 1 else "have"
    why: dict[str, list[int]] = {}
    for host in case.cluster.evidence:
        for one in host.ranks:
            if one.rank in found.ranks:
                text = one.recorder_problem if one.pid else f"it had ended ({one.problem})"
                why.setdefault(text, []).append(one.rank)
    said = "; ".join(
        text if len(why) == 1 else f"rank {ranks[0]}: {text}" for text, ranks in why.items() if text
    )
    return f"{who} {have} left no dump" + (f": {said}" if said else "")


def _seen(case: Case, trace: Trace | None, found: Found) -> Seen | None:
    """Return the place in the dump of a rank that shows what was found."""
    if trace is None:
        return None
    file = next((at for at, one in enumerate(case.cluster.sources) if one.shown == trace.shown), None)
    if file is None:
        return None
    wait = next((one for one in found.waits if trace.rank in one.waiting), found.waits[0])
    call = wait.calls.get(trace.rank)
    if call is None:  # Its last one in the group.
        names = {one.group for one in wait.calls.values()}
        call = max(
            (one for one in trace.calls if one.group in names), key=lambda one: one.number, default=None
        )
    text = _text(call) if call is not None else f"no collective in group {wait.title}"
    event = Event(messages()[_MESSAGES[found.kind]], {}, (), file, 0, text=text)
    return Seen(event, case.cluster.places.find(Place(trace.rank)), f"rank {trace.rank}")


def _text(call: Call) -> str:
    state = "ended" if call.is_done else "has not ended"
    sizes = f" of {call.sizes}" if call.sizes not in {"", "[]"} else ""
    where = f", issued in {call.frame}" if call.frame else ""
    return f"{call.name or 'operation'}{sizes}, number {call.number:,} ({state}){where}"


def _all_traces(case: Case) -> list[Trace]:
    """Return the traces of the dumps, and of the lines of torch's watchdog for the other ranks."""
    found = list(case.cluster.traces)
    have = {trace.rank for trace in found}
    groups: dict[int, dict[str, Group]] = {}
    calls: dict[int, dict[tuple[str, int], Call]] = {}
    for one in case.cluster.seen:
        rank, fields = one.place.rank, one.event.fields
        if rank is None or rank in have or one.event.message.id not in {_LATE, _LAST}:
            continue
        number = whole_number(fields.get("index", ""))
        if number is None:
            continue
        name = fields.get("process_group", "") or "0"
        old = groups.setdefault(rank, {}).get(name, Group(name, name))
        groups[rank][name] = old._replace(issued=max(old.issued, number))
        if one.event.message.id == _LATE:
            call = Call(name, number, fields.get("tag", "").strip("_").lower(), fields.get("count", ""))
            calls.setdefault(rank, {}).setdefault((name, number), call)
        elif (ended := whole_number(fields.get("completed", ""))) is not None:
            groups[rank][name] = groups[rank][name]._replace(completed=ended)
    for rank, own in groups.items():
        for group in own.values():  # The lines may name no operation.
            if 0 <= group.completed < group.issued:
                first = Call(group.name, group.completed + 1)
                calls.setdefault(rank, {}).setdefault((group.name, first.number), first)
        made = tuple(
            call._replace(is_done=call.number <= own[call.group].completed)
            for call in calls.get(rank, {}).values()
        )
        found.append(Trace(rank, "", tuple(own.values()), made))
    return found


def _slow(case: Case) -> list[Cause]:
    """Return the rank that came last to most collectives, if all of them have ended."""
    late = find_straggler(case.cluster.traces)
    if late is None:
        return []
    place = case.cluster.places.find(Place(late.rank))
    stack = stacks.of_ranks(case).get(late.rank)
    reason = (
        f"it was the last to begin {late.times} of the last {late.of} collectives of group {late.title},"
        f" {late.seconds:.3g} s after the others" + (f"; it is in {stack.frame}" if stack is not None else "")
    )
    return [Cause(messages()[_SLOW], "open", (place,), None, reason)]


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


def find_straggler(traces: Sequence[Trace]) -> Straggler | None:
    """Return the rank that comes last to most collectives of a group, None if none does.

    The clocks of hosts differ: the time of a rank counts against its usual one only if the others agree.
    """
    titles = {group.name: group.title for trace in traces for group in trace.groups}
    begun: dict[str, dict[int, dict[int, int]]] = {}
    for trace in traces:
        for call in trace.calls:
            if call.created:
                begun.setdefault(call.group, {}).setdefault(call.number, {})[trace.rank] = call.created
    found = (_straggler_of(begun[name], title) for name, title in titles.items() if name in begun)
    return max(filter(None, found), key=lambda one: one.seconds, default=None)


def _straggler_of(begun: Mapping[int, Mapping[int, int]], title: str) -> Straggler | None:
    """Return the straggler of a group; ``begun`` has the time of each rank in each collective, by number."""
    users = len({rank for times in begun.values() for rank in times})
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
