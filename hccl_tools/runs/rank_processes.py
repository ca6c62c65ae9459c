"""Find the processes of a run's ranks on this host by the variables that ``launch`` has set for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.processes import procfs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.processes.procfs import Status
#: Digits of a rank.
_MOST_DIGITS = 9


def find(
    run_dir: str, processes: Iterable[procfs.Status] | None = None, owner: int | None = None
) -> dict[int, int]:
    """Return the process id of each rank of a run on this host, by rank.

    A rank's children have the same variables: the rank is the process whose parent does not have them.
    ``processes`` are those to look at, by default all of this machine. With an ``owner``, the processes of
    other users do not count: each user can set the variables. Only root can read those of another user.
    """
    found = {process.pid: process for process in processes or procfs.processes().values()}
    ranks: dict[int, int] = {}
    known: dict[int, int] = {}
    for pid in found:
        rank = _rank(pid, run_dir)
        if rank >= 0 and owner in {None, procfs.user(pid)}:
            known[pid] = rank
    for pid, rank in known.items():
        if known.get(found[pid].parent) != rank and not _is_orphan(found, pid, ranks.get(rank, 0)):
            ranks[rank] = pid
    return ranks


def _is_orphan(found: dict[int, Status], pid: int, rank_pid: int) -> bool:
    """Return whether a process began after the rank that is already known: the rank has left it behind."""
    return rank_pid in found and found[pid].start > found[rank_pid].start


def _rank(pid: int, run_dir: str) -> int:
    environment = procfs.environment(pid)
    if environment.get(procfs.RUN_VARIABLE) != run_dir or environment.get("MS_ROLE") == "MS_SCHED":
        return -1
    rank = environment.get("RANK_ID", "")
    return int(rank) if rank.isdecimal() and len(rank) <= _MOST_DIGITS else -1
