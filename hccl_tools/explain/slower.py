"""Steps that became slower while the job ran: when, how much, and what a log says about that time."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen, moment
from hccl_tools.explain.jobs import in_year
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.last_lines import Line, line_of
from hccl_tools.explain.locations import Place
from hccl_tools.explain.screens import texts_from_end
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.sources import Source

_SLOWER = "HCM999"
#: Why a host or a device becomes slower while a job runs.
_REASONS = frozenset({"HCM951", "HCM945", "HCM947"})
#: The time of a step with its unit before or after it: ``per_step_time: 890ms``, ``elapsed time per iteration
#: (ms): 812.4``; the last group is that of tqdm: ``1.23s/it``.
_STEP_TIME = re.compile(
    rb"\b(?:per[_ -]step[_ -]time|(?:step|iter(?:ation)?|batch)[_ -]?time"
    rb"|time[_ -]per[_ -](?:step|iter(?:ation)?))"
    rb"(?: ?\((ms|s)\))?['\"]?[ =:]{1,3}(\d{1,7}(?:\.\d{1,6})?) ?(ms|s)?\b|\b(\d{1,5}\.\d{1,3})s/it\b"
)
#: The fewest steps on each side of the change, and how many times longer those after it take.
_FEWEST, _TIMES_MORE = 5, 1.4
#: The part of the steps on one side whose times may differ from the usual one, and by how much of it.
_MOST_OUTLIERS, _SPREAD = 0.2, 0.25
#: Seconds between the line with the reason and the change.
_NEAR = 900.0
#: Logs that are read, those of the first ranks, and the bytes of an end.
_MOST_LOGS, _MOST_BYTES = 16, 1 << 20
_LONGEST, _SHOWN = 600, 300


class _Step(NamedTuple):
    """The time of a step in seconds, and its line in a log."""

    seconds: float
    number: int
    text: bytes


class _Change(NamedTuple):
    """The usual times before and after a change, in seconds, and the first line after it."""

    before: float
    after: float
    line: Line


def causes(case: Case) -> list[Cause]:
    """Return the change of the time of a step that the logs of programs show; [] if none does."""
    programs = [(file, one) for file, one in enumerate(case.cluster.sources) if one.is_program_log]
    found = [
        (change, source)
        for file, source in programs[:_MOST_LOGS]
        if (change := _change(file, [*reversed([*_steps(source)])])) is not None
    ]
    if not found:
        return []
    change, source = min(found, key=lambda one: (one[0].line.time is None, one[0].line.time or 0.0))
    return [_cause(case, change, source, len(found))]


def _steps(source: Source) -> list[_Step]:
    """Return the times of the steps in the end of a log, the last one first."""
    found = []
    for number, text in texts_from_end(source, _MOST_BYTES):
        match = _STEP_TIME.search(text[:_LONGEST])
        if match is None:
            continue
        unit, value = match[1] or match[3] or b"s", float(match[2] or match[4])
        found.append(_Step(value / 1000.0 if unit == b"ms" else value, number, text))
    return found


def _change(file: int, steps: Sequence[_Step]) -> _Change | None:
    """Return where the times of steps went up and stayed so; None if they did not."""
    if len(steps) < 2 * _FEWEST:
        return None
    part = max(_FEWEST, len(steps) // 4)
    before, after = (median(one.seconds for one in some) for some in (steps[:part], steps[-part:]))
    if not before or after < _TIMES_MORE * before:
        return None
    limit = (before + after) / 2.0
    at = max((index + 1 for index, one in enumerate(steps) if one.seconds < limit), default=0)
    if not (_FEWEST <= at <= len(steps) - _FEWEST):
        return None
    if not (_is_steady(steps[:at], before) and _is_steady(steps[at:], after)):
        return None
    return _Change(before, after, line_of(file, steps[at].number, steps[at].text))


def _is_steady(steps: Sequence[_Step], usual: float) -> bool:
    odd = sum(abs(one.seconds - usual) > _SPREAD * usual for one in steps)
    return odd <= _MOST_OUTLIERS * len(steps)


def _cause(case: Case, change: _Change, source: Source, logs: int) -> Cause:
    line = change.line
    time = line.time if line.is_own else None
    several = f", in {logs} logs" if logs > 1 else ""
    where = f"from line {line.number} of {source.shown} on"
    reason = f"{where} a step takes {change.after:.3g} s instead of {change.before:.3g} s{several}"
    shown = line.text.decode(errors="replace").strip()[:_SHOWN]
    event = Event(
        messages()[_SLOWER], {}, (), line.file, line.number, time=time, text=shown,
        is_yearless=line.is_yearless,
    )  # fmt: skip
    seen = Seen(event, Place(), source.path, time=time)
    beside = _reason(case, line)
    if beside is not None:
        reason += f"; about that time, at {moment(beside.event)}: {beside.event.message.meaning}"
    # The ranks wait for each other in each step: that a rank printed the times does not make it the slow one.
    return Cause(event.message, "compared", (), seen, reason, (), beside)


def _reason(case: Case, line: Line) -> Seen | None:
    """Return the nearest line about the change that names a reason for slow hosts; times must be known."""
    if line.time is None:
        return None
    near: list[tuple[float, Seen]] = []
    for one in case.cluster.seen:
        if one.event.message.id in _REASONS and one.time is not None:
            time = in_year(one.time, line.time) if one.event.is_yearless else one.time
            near += [(abs(time - line.time), one)] if abs(time - line.time) <= _NEAR else []
    return min(near, key=lambda pair: pair[0], default=(0.0, None))[1]
