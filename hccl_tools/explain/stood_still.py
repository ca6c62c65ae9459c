"""Jobs that hung until somebody stopped them: their logs end long before the stop, which is not the cause."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

from hccl_tools.explain import last_lines, screens
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen, clock
from hccl_tools.explain.jobs import in_year
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.screens import STEP
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.last_lines import Line
    from hccl_tools.explain.sources import Source

_STOOD_STILL = "HCM915"
#: Logs whose ends are read, the bytes of an end, and its lines.
_MOST_LOGS, _MOST_BYTES, _MOST_LINES = 64, 1 << 18, 400
#: Steps whose pace is known, and how many times that pace, and seconds, a job is silent that hangs.
_FEWEST_STEPS, _TIMES_LONGER, _LONG = 4, 20.0, 1800.0
#: Seconds before a stop in which a line can be that of the stop.
_OF_STOP = 30.0
_SHOWN = 300


class _End(NamedTuple):
    """The end of a log before the stop: its last line with a time, and the longest time between its steps."""

    time: float
    line: Line
    pace: float | None


def before(case: Case, stop: Seen | None) -> list[Cause]:
    """Return that the job hung, if no log goes on until the stop, which was much later than the next step.

    Only a training is judged, by its steps: a service may have nothing to do.
    """
    when = _time_of(case, stop)
    if when is None:
        return []
    ends: list[_End] = []
    for file, source in enumerate(case.cluster.sources):
        if source.is_program_log and not source.is_run and len(ends) < _MOST_LOGS:
            ahead = case.cluster.ahead.get(file, 0.0)
            if (end := _end_of(source, file, when + ahead)) is not None:
                ends.append(end._replace(time=end.time - ahead))
    paces = [end.pace for end in ends if end.pace is not None]
    last = max(ends, key=lambda end: end.time, default=None)
    if last is None or not paces or when - last.time < max(_LONG, _TIMES_LONGER * max(paces)):
        return []
    text = last.line.text.decode(errors="replace").strip()[:_SHOWN]
    line = last.line
    event = Event(
        messages()[_STOOD_STILL], {"reason": text}, (), line.file, line.number, time=line.time, text=text
    )
    place = case.cluster.places.find(Place(case.cluster.sources[line.file].rank))
    seen = Seen(event, place, "", time=last.time)
    return [Cause(event.message, "open", (), seen, _reason(case, last.time, when, len(ends)), (), stop)]


def _reason(case: Case, last: float, when: float, logs: int) -> str:
    seconds = int(when - last)
    later = f"{seconds // 3600} h {seconds % 3600 // 60} min" if seconds >= 3600 else f"{seconds // 60} min"
    what = f"no line of {count(logs, 'log')} is later; it was stopped {later} after it, at {clock(when)[:19]}"
    if case.cluster.waits["operation"] == 0:
        what += "; HCCL_EXEC_TIMEOUT is 0, with which HCCL waits without a time limit and reports nothing"
    return what


def _time_of(case: Case, stop: Seen | None) -> float | None:
    """Return when a job was stopped, by the line itself or by what its launcher wrote then."""
    if stop is None:
        return None
    ends = [one for one in case.cluster.seen if one.event.message.kind == "end" and one.time is not None]
    first = stop if stop.time is not None else min(ends, key=lambda one: one.time or 0.0, default=None)
    if first is None or first.time is None or not first.event.is_yearless:
        return first.time if first is not None else None
    return in_year(first.time, max(case.cluster.ends.values(), default=None))


def _end_of(source: Source, file: int, when: float) -> _End | None:
    """Return the end of a log before a stop; None if no line of it has a time."""
    last: Line | None = None
    end, steps = 0.0, list[float]()
    for number, text in islice(screens.texts_from_end(source, _MOST_BYTES), _MOST_LINES):
        line = last_lines.line_of(file, number, text)
        if line.time is None or line.is_yearless or line.time > when - _OF_STOP:
            continue
        if last is None:
            last, end = line, line.time
        if STEP.search(text):
            steps.append(line.time)
    if last is None or (source.rank is None and not steps):
        return None  # A screen of another program may be from the time at which the job hung.
    gaps = [later - earlier for later, earlier in pairwise(steps)]
    return _End(end, last, max(gaps) if len(steps) >= _FEWEST_STEPS else None)
