"""Find the processes of this host that belong to a run, by a variable in their environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs.names import RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of the environment of a process that are read. The kernel takes 6 MiB at most with a program, but a
#: process can claim a mapping of any size to be its environment.
_MOST_BYTES = 6 << 20


def members() -> Iterator[tuple[int, str]]:
    """Yield every process of this host that belongs to a run, with its run directory.

    A process that claims a run of another user is skipped, unless the process belongs to this user.
    """
    for name in os.listdir("/proc"):
        if name.isdigit() and (path := run_of(int(name))):
            status = procfs.status(int(name))
            if status is not None and status.state not in procfs.ENDED_STATES and _may_claim(int(name), path):
                yield int(name), path


def _may_claim(pid: int, path: str) -> bool:
    try:
        return procfs.user(pid) in {os.geteuid(), os.stat(path).st_uid}
    except OSError:
        return False


def run_of(pid: int) -> str | None:
    """Return the run directory of a process, ``None`` if the process has none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = b"\0" + file.read(_MOST_BYTES)
    except OSError:
        return None
    _, found, rest = data.partition(f"\0{RUN_VARIABLE}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None
