"""What to say of processes that a job has left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch import proc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.proc import Status

_MOST = 8


def text(left: Sequence[Status]) -> str:
    """Say which they are and whose; of many, how many."""
    shown = [_described(process.pid) for process in left[:_MOST]]
    if len(left) == 1:
        return f"ending what the job left behind: {shown[0]}"
    if len(left) > len(shown):
        shown.append(f"and {len(left) - len(shown)} more")
    return "\n  ".join([f"ending {len(left)} processes that the job left behind:", *shown])


def _described(pid: int) -> str:
    rank = proc.variable(pid, "RANK_ID")
    return proc.describe(pid) + (f" of rank {rank}" if rank else "")
