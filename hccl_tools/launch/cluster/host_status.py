"""What is known of the hosts of a job that an engine starts: their names, and how the loss of one is told."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.cause import Cause
from hccl_tools.launch.cluster.verdict import KILLED, lost_process, ranks_text

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

#: In the run directory: what Slurm, or the host itself, calls the hosts that have begun their part.
_HOSTS_FILE = "hosts.jsonl"


def own_name() -> str:
    """Return what Slurm calls this host, else its own name: a table knows hosts by address."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def note(run_dir: str, host: str, node: str) -> None:
    """Note what a host of the plan is called, for other commands to find it by."""
    with suppress(OSError), open(os.path.join(run_dir, _HOSTS_FILE), "ab") as file:
        file.write((json.dumps({"host": host, "node": node}) + "\n").encode())


def nodes(run_dir: str) -> dict[str, str]:
    """Return what Slurm, or the host itself, calls the hosts of a plan that have begun their part."""
    found = {}
    with suppress(OSError), open(os.path.join(run_dir, _HOSTS_FILE), encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError, KeyError, TypeError):
                facts = json.loads(line)
                found[str(facts["host"])] = str(facts["node"])
    return found


def name(plan: Plan, index: int) -> str:
    """Return what the plan calls a server."""
    return next(process.host for process in plan.ranks if process.server_index == index)


def loss(plan: Plan, number: int, pid: int) -> Cause:
    """Return the cause of a job that has lost the supervisor of a server, or the shim of a rank on this host.

    ``number`` is that of the server or of the rank, ``pid`` the process.
    """
    if plan.supervisor:
        return Cause(name(plan, number), "host", KILLED, lost(plan, "supervisor", number))
    what = f"the shim of rank {number} (hccl_tools.launch.rank, pid {pid}) was killed"
    return lost_process(os.uname().nodename, what)


def lost(plan: Plan, who: str, index: int) -> str:
    """Return in a sentence that a server's launcher or supervisor (``who``) ended without a word."""
    own = [process.rank for process in plan.ranks if process.server_index == index]
    return (
        f"the {who} on {name(plan, index)} ({ranks_text(own)}) ended without a word: it was killed, "
        "or its host is down or cut off"
    )
