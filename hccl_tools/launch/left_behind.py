"""What to say of processes that a job has left behind."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs.directory import HOLDER, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.processes.procfs import Status

_MOST = 8


def text(left: Sequence[Status]) -> str:
    """Say which they are and whose; of many, how many."""
    shown = [_described(process.pid) for process in left[:_MOST]]
    if len(left) == 1:
        return f"ending what the job left behind: {shown[0]}"
    if len(left) > len(shown):
        shown.append(f"and {len(left) - len(shown)} more")
    return "\n  ".join([f"ending {len(left)} processes that the job left behind:", *shown])


def of_last_run(log_dir: str) -> list[str]:
    """Say that the last run in a log directory has lost its launcher and left processes on this host."""
    path = os.path.realpath(os.path.join(log_dir, LATEST))
    if not os.path.exists(os.path.join(path, HOLDER)) or os.path.exists(os.path.join(path, "report.json")):
        return []
    from hccl_tools.launch.runs import files, index  # noqa: PLC0415  (most runs have left their report)

    try:
        run = index.read(path)
    except files.MalformedRunError:
        return []
    left = index.processes(run) if run.state == "killed" else []
    if not left:
        return []
    many = "1 process of it is" if len(left) == 1 else f"{len(left)} processes of it are"
    stop = shlex.join(["hccl-tools", "stop", path])
    return [f"the launcher of {path} was killed, and {many} left: `{stop}` ends them"]


def _described(pid: int) -> str:
    rank = procfs.variable(pid, "RANK_ID")
    return procfs.describe(pid) + (f" of rank {rank}" if rank else "")
