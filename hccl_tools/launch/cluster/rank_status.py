"""An agent's report on the end of a rank, as a part of its message to the controller."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.model.outcome import RankEnd

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

#: Whether a rank was asked to end; ``None`` from a shim, which does not know.
_ASKED = (True, False, None)


def as_dict(end: RankEnd) -> dict[str, Any]:
    """Return the report of a rank's end, ready for JSON."""
    return {
        "rank": end.process.rank,
        "pid": end.pid,
        "status": end.status,
        "duration": round(end.duration, 3),
        "asked": end.was_terminated,
        "log": end.log,
    }


def parse(plan: Plan, facts: dict[str, Any]) -> RankEnd:
    """Return the end of a rank as an agent reported it.

    Raises:
        KeyError, TypeError, ValueError: The report is incomplete or has values out of range.
    """
    rank, pid, status = _count(facts["rank"]), _count(facts["pid"]), facts["status"]
    if status is not None:
        os.waitstatus_to_exitcode(_count(status))
    if rank >= plan.world_size or not isinstance(facts["log"], str) or facts["asked"] not in _ASKED:
        raise ValueError(facts)
    return RankEnd(
        process=plan.ranks[rank],
        log=facts["log"],
        pid=pid,
        ended=_seconds(facts["duration"]),
        status=status,
        was_terminated=facts["asked"],
        is_elsewhere=bool(plan.supervisor),
    )


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31:
        return value
    raise ValueError(value)


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ValueError(value)
