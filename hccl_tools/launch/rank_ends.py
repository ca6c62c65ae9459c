"""What the shims have said about the end of their ranks, put in the place of mpirun in an outcome."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.outcome import RankEnd
from hccl_tools.launch.shim import ENDS_FILE

if TYPE_CHECKING:
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan


def explain(plan: Plan, outcome: Outcome) -> None:
    """Replace mpirun in an outcome by its ranks, the first failure in time first.

    Where no shim has said anything (mpirun itself could not start them) the outcome stays as it is.
    """
    told = _read(plan.run_dir)
    if not told:
        return
    ends = [_end(plan, facts) for facts in told]
    failed = [end for end in ends if end.status != 0]
    others = [end for end in outcome.ends if end.process.rank < 0]
    outcome.ends = others + sorted(ends, key=lambda end: end.process.rank)
    if outcome.reason == "failed" and failed:
        outcome.first = failed[0]


def _read(run_dir: str) -> list[dict[str, Any]]:
    """Return what the shims have said, in order of time."""
    path = os.path.join(run_dir, ENDS_FILE)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        told = [json.loads(line) for line in file]
    return sorted(told, key=lambda facts: float(facts["time"]))


def _end(plan: Plan, facts: dict[str, Any]) -> RankEnd:
    number = signal.Signals[facts["signal"]].value if facts["signal"] else 0
    return RankEnd(
        process=plan.ranks[facts["rank"]],
        log=facts["log"],
        pid=facts["pid"],
        ended=facts["duration"],
        status=number or facts["exit_code"] << 8,
    )
