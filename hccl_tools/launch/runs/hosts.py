"""The hosts of a run: which processes are on this one, and the run directory of each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.runs import files, index
from hccl_tools.notation import host_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.runs.index import Run


def is_on_this_host(run: Run, process: Mapping[str, Any]) -> bool:
    """Tell whether a process of a run's plan was planned for this host."""
    plan = index.plan_of(run)
    # In the plan of an engine's command all processes are "here".
    if not plan.get("command") and run.host in {"", os.uname().nodename}:
        return bool(process.get("here", True))
    host: str = process["host"]
    own = {os.uname().nodename, os.environ.get("SLURMD_NODENAME", ""), "localhost"}
    if len(plan.get("hosts", ())) == 1 and run.host in own:
        return True
    if host in own:
        return True
    from hccl_tools.discover.local_addresses import is_this_host  # noqa: PLC0415  (only for other hosts)

    return not host_list.why_not_a_host(host) and is_this_host(host)


def path_on(run: Run, host: str) -> str:
    """Return where a host of a run has its part of it: the same path, unless each was started by hand.

    Raises:
        MalformedRunError: What the launchers have told each other of that is not there as they write it.
    """
    return files.elsewhere(run.path).get(host) or run.path
