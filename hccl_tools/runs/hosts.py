"""The hosts of a run: the processes on this host, and the run directory on each host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.notation import host_list
from hccl_tools.runs import files

if TYPE_CHECKING:
    from hccl_tools.runs.index import Run
    from hccl_tools.runs.saved import SavedProcess


def is_on_this_host(run: Run, process: SavedProcess) -> bool:
    """Return whether a process of a run's plan is on this host."""
    plan = files.plan(run.path)
    # In the plan of an engine's command all processes are "here".
    if not plan.command and run.host in {"", os.uname().nodename}:
        return process.here
    host = process.host
    own = {os.uname().nodename, os.environ.get("SLURMD_NODENAME", ""), "localhost"}
    if len(plan.hosts) == 1 and run.host in own:
        return True
    if host in own:
        return True
    from hccl_tools.host.local_addresses import is_this_host  # noqa: PLC0415  (only for other hosts)

    return not host_list.why_not_a_host(host, ipv6=True) and is_this_host(host)


def path_on(run: Run, host: str) -> str:
    """Return the run directory on a host of a run: the same path, unless the command was typed on each host.

    Raises:
        MalformedRunError: The file with the directories of the other hosts is malformed.
    """
    return files.elsewhere(run.path).get(host) or run.path
