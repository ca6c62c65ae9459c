"""What the supervisors of a job's other hosts say when they begin and end, and which of them never did.

A supervisor that was killed, or whose host is cut off, says nothing, while all others are asked to end and
say so: that names the host. The engine's own word is not enough: mpirun of Open MPI 5 ends with 0 when it has
lost a host.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan

#: Where they are kept in the run directory, beside what engines hand on.
ENDS_FILE = "host_ends.jsonl"
BEGAN, ENDING = "host began", "host ending"
ENDED, REFUSED = "host ended", "host refused"
#: Said by wire only: no rank of a job that ends before its time is left on this host.
DONE = "host done"
#: After one of these a supervisor may go.
LAST_WORDS = (ENDING, ENDED, REFUSED)
_MOST_RANKS = 8


def server_of(plan: Plan) -> int:
    """Return which of the table's servers the host of a supervisor is."""
    return plan.local[0].server_index


def began(plan: Plan) -> dict[str, Any]:
    """Say that this host begins its part, and what Slurm calls it: a table knows hosts by address."""
    return {"hccl_tools": BEGAN, "host": plan.local[0].host, "node": _node()}


def ending(plan: Plan) -> dict[str, Any]:
    """Say that this host's part of the job is ended before its time, in good order."""
    return {"hccl_tools": ENDING, "server_index": server_of(plan)}


def ended(plan: Plan) -> dict[str, Any]:
    """Say that all ranks of this host have ended well."""
    return {"hccl_tools": ENDED, "server_index": server_of(plan)}


def refused(error: HcclToolsError) -> dict[str, Any]:
    """Say why this host does not start its part of the job."""
    return {"hccl_tools": REFUSED, "host": _node(), "message": error.message}


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def explain(plan: Plan, outcome: Outcome, told: Sequence[Mapping[str, Any]], *, ranks_failed: bool) -> None:
    """Name the host that refused its part, or that was lost.

    Args:
        plan: The job.
        outcome: How it ended, as the engine's own end shows it; gets the reason.
        told: What hosts and ranks have said, in order of time.
        ranks_failed: Whether a rank's failure was told; a lost host may be its cause and becomes a note.
    """
    refusals = [facts for facts in told if facts["hccl_tools"] == REFUSED]
    if refusals and not ranks_failed:
        outcome.reason, outcome.first = "refused", None
        outcome.detail = f"host {refusals[0]['host']} refused its part: {refusals[0]['message']}"
        return
    spoken = {facts["server_index"] for facts in told if facts["hccl_tools"] in {ENDING, ENDED}}
    silent = [index for index in _hosts(plan) if index not in spoken]
    if outcome.reason == "failed" and (refusals or not spoken):
        return  # The engine has not come to start anything, or has said itself what was wrong.
    if not silent:
        return
    said = "; ".join(lost(plan, "supervisor", index) for index in silent)
    if ranks_failed:
        outcome.notes.append(said)
        return
    outcome.reason, outcome.first, outcome.detail = "host", None, said


def name(plan: Plan, index: int) -> str:
    """Return what the plan calls a server."""
    return next(process.host for process in plan.ranks if process.server_index == index)


def _hosts(plan: Plan) -> list[int]:
    return list(dict.fromkeys(process.server_index for process in plan.ranks))


def lost(plan: Plan, who: str, index: int) -> str:
    """Return in a sentence that a server's launcher or supervisor (``who``) ended without a word."""
    own = [process for process in plan.ranks if process.server_index == index]
    ranks = ", ".join(str(process.rank) for process in own[:_MOST_RANKS])
    if len(own) > _MOST_RANKS:
        ranks += f" and {len(own) - _MOST_RANKS} more"
    many = "s" if len(own) > 1 else ""
    return (
        f"the {who} on {own[0].host} (rank{many} {ranks}) ended without a word: it was killed, "
        "or its host is down or cut off"
    )
