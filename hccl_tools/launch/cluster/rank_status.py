"""An agent's report on the end of a rank, as a part of its message to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.model.rank_exit import RankExit

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


def as_dict(end: RankEnd) -> dict[str, Any]:
    """Return the report of a rank's end, ready for JSON."""
    duration = round(end.duration, 3)
    return RankExit(end.process.rank, end.pid, end.status, duration, end.was_terminated, end.log)._asdict()


def parse(plan: Plan, facts: dict[str, Any]) -> RankEnd:
    """Return the end of a rank as an agent reported it.

    Raises:
        TypeError, ValueError: The report is incomplete or has values out of range.
    """
    reported = RankExit.parse(facts)
    if reported.rank >= plan.world_size:
        raise ValueError(facts)
    return RankEnd(
        process=plan.ranks[reported.rank],
        log=reported.log,
        pid=reported.pid,
        ended=reported.duration,
        status=reported.status,
        was_terminated=reported.was_terminated,
        is_elsewhere=bool(plan.supervisor),
    )
