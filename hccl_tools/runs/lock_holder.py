"""Whose process holds the lock of a run, and whether a process is its launcher.

Every user who can read the launcher's file can lock it, and the author of an archive chooses its content.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs, run_files
from hccl_tools.runs import directory, files, names, own_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Characters of the kernel's list of locks that are read.
_MOST_LOCKS = 1 << 24


def may_be_launcher(path: str) -> bool:
    """Return whether the lock of a run, which is held, can be that of its launcher.

    The kernel does not list the locks of other hosts and containers, and those of some file systems under
    another device. Without a list, the lock of a run of this user counts if the launcher has the file open,
    or the run is in the record of launches.
    """
    try:
        owner, about = directory.owner_of_processes(path), _of_launcher(path)
    except OSError:
        return False
    if holders := list(_holders(about)):
        return any(procfs.user(pid) == owner for pid in holders)
    if not directory.is_own(path):
        return True
    try:
        pid = files.holder(path).pid
    except files.MalformedRunError:
        return False
    return bool(_writes(pid, about)) or own_runs.is_known(path, os.environ)


def is_launcher(path: str, pid: int) -> bool:
    """Return whether a process is the launcher of a run: it can write the run's file of its launcher.

    The content of that file does not prove it. If the process does not show its open files, the content
    counts only for a run in the record of launches, and only if it has the start time of the process.
    """
    try:
        noted, process, writes = files.holder(path), procfs.status(pid), _writes(pid, _of_launcher(path))
        owner = directory.owner_of_processes(path)
    except OSError:
        return False
    if process is None or pid <= 1 or procfs.user(pid) != owner:
        return False
    if noted.start and process.start != noted.start:
        return False
    return (bool(noted.start) and own_runs.is_known(path, os.environ)) if writes is None else writes


def _of_launcher(path: str) -> os.stat_result:
    """Return the status of the launcher's file of a run.

    Raises:
        OSError: It cannot be opened.
    """
    with run_files.opened(path) as folder, open(folder.open_read(names.LAUNCHER), "rb") as file:
        return os.fstat(file.fileno())


def _holders(about: os.stat_result) -> Iterator[int]:
    """Yield the processes that have locked a file, as far as the kernel lists them."""
    wanted = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = file.read(_MOST_LOCKS).splitlines()
    except OSError:
        return
    for line in lines:
        match line.split():
            case [_, "FLOCK", _, _, pid, place, *_] if place == wanted and pid.isdecimal():
                yield int(pid)


def _writes(pid: int, about: os.stat_result) -> bool | None:
    """Return whether a process has opened a file to write it; None if it does not show its files."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return None
    except OSError:
        return False
    for name in descriptors:
        try:
            found = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (about.st_dev, about.st_ino) and _is_written(pid, name):
            return True
    return False


def _is_written(pid: int, name: str) -> bool:
    for line in procfs.read(f"/proc/{pid}/fdinfo/{name}").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
