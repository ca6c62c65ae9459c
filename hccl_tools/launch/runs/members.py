"""Find the processes of this host that belong to a run, by a variable in their environment."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs.names import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of the environment of a process that are read. The kernel takes 6 MiB at most with a program, but a
#: process can claim a mapping of any size to be its environment.
_MOST_BYTES = 6 << 20
#: Bytes of all environments of another user; of each further process of that user, fewer are read.
_MOST_OF_A_USER, _FEWER_BYTES = 64 << 20, 1 << 16


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
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        owner = procfs.user(pid)
        if not procfs.is_of_one_user(pid):
            continue
        data = _environment(pid, _MOST_BYTES if left.setdefault(owner, _MOST_OF_A_USER) > 0 else _FEWER_BYTES)
        left[owner] -= len(data)
        if path := _run_in(data):
            status = procfs.status(pid)
            if status is not None and status.state not in procfs.ENDED_STATES and _may_claim(owner, path):
                yield Member(pid, owner, path)


def _may_claim(user: int, path: str) -> bool:
    try:
        return user in {os.geteuid(), os.lstat(path).st_uid}
    except OSError:
        return False


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
