"""The processes of a run that are running on this host."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.processes import guarded_folders, mounts, procfs
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.processes.procfs import Status

#: Bytes of the environment of a process that are read. The kernel takes 6 MiB at most with a program, but a
#: process can claim a mapping of any size to be its environment.
_MOST_BYTES = 6 << 20
#: Bytes of all environments of another user; of each further process of that user, fewer are read.
_MOST_OF_A_USER, _FEWER_BYTES = 64 << 20, 1 << 16

#: Digits of a rank.
_MOST_DIGITS = 9
_HELD = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: What is known of the mounts of this process, for a look at the processes of all users.
_own_mounts = mounts.OwnMounts()


class Member(NamedTuple):
    """A process that belongs to a run, by its own account: its id, its user, and the run directory."""

    pid: int
    user: int
    path: str


def members() -> Iterator[Member]:
    """Yield every process of this host that belongs to a run.

    A process that claims a run of another user is skipped, unless the process belongs to this user. So is a
    setuid program: another user has chosen what it claims.
    """
    left: dict[int, int] = {os.geteuid(): sys.maxsize}
    claims = dict[tuple[int, str], bool]()
    _own_mounts.close()  # They may have changed.
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        owner = procfs.user(pid)
        if not procfs.is_of_one_user(pid):
            continue
        data = _environment(pid, _MOST_BYTES if left.setdefault(owner, _MOST_OF_A_USER) > 0 else _FEWER_BYTES)
        left[owner] -= len(data)
        if path := _run_in(data):
            status = procfs.status(pid)
            if status is None or status.state in procfs.ENDED_STATES:
                continue
            claim = owner, path
            if claim not in claims:  # The processes of a run have one path.
                claims[claim] = _may_claim(owner, path)
            if claims[claim]:
                yield Member(pid, owner, path)


def _may_claim(user: int, path: str) -> bool:
    if user == os.geteuid():
        return True
    guarded_folders.guard(path, partial(_opened, path, frozenset({0, os.geteuid(), user})))
    try:
        return user == guarded_folders.about(path).st_uid
    except OSError:
        return False


def _opened(path: str, owners: frozenset[int], flags: int) -> int:
    """Open a directory that another user has named; no file system is asked that another user serves.

    Each part is held before it is used: it does not matter what that user exchanges in the meantime.

    Raises:
        OSError: It cannot be opened, is a link, or a part of the path is in such a file system.
    """
    with links.Entry(path, follow_last=False, owners=owners, admit=_own_mounts.check) as entry:
        held = os.open(entry.name, _HELD, dir_fd=entry.folder)
    try:
        _own_mounts.check(held)
        return os.open(".", flags | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=held)
    finally:
        os.close(held)


def are_incomplete() -> bool:
    """Return whether ``members`` has skipped processes of others because the list of mounts is not usable."""
    return _own_mounts.is_incomplete


def run_of(pid: int) -> str | None:
    """Return the run directory of a process, ``None`` if the process has none."""
    return _run_in(_environment(pid, _MOST_BYTES))


def _environment(pid: int, most: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _run_in(environment: bytes) -> str | None:
    """Return the run directory in an environment, None without one.

    ``launch`` sets a path without links of the form ``.`` or ``..``: another spelling would be one more run.
    """
    _, found, rest = (b"\0" + environment).partition(f"\0{RUN_VARIABLE}=".encode())
    path = os.fsdecode(rest.partition(b"\0")[0])
    is_plain = path.startswith("/") and path == os.path.normpath(path) and os.path.basename(path)
    return path if found and is_plain and not path.startswith("//") else None


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
