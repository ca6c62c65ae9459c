"""What /proc tells of the processes of a job."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def name_of(pid: int) -> str:
    """Return what the kernel calls a process, "" for one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def parent_of(pid: int) -> int:
    """Return the parent of a process, 0 for one that has ended."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def has_ended(pid: int) -> bool:
    """Whether a process does not exist, or is a zombie: in some containers nothing reaps orphans."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


def ancestors(pid: int) -> list[int]:
    """Return a process and what is above it, up to the first process."""
    found = [pid]
    while found[-1] > 1:
        found.append(parent_of(found[-1]))
    return found


def above(rank: int) -> dict[str, int]:
    """Return the processes above a rank, by role: its keeper, its supervisor, and what started that."""
    found = ancestors(rank)
    supervisor = [name_of(pid) for pid in found].index("hccl-watcher") + 1
    return {"keeper": found[1], "supervisor": found[supervisor], "daemon": found[supervisor + 1]}
