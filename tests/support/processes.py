"""What /proc tells of the processes of a job, and how all of them are killed at the same moment."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes as a power failure does: none of them can report or follow the end of another.

    All are stopped first, parents before their children, and killed in the opposite order: the kernel would
    continue a stopped process whose parent has ended.
    """
    ordered = sorted(pids, key=lambda pid: len(ancestors(pid)))
    for pid in ordered:
        _signal(pid, signal.SIGSTOP)
    for pid in reversed(ordered):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            _signal(pid, signal.SIGKILL)
            select.select([descriptor], [], [])  # until it has ended
            os.close(descriptor)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def above(rank: int) -> dict[str, int]:
    """Return the processes above a rank, by role: its keeper, its supervisor, and what started that."""
    found = ancestors(rank)
    supervisor = [name_of(pid) for pid in found].index("hccl-watcher") + 1
    return {"keeper": found[1], "supervisor": found[supervisor], "daemon": found[supervisor + 1]}


@contextmanager
def held(pid: int) -> Iterator[None]:
    """Stop a process by ptrace. After SIGSTOP, the kernel would send SIGHUP when its parent ends.

    The process must not start threads meanwhile.
    """
    threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    for thread in threads:
        _ptrace(_SEIZE, thread)
        _ptrace(_INTERRUPT, thread)
    try:
        for thread in threads:
            os.waitpid(thread, _ALL_THREADS)
        yield
    finally:
        for thread in threads:
            _ptrace(_DETACH, thread)


def _ptrace(request: int, thread: int) -> None:
    if _LIBC.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {thread}")


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long
#: Requests of <linux/ptrace.h>, and the option of waitpid for threads of other processes.
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_ALL_THREADS = 0x40000000
