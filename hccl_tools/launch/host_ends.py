"""What the supervisors of a job's other hosts say when they begin and end, and which of them never did.

They say it as one JSON line through the engine's output, or in the run directory beside the launcher.
A supervisor that was killed, or whose host is cut off, says nothing, while the engine has asked all others to
end and they have said so: that names the host. The engine's own word is not enough: mpirun of Open MPI 5 ends
with 0 when it has lost a host.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.run_directory import HOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan

#: Words of supervisors on the launcher's own host, which the engine may no longer hand on.
ENDS_FILE = "host_ends.jsonl"
BEGAN = "host began"
_ENDING, _ENDED, _REFUSED = "host ending", "host ended", "host refused"
_MOST_RANKS = 8


def tell_began(plan: Plan) -> None:
    """Say that this host begins its part, and what Slurm calls it: a table knows hosts by address."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    _tell({"hccl_tools": BEGAN, "host": plan.local[0].host, "node": node}, plan.run_dir)


def tell_ending(plan: Plan) -> None:
    """Say that this host's part of the job is ended before its time, in good order."""
    _tell({"hccl_tools": _ENDING, "server_index": plan.here}, plan.run_dir)


def tell_end(plan: Plan) -> None:
    """Say that all ranks of this host have ended well."""
    _tell({"hccl_tools": _ENDED, "server_index": plan.here}, plan.run_dir)


def tell_refusal(error: HcclToolsError, run_dir: str) -> None:
    """Say why this host does not start its part of the job."""
    host = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    _tell({"hccl_tools": _REFUSED, "host": host, "message": error.message}, run_dir)


def _tell(facts: dict[str, Any], run_dir: str) -> None:
    data = (json.dumps({**facts, "time": time.time()}, ensure_ascii=False) + "\n").encode()
    with contextlib.suppress(OSError):  # Nobody may be there any more to hear it.
        if not _is_launchers_host(run_dir):
            os.write(1, data)
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(os.path.join(run_dir, ENDS_FILE), flags, 0o644)
        os.write(descriptor, data)
        os.close(descriptor)


def _is_launchers_host(run_dir: str) -> bool:
    """Whether the launcher that has started the supervisors runs on this host."""
    try:
        with open(os.path.join(run_dir, HOLDER), encoding="utf-8") as file:
            pid, host = file.read().split("\n")[:2]
    except (OSError, ValueError):
        return False
    return host == os.uname().nodename and pid != str(os.getpid())


def explain(plan: Plan, outcome: Outcome, told: Sequence[Mapping[str, Any]], *, ranks_failed: bool) -> None:
    """Name the host that refused its part, or that was lost.

    Args:
        plan: The job.
        outcome: How it ended, as the engine's own end shows it; gets the reason.
        told: What hosts and ranks have said, in order of time.
        ranks_failed: Whether a rank's failure was told; a lost host may be its cause and becomes a note.
    """
    refused = [facts for facts in told if facts["hccl_tools"] == _REFUSED]
    if refused and not ranks_failed:
        outcome.reason, outcome.first = "refused", None
        outcome.detail = f"host {refused[0]['host']} refused its part: {refused[0]['message']}"
        return
    ended = {facts["server_index"] for facts in told if facts["hccl_tools"] == _ENDED}
    spoken = ended | {facts["server_index"] for facts in told if facts["hccl_tools"] == _ENDING}
    silent = [index for index in _hosts(plan) if index not in spoken]
    if outcome.reason == "failed" and (refused or not spoken):
        return  # The engine has not come to start anything, or has said itself what was wrong.
    if not silent:
        return
    said = "; ".join(lost(plan, "supervisor", index) for index in silent)
    if ranks_failed:
        outcome.notes.append(said)
        return
    outcome.reason, outcome.first, outcome.detail = "host", None, said


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
