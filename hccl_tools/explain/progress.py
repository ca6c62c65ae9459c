"""What a training prints: the last steps and times of the ranks, and a loss that is not a number.

Ranks that have fewer steps, or are slower, are compared. A job whose loss is not a number has not failed, and
yet its result is of no use.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from hccl_tools.explain import screens, slower
from hccl_tools.explain.alike import shape_of
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.last_lines import line_of
from hccl_tools.explain.locations import Place
from hccl_tools.explain.outliers import unusual
from hccl_tools.explain.screens import texts_from_end
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.last_lines import Line
    from hccl_tools.explain.sources import Source

    #: The times of each kind and rank in seconds, with the last line.
    _Values = dict[str, dict[int, tuple[list[float], Line]]]

_UNEVEN, _SLOW, _LEFT_BEHIND = "HCM948", "HCM949", "HCM997"
#: Steps by which the logs of ranks may differ that are written at the same time, and ranks that are compared.
_STEPS_BEHIND, _FEWEST = 2, 3
#: A batch of the data pipeline took too long, and the number of such lines that are more than a slow start.
_NO_DATA, _SEVERAL = "HCM994", 3
#: Files beside the logs with a reason for a slow host.
_REASONS, _CLOCK = {"HCM945", "HCM947"}, "HCM946"
#: A clock is lowered below this part of that of another device.
_LOWERED = 0.85
#: ``step 7/100``, ``batch: 7 of 100``.
_STEP = re.compile(
    rb"\b(?:step|batch|iter|iteration)s?[ =:#\[]{1,12}(\d{1,9}) {0,8}(?:/|of) {0,8}(\d{1,9})\b", re.IGNORECASE
)
#: What a rank writes that has left the loop over the batches.
_LEFT = re.compile(
    rb"barrier|all_?(?:gather|reduce)|evaluat|validat|epoch \S{1,10} (?:is )?(?:done|finished|ended|complete)"
    rb"|end of epoch|sav(?:e|ing)\b|waiting",
    re.IGNORECASE,
)
#: The times of a step: of data, of computing; the waits for others do not count.
_TIMES = re.compile(
    rb"\b(data(?:[_ -]?(?:time|load\w{0,6}|wait))?|fwd_?bwd"
    rb"|forward(?:[_-]\w{1,20})?|backward(?:[_-]\w{1,20})?|comput\w{1,6}(?:_time)?)"
    rb"[ =:]{1,3}(\d{1,6}\.\d{1,6}) ?(ms|s)?\b"
)
#: The rank that a program writes into each of its lines: ``rank=3``, ``[rank 3]``.
_RANK = re.compile(rb"(?:^|[\s\[(,|])(?:global_?|world_?)?rank[ =:#]{0,2}(\d{1,6})\b", re.IGNORECASE)
#: The times of all ranks below a head, as Megatron prints them.
_HEAD, _OF_RANK = (
    re.compile(rb"^ {2,8}([a-z][\w-]{2,40}):\s*$"),
    re.compile(rb"^ {2,12}rank +(\d{1,7}): (\d{1,12}\.\d{1,6})\s*$"),
)
_COMPUTED = re.compile(rb"forward-compute|backward-compute|forward-backward|batch-generator")
#: A time counts if it is so many times that of most ranks, and so many seconds more.
_TIMES_MORE, _SECONDS_MORE = 2.0, 0.2
#: The last values of a rank that are compared, and ranks at most.
_MOST_VALUES, _MOST_RANKS = 5, 4096
#: Logs whose ends are read for it, those of the first ranks, and the bytes of an end.
_MOST_LOGS, _MOST_BYTES = 64, 1 << 18
#: Shapes of lines without steps and times that are remembered.
_MOST_SHAPES = 1 << 14
_SHOWN = 300


class _Told(NamedTuple):
    """What the log of a rank says last.

    Attributes:
        number: Its last step.
        total: The number of its steps.
        step: The line with the last step.
        left: The line that says that it has left the loop, None if none does.
    """

    number: int
    total: int
    step: Line
    left: Line | None


class _Ends(NamedTuple):
    """What the ends of the logs say: by rank, and by the name of a time and the rank that printed it."""

    told: Mapping[int, _Told]
    values: _Values


class Progress:
    """The steps and times in the ends of the logs, which are read once, and only if they are asked for."""

    def __init__(self, case: Case) -> None:
        self._case = case

    @cached_property
    def _ends(self) -> _Ends:
        return _read(self._case)

    def uneven(self) -> list[Cause]:
        """Return the ranks that have done all of their steps, which are fewer than those of the others."""
        return _uneven(self._case, self._ends.told)

    def behind(self) -> list[Cause]:
        """Return the ranks whose logs end some steps before those of most others, in a stopped job."""
        return _left_behind(self._case, self._ends.told)

    def slow(self) -> list[Cause]:
        """Return the ranks that need much more time for data or computing than most others."""
        found = _behind(self._case, self._ends.values) or _without_data(self._case)
        return found or slower.causes(self._case)


def _uneven(case: Case, told: Mapping[int, _Told]) -> list[Cause]:
    odd = {int(rank) for rank in unusual({str(rank): one.total for rank, one in told.items()})}
    others = [one for rank, one in told.items() if rank not in odd]
    few = {rank for rank in odd if told[rank].number == told[rank].total < others[0].total}
    if not few or any(one.number + 1 < min(told[rank].total for rank in few) for one in others):
        return []
    few = {rank for rank in few if told[rank].left is not None} or few
    first = told[min(few)]
    places = tuple(case.cluster.places.find(Place(rank)) for rank in sorted(few))
    has = "has" if len(few) == 1 else "have"
    reason = f"{ranks_text(places)} {has} {first.total:,} steps, the others {others[0].total:,}"
    seen = _seen(case, min(few), first.left or first.step, _UNEVEN)
    beside = _seen(case, min(set(told) - odd), others[0].step, _UNEVEN)
    return [Cause(messages()[_UNEVEN], "compared", places, seen, reason, (), beside)]


def _left_behind(case: Case, told: Mapping[int, _Told]) -> list[Cause]:
    if len(told) < _FEWEST or len({one.total for one in told.values()}) > 1:
        return []
    usual = int(median(one.number for one in told.values()))
    late = {rank for rank, one in told.items() if one.number + _STEPS_BEHIND <= usual}
    if not late or 2 * len(late) >= len(told):
        return []
    first = min(late, key=lambda rank: (told[rank].number, rank))
    other = next(rank for rank, one in told.items() if one.number >= usual)
    places = tuple(case.cluster.places.find(Place(rank)) for rank in sorted(late))
    ends = "the log of {} ends" if len(late) == 1 else "the logs of {} end"
    reason = f"{ends.format(ranks_text(places))} at step {told[first].number:,}, most others at {usual:,}"
    seen = _seen(case, first, told[first].step, _LEFT_BEHIND)
    beside = _seen(case, other, told[other].step, _LEFT_BEHIND)
    return [Cause(messages()[_LEFT_BEHIND], "compared", places, seen, reason, places, beside)]


def _without_data(case: Case) -> list[Cause]:
    """Return the ranks whose data pipeline was too slow for several batches: one may be that of the start."""
    found: dict[str, list[Seen]] = {}
    for one in case.cluster.seen:
        if one.event.message.id == _NO_DATA:
            found.setdefault(one.actor, []).append(one)
    slow = [several for several in found.values() if len(several) >= _SEVERAL]
    if not slow:
        return []
    places = tuple(several[0].place for several in slow if several[0].place != Place())
    return [Cause(messages()[_NO_DATA], "named", places, slow[0][0])]


def _behind(case: Case, values: _Values) -> list[Cause]:
    for name, of_ranks in values.items():
        times = {rank: median(found[-_MOST_VALUES:]) for rank, (found, _) in of_ranks.items()}
        if len(times) < 3:
            continue
        usual = median(times.values())
        late = {
            rank
            for rank, time in times.items()
            if time > _TIMES_MORE * usual and time - usual > _SECONDS_MORE
        }
        if late and 2 * len(late) < len(times):
            return [_slow(case, name, times, late, of_ranks[min(late)][1])]
    return []


def _slow(case: Case, name: str, times: Mapping[int, float], late: set[int], line: Line) -> Cause:
    places = tuple(case.cluster.places.find(Place(rank)) for rank in sorted(late))
    others = median(time for rank, time in times.items() if rank not in late)
    reason = f"{ranks_text(places)} needs {times[min(late)]:.2f} s for {name}, the others {others:.2f} s"
    reason = reason if len(late) == 1 else reason.replace(" needs ", " need ", 1)
    seen = _seen(case, min(late), line, _SLOW)
    beside = _of_host(case, places, line)
    if beside is not None:
        reason += f"; on its host: {_words(beside)}"
    return Cause(messages()[_SLOW], "compared", places, seen, reason, (), beside)


def _words(beside: Seen) -> str:
    if beside.event.message.id == _CLOCK:
        return (
            f"the clock of a device is lowered to {beside.event.fields['value']} MHz, as when it is too hot"
        )
    return f"{beside.event.message.meaning} ({beside.event.fields.get('reason', '').strip()})"


def _of_host(case: Case, places: Sequence[Place], line: Line) -> Seen | None:
    """Return a reason for a slow host in a file of that host, or beside the logs of these ranks."""
    ranks = {place.rank for place in places}
    hosts = {place.host for place in places} - {""}
    own = {source.group for source in case.cluster.sources if case.cluster.ranks.get(source.process) in ranks}
    if case.cluster.sources[line.file].rank in ranks:
        own.add(os.path.dirname(case.cluster.sources[line.file].path))
    known = {source.group for source in case.cluster.sources if source.process in case.cluster.ranks} - own
    there = [
        one
        for one in case.cluster.seen
        if one.event.message.id in {*_REASONS, _CLOCK}
        if _is_of_host(case.cluster.sources[one.event.file], hosts, own, known)
    ]
    clocks = [one for one in there if one.event.message.id == _CLOCK]
    lowest = min(clocks, key=_megahertz, default=None)
    if lowest is not None and _megahertz(lowest) < _LOWERED * max(map(_megahertz, clocks)):
        return lowest
    return next((one for one in there if one.event.message.id in _REASONS), None)


def _megahertz(one: Seen) -> int:
    return int(one.event.fields["value"])


def _is_of_host(
    source: Source, hosts: Collection[str], own: Collection[str], others: Collection[str]
) -> bool:
    """Whether a file is of one of the hosts, by its name or as only logs of its ranks are beside it."""
    folder = os.path.dirname(source.path)
    is_beside = _is_above(folder, own) and not _is_above(folder, others)
    return (bool(source.host) and source.host in hosts) or is_beside


def _is_above(folder: str, others: Collection[str]) -> bool:
    return any(other == folder or other.startswith(f"{folder}{os.sep}") for other in others)


def _add(values: _Values, name: str, rank: int, value: float, line: Line) -> None:
    of_rank = values.setdefault(name, {})
    found = of_rank[rank][0] if rank in of_rank else []
    found.append(value)
    of_rank[rank] = found, line


def _read(case: Case) -> _Ends:
    """Read the ends of the logs of programs: the steps and times of each rank, and tables with all ranks."""
    told: dict[int, _Told] = {}
    values: _Values = {}
    in_tables: _Values = {}
    ranks, tables, silent = set[int](), 0, set[bytes]()
    for file, source in enumerate(case.cluster.sources):
        if not source.is_program_log:
            continue
        rank = source.rank if len(ranks) < _MOST_LOGS else None
        tables += 1
        if rank is None and tables > _MOST_LOGS:
            continue
        ranks |= set() if rank is None else {rank}
        name = ""
        for number, text in reversed([*texts_from_end(source, _MOST_BYTES)]):
            goes_on = rank is not None and rank in told and told[rank].left is None
            if not _says(text, silent) and not (goes_on and _LEFT.search(text)):
                continue
            line = line_of(file, number, text)
            writer = rank if rank is not None else _writer(line.text)
            if writer is not None:
                _add_step(told, writer, line)
                for kind, time, unit in _TIMES.findall(line.text):
                    seconds = float(time) / (1000.0 if unit == b"ms" else 1.0)
                    _add(values, kind.decode().lower(), writer, seconds, line)
            if tables <= _MOST_LOGS:
                name = _add_row(in_tables, name, line)
    for name, of_ranks in in_tables.items():
        for rank, (found, line) in of_ranks.items():
            for seconds in found:
                _add(values, name, rank, seconds, line)
    return _Ends(told, values)


def _writer(text: bytes) -> int | None:
    """Return the rank that a line names as its own, None if it names none."""
    prefix = screens.prefix(text)
    if prefix.rank is not None:
        return prefix.rank
    found = _RANK.search(text[:_SHOWN])
    return int(found[1]) if found is not None and int(found[1]) < _MOST_RANKS else None


def _says(text: bytes, silent: set[bytes]) -> bool:
    """Whether a line may have a step or a time; remember those that, whatever their digits are, have none."""
    shape = shape_of(text)
    if shape in silent:
        return False
    if any(one.search(text) for one in (_STEP, _TIMES, _HEAD, _OF_RANK)):
        return True
    if len(silent) < _MOST_SHAPES:
        silent.add(shape)
    return False


def _add_row(values: _Values, name: str, line: Line) -> str:
    """Add a row of a table of all ranks, in milliseconds; return the name of the table that goes on."""
    if (head := _HEAD.match(line.text)) is not None:
        return head[1].decode() if _COMPUTED.match(head[1]) else ""
    if name and (found := _OF_RANK.match(line.text)) is not None and int(found[1]) < _MOST_RANKS:
        _add(values, name, int(found[1]), float(found[2]) / 1000.0, line)
    return name


def _add_step(told: dict[int, _Told], rank: int, line: Line) -> None:
    text = line.text[screens.prefix(line.text).length :] or line.text
    step, last = _STEP.search(text), told.get(rank)
    if step is not None and int(step[2]) > 1:
        told[rank] = _Told(int(step[1]), int(step[2]), line, None)
    elif last is not None and last.left is None and _LEFT.search(text):
        told[rank] = last._replace(left=line)


def _seen(case: Case, rank: int, line: Line, message: str) -> Seen:
    text = line.text.decode(errors="replace").strip()[:_SHOWN]
    time = line.time if line.is_own else None
    event = Event(
        messages()[message],
        {},
        (),
        line.file,
        line.number,
        time=time,
        text=text,
        is_yearless=line.is_yearless,
    )
    return Seen(event, case.cluster.places.find(Place(rank)), f"rank {rank}", time=time)


_DIVERGED = "HCM998"
#: The value of a loss: ``loss: 2.31``, ``lm loss: nan``, ``'loss': inf``, ``loss is nan``.
_LOSS = re.compile(
    rb"loss['\"]?(?: is |[ =:(\[]{1,4})['\"]?([-+]?(?:nan|inf(?:inity)?)\b|[-+]?\d)", re.IGNORECASE
)
_FINITE = re.compile(rb"[-+]?\d")
#: Logs whose ends are read, and the bytes of an end.
_MOST_LOGS_WITH_LOSS, _MOST_BYTES_WITH_LOSS = 64, 1 << 16
#: Characters of a line in which the loss is looked for.
_LONGEST_LINE, _LONGEST_SHOWN = 1000, 600


def diverged_causes(sources: Sequence[Source]) -> list[Cause]:
    """Return the first line from which on a log has only losses that are NaN or infinite; [] if none has."""
    for file, source in enumerate(sources):
        if not source.is_program_log:
            continue
        if file >= _MOST_LOGS_WITH_LOSS:
            break
        first: tuple[int, bytes, bytes] | None = None
        for number, text in texts_from_end(source, _MOST_BYTES_WITH_LOSS):
            found = _LOSS.search(text[:_LONGEST_LINE])
            if found is None:
                continue
            if _FINITE.match(found[1]):
                break
            first = number, text, found[1]
        if first is not None:
            return [_cause_of_loss(source, file, *first)]
    return []


def _cause_of_loss(source: Source, file: int, number: int, text: bytes, value: bytes) -> Cause:
    line = line_of(file, number, text)
    shown = line.text.decode(errors="replace").strip()[:_LONGEST_SHOWN]
    fields = {"reason": f"{value.decode().lower()} from line {number} on"}
    time = line.time if line.is_own else None
    event = Event(
        messages()[_DIVERGED], fields, (), file, number, time=time, text=shown, is_yearless=line.is_yearless
    )
    place = Place(source.rank)
    seen = Seen(event, place, source.path, time=time)
    return Cause(event.message, "named", () if source.rank is None else (place,), seen)
