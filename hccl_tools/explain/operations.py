"""Compare the operations in which ranks wait: another one, an earlier one, or another number of elements."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.explain import absent
from hccl_tools.explain.cause import Case, Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.outliers import unusual
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.explain.events import Seen

_DIFFER, _BEHIND, _ALL_BEGUN = "HCM894", "HCM895", "HCM940"
#: The message with the number of an operation and of its elements.
_DATA = "HCM390"
#: Torch's line with the numbers of the last operations.
_LAST = "HCM943"
#: The limits of waits that name an operation.
_LIMITS = {"operation", "watchdog"}
_WATCHDOG = "watchdog"
#: Operations of torch in which all ranks have the same number of elements.
_EVEN = {"ALLREDUCE", "BROADCAST", "REDUCE"}
#: Operations in which two ranks have different roles.
_POINT_TO_POINT = ("send", "recv", "receive", "batchsendrecv")


class _Waiting(NamedTuple):
    """A rank in an operation; ``number`` and ``elements`` are None if no line has them."""

    seen: Seen
    group: str
    name: str
    number: int | None
    elements: int | None


def differences(case: Case) -> list[Cause]:
    """Return the ranks of a communicator whose operation is not that of the others, or behind it."""
    for waits in _by_group(case).values():
        if len(waits) > 1:
            for compare in (_names, _indices, _counts):
                if found := compare(waits):
                    return [found]
    return []


def other_groups(case: Case) -> list[Cause]:
    """Return the ranks that wait in another communicator than the others, if all ranks wait.

    If as many wait in each, that counts only if each communicator lacks members, which wait in another one.
    """
    if any(one.event.message.kind == "timeout" and one.peer is not None for one in case.events):
        return []  # Who waits for whom says more.
    groups = _by_group(case)
    waiting = {actor: group for group, waits in groups.items() for actor in waits}
    if len(groups) < 2 or len(waiting) < case.cluster.size or sum(map(len, groups.values())) > len(waiting):
        return []
    odd = unusual(waiting)
    if not odd:
        if not _all_lack_members(case, groups):
            return []
        odd = set(waiting)
    usual = next((actor for actor in reversed(waiting) if actor not in odd), next(reversed(waiting)))
    return [
        _cause(
            _DIFFER,
            {actor: groups[waiting[actor]][actor] for actor in waiting},
            odd,
            usual,
            "{0}",
        )
    ]


def _all_lack_members(case: Case, groups: Mapping[str, Mapping[str, _Waiting]]) -> bool:
    """Whether each communicator has more ranks than wait in it."""
    sizes: dict[str, int] = {}
    for one in case.cluster.seen:
        if one.group and (size := _integer(one.event.fields, "size")) is not None:
            sizes[one.group] = size
    return all(len(waits) < sizes.get(group, 0) for group, waits in groups.items())


def all_begun(case: Case) -> list[Cause]:
    """Return that no rank is behind: all have issued the operation in which torch's watchdog saw them."""
    timeouts = [one for one in case.events if one.event.message.kind == "timeout"]
    if any(one.peer is not None or one.event.message.limit != _WATCHDOG for one in timeouts):
        return []  # Who waits for whom, or lines of HCCL, say more.
    waits = [one for group in _by_group(case).values() for one in group.values()]
    ranks = sorted({one.seen.place.rank for one in waits if one.seen.place.rank is not None})
    same = {(one.group, one.name, one.number, one.elements) for one in waits}
    if len(ranks) < 2 or len(ranks) < len(waits) or len(same) != 1 or ranks != list(range(len(ranks))):
        return []
    first = waits[0]
    others = set().union(*absent.ranks(case, set(ranks))) | case.cluster.logged - set(ranks)
    if first.number is None or _kind(first.name) in _POINT_TO_POINT or others:
        return []
    places = tuple(case.cluster.places.find(Place(rank)) for rank in ranks)
    which = "both" if len(ranks) == 2 else f"all {len(ranks):,}"
    reason = (
        f"{which} ranks have issued {first.name} number {first.number:,}{_numbers_of(case, first.number)}"
    )
    if case.cluster.size:
        return [Cause(messages()[_ALL_BEGUN], "compared", places, first.seen, reason)]
    reason += "; no line says whether the job has more ranks"
    return [Cause(messages()[_ALL_BEGUN], "open", places, first.seen, reason)]


def _numbers_of(case: Case, number: int) -> str:
    """Return the last operation that has ended, if all ranks that name theirs name the same one."""
    last = {
        (_integer(one.event.fields, "index"), _integer(one.event.fields, "completed"))
        for one in case.cluster.seen
        if one.event.message.id == _LAST
    }
    index, completed = last.pop() if len(last) == 1 else (None, None)
    if index != number or completed is None:
        return ""
    return f", and the last one that has ended is number {completed:,}"


def _by_group(case: Case) -> Mapping[str, Mapping[str, _Waiting]]:
    """Return the first operation in which each rank waits, by communicator; that of most ranks is first."""
    data: dict[tuple[str, str], Seen] = {}
    for one in case.cluster.seen:
        if one.event.message.id == _DATA:
            data.setdefault((one.actor, one.group), one)
    found: dict[str, dict[str, _Waiting]] = {}
    for one in case.events:
        tag = one.event.fields.get("tag", "")
        if one.event.message.limit not in _LIMITS or not tag:
            continue
        name, group = _named(one)
        more = data.get((one.actor, one.group))
        fields = {**(more.event.fields if more is not None else {}), **one.event.fields}
        is_even = one.event.message.limit != _WATCHDOG or name in _EVEN
        count = _integer(fields, "count") if is_even else None
        group = group if one.event.message.limit == _WATCHDOG else one.group or group
        waits = found.setdefault(group or one.event.message.limit, {})
        waits.setdefault(one.actor, _Waiting(one, group, name, _integer(fields, "index"), count))
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _named(one: Seen) -> tuple[str, str]:
    """Return the operation and the communicator in a line: HCCL has both in the tag, torch has a group."""
    tag = one.event.fields.get("tag", "")
    if one.event.message.limit == _WATCHDOG:
        number = one.event.fields.get("process_group", "")
        return tag.strip("_"), f"process group {number}" if number else ""
    name, _, group = tag.partition("_")
    return name, group


def _integer(fields: Mapping[str, str], name: str) -> int | None:
    return whole_number(fields.get(name, ""))


def _names(waits: Mapping[str, _Waiting]) -> Cause | None:
    kinds = {actor: _kind(one.name) for actor, one in waits.items()}
    if len(set(kinds.values())) < 2:
        return None
    odd, usual = _sides(kinds)
    return _cause(_DIFFER, waits, odd, usual, "{name}")


def _kind(name: str) -> str:
    """Return what a name of an operation means: a send and its receive are one operation of two ranks."""
    kind = name.lower().removeprefix("hcom").removeprefix("hccl")
    return _POINT_TO_POINT[0] if kind in _POINT_TO_POINT else kind


def _indices(waits: Mapping[str, _Waiting]) -> Cause | None:
    known = {actor: one.number for actor, one in waits.items() if one.number is not None}
    if len(set(known.values())) < 2:
        return None
    lowest = min(known.values())
    behind = {actor for actor, index in known.items() if index == lowest}
    others = Counter(index for index in known.values() if index != lowest)
    common, number = others.most_common(1)[0]
    if 2 * number <= others.total():
        return None  # The others have no number in common, so that a low one shows nothing.
    ahead = next(actor for actor, index in known.items() if index == common)
    return _cause(_BEHIND, waits, behind, ahead, "operation {index} ({name})")


def _counts(waits: Mapping[str, _Waiting]) -> Cause | None:
    counts = {actor: one.elements for actor, one in waits.items() if one.elements is not None}
    several = len(set(counts.values()))
    if several < 2 or (several > 2 and not unusual(counts)):
        return None  # With many numbers and none in common, they are those of an operation with uneven parts.
    odd, usual = _sides(counts)
    return _cause(_DIFFER, waits, odd, usual, "{name} of {count} elements")


def _sides(values: Mapping[str, object]) -> tuple[set[str], str]:
    """Return the actors whose value is not the usual one, and one of the others; all if no value is usual."""
    odd = unusual(values)
    if odd:
        return odd, next(actor for actor in values if actor not in odd)
    rarest = Counter(values.values()).most_common()[-1][0]
    return set(values), next(actor for actor, value in values.items() if value == rarest)


def _cause(message: str, waits: Mapping[str, _Waiting], odd: Iterable[str], usual: str, words: str) -> Cause:
    actors = [actor for actor in waits if actor in odd]
    other = waits[usual]
    # The two sides of the sentence are different, also if no value is the usual one.
    differing = (actor for actor in actors if _told(waits[actor], words) != _told(other, words))
    one = waits[next(differing, actors[0])]
    same = [actor for actor in actors if _told(waits[actor], words) == _told(one, words)]
    others = [actor for actor in waits if _told(waits[actor], words) == _told(other, words)]
    here, there = _ranks(waits, same), _ranks(waits, others)
    reason = f"{here or 'one'} in {_told(one, words)}, {there or 'another'} in {_told(other, words)}"
    places = tuple(dict.fromkeys(waits[actor].seen.place for actor in actors))
    return Cause(messages()[message], "compared", places, one.seen, reason, places, other.seen)


def _told(one: _Waiting, words: str) -> str:
    group = one.group if one.seen.event.message.limit == _WATCHDOG else f"communicator {one.group}"
    return words.format(group, name=one.name, index=one.number, count=one.elements)


def _ranks(waits: Mapping[str, _Waiting], actors: Sequence[str]) -> str:
    places = [waits[actor].seen.place for actor in actors]
    text = ranks_text(places)
    return f"{text} {'is' if len(actors) == 1 else 'are'}" if text else ""
