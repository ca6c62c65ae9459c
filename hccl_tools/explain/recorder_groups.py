"""Compare what ranks have issued, group by group: which rank is behind, differs, or waits in another order.

``found`` returns the first of these that the traces show. In a collective that has not ended:

1. ranks are in different operations, or in one of different sizes or types;
2. the traces are of different times: a member has ended later collectives;
3. a rank that waits in no collective has not begun it;
4. ranks wait for each other in two groups, which they use in another order;
5. a member has no trace;
6. all members have begun it: the transport.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal

from hccl_tools.explain.outliers import unusual
from hccl_tools.notation import number_list
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hccl_tools.explain.recorder_traces import Call, Group, Trace, Transfer

Kind = Literal["operation", "size", "times", "behind", "order", "unknown", "transport"]
#: The name of torch's first group, which has all ranks.
_WORLD = "0"
#: Operations in which all ranks have the same number of elements.
_EVEN = frozenset({"allreduce", "broadcast", "reduce", "allgather", "reducescatter"})
#: Operations that end on no rank before all have begun them.
_NEEDS_ALL = frozenset({"allreduce", "allgather", "reducescatter", "alltoall", "barrier"})
#: Ranks of a job that are compared.
_MOST_RANKS = 1 << 17
_MOST_SPANS = 20
#: Members and calls of all groups that are compared: those of 65,536 ranks are some million.
_MOST_COMPARED = 1 << 26
#: Members of all groups that are looked up by their rank: each takes about 100 bytes.
_MOST_KNOWN = 1 << 21
#: Collectives that have not ended, those of most ranks first, of which each two are compared.
_MOST_PAIRED = 1000
#: Collectives by which a rank can be ahead of one that has not ended: the root of a broadcast does not wait.
_AHEAD = 8
#: Groups of which each has a rank that is behind, all of them in one sentence.
_MOST_BEHIND = 3


class Wait(NamedTuple):
    """A collective that has not ended, and the members of its group.

    Attributes:
        calls: The call of each rank that has begun it.
        waiting: The ranks for which it has not ended.
        behind: The members that have not begun it, each with the number of its last collective in the group;
            the same number if the device of the rank has not begun it yet.
        unknown: The members without a trace.
        transfer: Of a send or a receive what it is, ``recv from rank 1``; "" of a collective.
        counterpart: What the other rank of a transfer has not issued: ``send``.
        ahead: The members that have ended later collectives of the group.
        stale: The members whose traces are older: they lack collectives that other members have ended.
    """

    title: str
    number: int
    calls: Mapping[int, Call]
    waiting: tuple[int, ...]
    behind: Mapping[int, int]
    unknown: tuple[int, ...]
    transfer: str = ""
    counterpart: str = ""
    ahead: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()

    @property
    def operation(self) -> str:
        """The operation with its number and group: ``all_gather number 12 of group tp0``."""
        if self.transfer:
            return f"{self.transfer} in group {self.title}"
        name = next((one.name for one in self.calls.values() if one.name), "operation")
        return f"{name} number {self.number:,} of group {self.title}"


class Found(NamedTuple):
    """What the traces show.

    Attributes:
        ranks: The ranks that it is about, the first one first.
        reason: A clause.
        waits: The collective; of ``order`` the two, of ``behind`` those of several groups.
        other: A rank with which they are compared, None without one.
        is_sure: Whether the traces say it; else another reading is possible.
    """

    kind: Kind
    ranks: tuple[int, ...]
    reason: str
    waits: tuple[Wait, ...]
    other: int | None = None
    is_sure: bool = True


def found(traces: Sequence[Trace], size: int = 0) -> Found | None:
    """Return why collectives have not ended, None if all have.

    ``size`` is the number of ranks, 0 if it is unknown.
    """
    waits = [*_waits(traces, size), *_transfers(traces)]
    if not waits:
        return None
    for wait in waits:
        if (different := _different(wait)) is not None:
            return different
    if (different := _different_transfer(traces)) is not None:
        return different
    return (
        _at_times(waits) or _behind(waits) or _in_order(waits) or _without_trace(waits) or _transport(waits)
    )


def _waits(traces: Sequence[Trace], size: int) -> list[Wait]:
    """Return the earliest collective of each group that has not ended; that of most ranks first."""
    by_rank = {trace.rank: _Issued(trace) for trace in traces}
    waits, left = [], _MOST_COMPARED
    for name, ranks, title in _groups(traces, size):
        have = [rank for rank in ranks if rank in by_rank]
        calls = {rank: by_rank[rank].calls.get(name, {}) for rank in have}
        left -= len(ranks) + sum(map(len, calls.values()))
        if left < 0:
            break
        numbers = [min(pending) for some in calls.values() if (pending := _pending(some))]
        if not numbers:
            continue
        number = min(numbers)
        last = {rank: by_rank[rank].last(name) for rank in have}
        at = {rank: some[number] for rank, some in calls.items() if number in some}
        queued = _queued(at, by_rank)
        waiting = tuple(rank for rank, call in at.items() if not call.is_done and rank not in queued)
        behind = {rank: last[rank] for rank in have if rank not in at and last[rank] < number}
        stale = _stale(behind, calls)
        behind = {rank: one for rank, one in behind.items() if rank not in stale}
        behind |= dict.fromkeys(queued, number)
        unknown = tuple(rank for rank in ranks if rank not in by_rank)
        ahead = tuple(
            rank
            for rank, some in calls.items()
            if any(call.is_done and later > number + _AHEAD for later, call in some.items())
        )
        waits.append(Wait(title, number, at, waiting, behind, unknown, ahead=ahead, stale=stale))
    return sorted(waits, key=lambda one: -len(one.waiting))


def _stale(behind: Mapping[int, int], calls: Mapping[int, Mapping[int, Call]]) -> tuple[int, ...]:
    """Return the ranks whose last collective is earlier than one that has ended and needs all members."""
    ended = max(
        (
            number
            for some in calls.values()
            for number, call in some.items()
            if call.is_done and call.kind in _NEEDS_ALL
        ),
        default=0,
    )
    return tuple(rank for rank, last in behind.items() if last < ended)


def _queued(at: Mapping[int, Call], by_rank: Mapping[int, _Issued]) -> set[int]:
    """Return the ranks that have issued a collective which their device has not begun.

    torch records the states of the device on request only. Without them no call is ``started``.
    """
    pending = {rank: call for rank, call in at.items() if not call.is_done}
    if not any(call.state == "started" or by_rank[rank].has_started for rank, call in pending.items()):
        return set()
    return {rank for rank, call in pending.items() if call.state == "scheduled"}


def _transfers(traces: Sequence[Trace]) -> list[Wait]:
    """Return the sends and receives that have not ended, each with what the other rank has issued of it."""
    by_rank = {trace.rank: _transfers_of(trace) for trace in traces}
    waits = []
    for trace in traces:
        titles = {group.name: group.title for group in trace.groups}
        for one in trace.transfers:
            if not one.pending or one.peer == trace.rank:
                continue
            preposition, other = ("to", "recv") if one.kind == "send" else ("from", "send")
            text = f"{one.kind} {preposition} rank {one.peer}"
            peer = by_rank.get(one.peer)
            is_behind = peer is not None and not _has_issued(peer, trace.rank, one, other)
            wait = Wait(
                titles.get(one.group, one.group), 0, {}, (trace.rank,), {one.peer: 0} if is_behind else {},
                () if peer is not None else (one.peer,), text, other,
            )  # fmt: skip
            waits.append(wait)
    return waits


def _transfers_of(trace: Trace) -> dict[tuple[str, str, int], Transfer]:
    return {(one.group, one.kind, one.peer): one for one in trace.transfers}


def _has_issued(peer: Mapping[tuple[str, str, int], Transfer], rank: int, own: Transfer, kind: str) -> bool:
    """Return whether the other rank, which has these transfers, has issued its side of one."""
    one = peer.get((own.group, kind, rank))
    if one is None:
        return False
    return bool(one.pending) or not (one.is_whole and own.is_whole) or one.issued >= own.issued


class _Issued:
    """The calls of a rank, by group and number."""

    def __init__(self, trace: Trace) -> None:
        self.calls: dict[str, dict[int, Call]] = {}
        for call in trace.calls:
            self.calls.setdefault(call.group, {})[call.number] = call
        self.has_started = any(call.state == "started" and not call.is_done for call in trace.calls)
        self._groups = {group.name: group.issued for group in trace.groups}

    def last(self, name: str) -> int:
        """Return the number of the last collective that it has issued in a group."""
        return max(self._groups.get(name, 0), *self.calls.get(name, {}), 0)


def _groups(traces: Sequence[Trace], size: int) -> list[tuple[str, tuple[int, ...], str]]:
    """Return the name, the members and the title of each group: two groups may have one name."""
    lists = _Lists()
    known = _known(traces, lists)
    users: dict[str, list[int]] = {}
    for trace in traces:
        for group in trace.groups:
            users.setdefault(group.name, []).append(trace.rank)
    highest = max((trace.rank for trace in traces), default=-1)
    every = lists.one(tuple(range(min(max(size, highest + 1), _MOST_RANKS))))
    of_users = {name: lists.one(tuple(sorted(set(ranks)))) for name, ranks in users.items()}
    found: dict[tuple[str, int], tuple[str, tuple[int, ...], str]] = {}
    for trace in traces:
        world = next((group.name for group in trace.groups if _is_world(group)), None)
        for group in trace.groups:
            ranks = known.get((group.name, trace.rank)) or (
                every if group.name == world else of_users[group.name]
            )
            found.setdefault((group.name, id(ranks)), (group.name, ranks, group.title))
    return list(found.values())


def _known(traces: Sequence[Trace], lists: _Lists) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the only list of members that has a rank, by the name of the group and the rank.

    It is () if there are several. A list counts if a rank in it has given it.
    """
    have = {trace.rank for trace in traces}
    distinct: dict[tuple[str, int], tuple[int, ...]] = {}
    for trace in traces:
        for group in trace.groups:
            ranks = lists.one(group.ranks)
            if (group.name, id(ranks)) not in distinct and lists.has(ranks, trace.rank):
                distinct[group.name, id(ranks)] = ranks
    found: dict[tuple[str, int], tuple[int, ...]] = {}
    left = _MOST_KNOWN
    for (name, _), ranks in distinct.items():
        left -= len(ranks)
        for rank in ranks if left >= 0 else ():
            if rank in have:
                found[name, rank] = ranks if (name, rank) not in found else ()
    return found


class _Lists:
    """Lists of members: equal ones are one tuple.

    They are known by their bytes: other users can choose numbers of which all tuples have one hash.
    """

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, tuple[int, ...]] = {}
        self._by_id: dict[int, tuple[int, ...]] = {}
        self._sets: dict[int, frozenset[int]] = {}
        self._kept: list[tuple[int, ...]] = []

    def one(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tuple that stands for all that are equal."""
        if (found := self._by_id.get(id(ranks))) is None:
            found = self._by_bytes.setdefault(array("q", ranks).tobytes(), ranks)
            self._by_id[id(ranks)] = found
            self._kept.append(ranks)  # Else another tuple could have its id.
        return found

    def has(self, ranks: tuple[int, ...], rank: int) -> bool:
        """Return whether a list, as ``one`` has returned it, has a rank."""
        if (members := self._sets.get(id(ranks))) is None:
            members = self._sets[id(ranks)] = frozenset(ranks)
        return rank in members


def _is_world(group: Group) -> bool:
    return group.name == _WORLD or group.title == "default_pg"


def _pending(calls: Mapping[int, Call]) -> list[int]:
    return [number for number, call in calls.items() if not call.is_done]


def _different(wait: Wait) -> Found | None:
    """Return the ranks whose operation, or whose size, is not that of most others."""
    kinds = {str(rank): call.kind for rank, call in wait.calls.items() if call.kind}
    where = f"at number {wait.number:,} of group {wait.title}"
    if len(set(kinds.values())) > 1:
        parts = {rank: f"in {wait.calls[int(rank)].name}" for rank in kinds}
        return _odd("operation", wait, kinds, parts, f"{where},")
    if kinds and set(kinds.values()) <= _EVEN:
        sizes = {str(rank): call.sizes for rank, call in wait.calls.items() if call.sizes not in {"", "[]"}}
        if len(set(sizes.values())) > 1:
            parts = {rank: f"with {size}" for rank, size in sizes.items()}
            name = next(call.name for call in wait.calls.values() if call.name)
            return _odd("size", wait, sizes, parts, f"{where} all are in {name},")
        types = {str(rank): call.dtypes for rank, call in wait.calls.items() if call.dtypes not in {"", "[]"}}
        if len(set(types.values())) > 1:
            parts = {rank: f"with elements of type {one.strip('[]')}" for rank, one in types.items()}
            name = next(call.name for call in wait.calls.values() if call.name)
            return _odd("size", wait, types, parts, f"{where} all are in {name},")
    return None


def _different_transfer(traces: Sequence[Trace]) -> Found | None:
    """Return a send and its receive that have not ended and are of different sizes."""
    by_rank = {trace.rank: _transfers_of(trace) for trace in traces}
    for trace in traces:
        titles = {group.name: group.title for group in trace.groups}
        for own in trace.transfers:
            other = by_rank.get(own.peer, {}).get((own.group, "recv", trace.rank))
            if own.kind != "send" or other is None or not (own.pending and other.pending):
                continue
            if own.issued != other.issued or "" in {own.sizes, other.sizes} or own.sizes == other.sizes:
                continue
            title = titles.get(own.group, own.group)
            sends = f"rank {trace.rank} sends {own.sizes} to rank {own.peer}"
            reason = f"in group {title} {sends}, which expects {other.sizes}"
            wait = Wait(title, 0, {}, (trace.rank, own.peer), {}, (), f"send to rank {own.peer}", "recv")
            return Found("size", tuple(sorted((trace.rank, own.peer))), reason, (wait,), own.peer)
    return None


def _at_times(waits: Sequence[Wait]) -> Found | None:
    """Return that the traces are of different times, if a member has ended much later collectives."""
    for wait in waits:
        if wait.stale and not wait.behind:
            lack = "dump of {} lacks" if len(wait.stale) == 1 else "dumps of {} lack"
            who = f"{names_of(wait.waiting)} {_s(wait.waiting, 'wait')} in {wait.operation}"
            ended = f"other ranks have ended operations that the {lack.format(names_of(wait.stale))}"
            reason = f"{who}, and {ended}"
            other = wait.waiting[0] if wait.waiting else None
            return Found("times", tuple(sorted(wait.stale)), reason, (wait,), other, is_sure=False)
        if wait.ahead and wait.waiting:
            reason = (
                f"{names_of(wait.waiting)} {_s(wait.waiting, 'wait')} in {wait.operation}, and"
                f" {names_of(wait.ahead)} {'has' if len(wait.ahead) == 1 else 'have'} ended later ones"
            )
            return Found("times", tuple(sorted(wait.waiting)), reason, (wait,), wait.ahead[0], is_sure=False)
    return None


def _odd(kind: Kind, wait: Wait, keys: Mapping[str, str], parts: Mapping[str, str], where: str) -> Found:
    """Return the ranks with another key than most; ``parts`` is what is said of a rank: ``in broadcast``."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(keys, key=int):
        groups.setdefault(keys[rank], []).append(int(rank))
    odd = sorted(map(int, unusual(keys)))
    listed = [f"{names_of(ranks)} {parts[str(ranks[0])]}" for ranks in groups.values()]
    usual = max(groups.values(), key=len)[0]
    ranks = tuple(odd or sorted(map(int, keys)))
    other = next((rank for rank in (usual, *ranks) if keys[str(rank)] != keys[str(ranks[0])]), None)
    return Found(kind, ranks, f"{where} {', '.join(listed)}", (wait,), other)


def _behind(waits: Sequence[Wait]) -> Found | None:
    """Return the ranks that others wait for, and that wait in no collective themselves.

    Ranks that wait in a smaller group are missing in a larger one. A group whose missing ranks all wait
    nowhere is therefore the root. The one that has waited longest comes first; several are joined.
    """
    busy = {rank for wait in waits for rank in wait.waiting}
    free = [(wait, {rank for rank in wait.behind if rank not in busy}) for wait in waits]
    free = [(wait, ranks) for wait, ranks in free if ranks]
    if not free:
        return None
    roots = [(wait, ranks) for wait, ranks in free if len(ranks) == len(wait.behind)]
    roots.sort(key=lambda one: _since(one[0]))
    chosen = list[tuple[Wait, set[int]]]()
    for wait, ranks in (roots or free)[:_MOST_BEHIND]:
        if not chosen or (roots and not any(ranks & others for _, others in chosen)):
            chosen.append((wait, ranks))
    named = [f"{names_of(one.waiting)} {_s(one.waiting, 'wait')} in {one.operation}" for one, _ in chosen]
    late = tuple(sorted({rank for _, some in chosen for rank in some}))
    is_sure = all(len(some) <= len(wait.waiting) for wait, some in chosen)
    first = chosen[0][0]
    other = first.waiting[0] if first.waiting else None
    return Found("behind", late, ", ".join(named), tuple(wait for wait, _ in chosen), other, is_sure)


def _since(wait: Wait) -> int:
    """Return the time at which the first rank began to wait in a collective, in ns; 0 if it is unknown."""
    return min((wait.calls[rank].created for rank in wait.waiting if rank in wait.calls), default=0)


def _in_order(waits: Sequence[Wait]) -> Found | None:
    """Return two groups whose ranks wait for each other: each group misses ranks that wait in the other."""
    waits = waits[:_MOST_PAIRED]
    of_waiting: dict[int, dict[int, Wait]] = {}
    for index, wait in enumerate(waits):
        for rank in wait.waiting:
            of_waiting.setdefault(rank, {})[index] = wait
    for wait in waits:
        others = {index: one for rank in wait.behind for index, one in of_waiting.get(rank, {}).items()}
        for _, other in sorted(others.items()):
            here, there = set(wait.behind) & set(other.waiting), set(other.behind) & set(wait.waiting)
            if wait is other or not (here and there):
                continue
            if wait.transfer or other.transfer:
                end = "they wait for each other"
            else:
                end = "they use the two groups in another order, or some have left out one operation"
            reason = (
                f"{names_of(there)} {_s(there, 'wait')} in {wait.operation} for {names_of(here)}, and"
                f" {names_of(here)} {_s(here, 'wait')} in {other.operation} for {names_of(there)}: {end}"
            )
            few, many = sorted((here, there), key=len)
            ranks = few if len(few) < len(many) else here | there
            return Found("order", tuple(sorted(ranks)), reason, (wait, other), min(many))
    return None


def _without_trace(waits: Sequence[Wait]) -> Found | None:
    for wait in waits:
        if wait.unknown:
            reason = f"{names_of(wait.waiting)} {_s(wait.waiting, 'wait')} in {wait.operation}"
            return Found("unknown", wait.unknown, reason, (wait,), wait.waiting[0], is_sure=False)
    return None


def _transport(waits: Sequence[Wait]) -> Found | None:
    whole = [wait for wait in waits if not wait.behind and not wait.unknown and len(wait.calls) > 1]
    if not whole or len(whole) < len(waits):
        return None
    wait = whole[0]
    count = len(wait.calls)
    ended = [rank for rank in wait.calls if rank not in wait.waiting]
    for_whom = f" for {names_of(wait.waiting)}" if ended else ""
    which = "both" if count == 2 else f"all {count:,}"
    reason = f"{which} ranks of the group have begun {wait.operation}, and it has not ended{for_whom}"
    return Found("transport", tuple(sorted(wait.waiting)), reason, (wait,))


def names_of(ranks: Collection[int]) -> str:
    """Return ranks as ``rank 3`` or ``ranks 0-4,7``."""
    spans = number_list.fold(sorted(ranks)).split(",")
    listed = ",".join(spans[:_MOST_SPANS]) + (" and more" if len(spans) > _MOST_SPANS else "")
    return f"rank{'' if len(ranks) == 1 else 's'} {listed}"


def _s(ranks: Collection[int], verb: str) -> str:
    return f"{verb}s" if len(ranks) == 1 else verb
