"""Logs whose last loss is not a number: the job has not failed, and yet its result is of no use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.last_lines import line_of
from hccl_tools.explain.locations import Place
from hccl_tools.explain.screens import texts_from_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.sources import Source

_DIVERGED = "HCM998"
#: The value of a loss: ``loss: 2.31``, ``lm loss: nan``, ``'loss': inf``, ``loss is nan``.
_LOSS = re.compile(
    rb"loss['\"]?(?: is |[ =:(\[]{1,4})['\"]?([-+]?(?:nan|inf(?:inity)?)\b|[-+]?\d)", re.IGNORECASE
)
_NUMBER = re.compile(rb"[-+]?\d")
#: Logs whose ends are read, and the bytes of an end.
_MOST_LOGS, _MOST_BYTES = 64, 1 << 16
#: Characters of a line in which the loss is looked for.
_LONGEST, _LONGEST_SHOWN = 1000, 600


def causes(sources: Sequence[Source]) -> list[Cause]:
    """Return the first line from which on a log has only losses that are NaN or infinite; [] if none has."""
    for file, source in enumerate(sources):
        if not source.is_program_log:
            continue
        if file >= _MOST_LOGS:
            break
        first: tuple[int, bytes, bytes] | None = None
        for number, text in texts_from_end(source, _MOST_BYTES):
            found = _LOSS.search(text[:_LONGEST])
            if found is None:
                continue
            if _NUMBER.match(found[1]):
                break
            first = number, text, found[1]
        if first is not None:
            return [_cause(source, file, *first)]
    return []


def _cause(source: Source, file: int, number: int, text: bytes, value: bytes) -> Cause:
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
