"""What the shims have said about the end of their ranks, put in the place of mpirun in an outcome."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import end_messages, excerpt, host_ends
from hccl_tools.launch.engines.starter import ERRORS
from hccl_tools.launch.outcome import RankEnd
from hccl_tools.launch.signal_names import signal_name, signal_number

if TYPE_CHECKING:
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan


def explain(plan: Plan, outcome: Outcome, token: str = "") -> None:
    """Replace mpirun in an outcome by its ranks, the first failure in time first.

    Where nothing was reported (mpirun itself could not start them) the outcome stays as it is. ``token`` is
    that of reports in the engine's output.
    """
    heard = end_messages.read(plan.run_dir, token)
    of_ranks = [facts for facts in heard if facts["hccl_tools"].startswith("rank ")]
    ends = [_end(plan, facts) for facts in of_ranks if facts["rank"] < plan.world_size]
    failures = [end for end in ends if end.status != 0]
    if outcome.reason in {"failed", "ended"} and plan.supervisor:
        host_ends.explain(plan, outcome, heard, ranks_failed=bool(failures))
    if not ends:
        errors = os.path.join(plan.run_dir, ERRORS)
        if outcome.first is not None and os.path.exists(errors) and os.path.getsize(errors):
            outcome.first.log = errors
        return
    others = [end for end in outcome.ends if end.process.rank < 0]
    outcome.ends = others + sorted(ends, key=lambda end: end.process.rank)
    if outcome.reason == "failed" and failures:
        outcome.first = failures[0]


def failed(end: RankEnd) -> dict[str, Any]:
    """Return what a supervisor says of the first rank that failed on its host, as a shim does."""
    lines = excerpt.log_end(end.log)
    return {
        "hccl_tools": "rank failed",
        "rank": end.process.rank,
        "device": end.process.device,
        "host": os.uname().nodename,
        "pid": end.pid,
        "exit_code": end.code,
        "signal": signal_name(end.signal) if end.signal else None,
        "time": time.time() - (time.monotonic() - end.ended),
        "duration": round(end.duration, 3),
        "log": end.log,
        "last_lines": excerpt.last_lines(lines),
        "traceback": excerpt.last_traceback(lines),
    }


def _end(plan: Plan, facts: dict[str, Any]) -> RankEnd:
    number = signal_number(facts["signal"]) if facts["signal"] else 0
    log, kept = facts["log"], ""
    if not os.path.exists(log):
        # It lies on its own host; what came along is kept here.
        kept = os.path.join(plan.run_dir, f"rank_{facts['rank']}.end_of_log")
        with open(kept, "w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in facts["traceback"] or facts["last_lines"])
    return RankEnd(
        process=plan.ranks[facts["rank"]],
        log=log,
        kept=kept,
        pid=facts["pid"],
        ended=facts["duration"],
        status=number or facts["exit_code"] << 8,
    )
