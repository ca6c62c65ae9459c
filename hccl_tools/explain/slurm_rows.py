"""The rows of ``sacct``: which one is about this job, and when and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.events import time_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.sources import Source

COMPLETED = "HCM918"
#: A row of a job that the scheduler or a user ended.
ENDED = {"HCM919", "HCM925", "HCM926"}
ROWS = {COMPLETED, *ENDED}
#: Seconds between the end of a job and the last line of its ranks, and by which a clock can be behind.
_AFTER, _BEFORE = 900.0, 120.0


def at_their_end(seen: Sequence[Seen]) -> list[Seen]:
    """Return the events, of which the rows have the time at which their job ended."""
    return [_at_end(one) if one.event.message.id in ROWS else one for one in seen]


def _at_end(row: Seen) -> Seen:
    end = time_in(row.event.fields["moment"].encode())
    return row._replace(event=row.event._replace(time=end), time=end, since=end, until=end)


def objection(row: Seen, sources: Sequence[Source], ends: Mapping[int, float]) -> str:
    """Return why a row is not about the job whose logs these are, "" if its period is that of the logs."""
    written = [end for file, end in ends.items() if sources[file].rank is not None or sources[file].pid]
    begin, last = time_in(row.event.text.encode()), max(written, default=None)
    if last is None or begin is None or row.time is None:
        return "no log of a rank says when the job ran"
    if begin - _BEFORE <= last <= row.time + _BEFORE and row.time - last <= _AFTER:
        return ""
    return "the job in the row did not end with these logs"
