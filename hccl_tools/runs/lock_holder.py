"""Whose process holds the lock of a run, and whether a process is its launcher.

Every user who can read the launcher's file can lock it, and the author of an archive chooses its content.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hccl_tools.processes import mounts, procfs, run_files
from hccl_tools.processes.foreign_descriptors import ForeignDescriptors
from hccl_tools.runs import directory, files, names, own_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

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
        is_written = _writes(files.holder(path).pid, path)
    except (files.MalformedRunError, OSError):
        return False
    return bool(is_written) or own_runs.is_known(path, os.environ)


def is_launcher(path: str, pid: int) -> bool:
    """Return whether a process is the launcher of a run: it can write the run's file of its launcher.

    The content of that file does not prove it. If the process does not show its open files, the content
    counts only for a run in the record of launches, and only if it has the start time of the process.
    """
    try:
        noted, process, writes = files.holder(path), procfs.status(pid), _writes(pid, path)
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
    with _launcher_file(path) as file:
        return os.fstat(file.fileno())


@contextlib.contextmanager
def _launcher_file(path: str) -> Iterator[BinaryIO]:
    with run_files.opened(path) as folder, open(folder.open_read(names.LAUNCHER), "rb") as file:
        yield file


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


def _writes(pid: int, path: str) -> bool | None:
    """Return whether a process writes the file of a run's launcher; None if it does not show its files.

    Raises:
        OSError: The file cannot be opened.
    """
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return None
    except OSError:
        return False
    wanted = [(pid, name) for name in descriptors]
    with _launcher_file(path) as file:
        about = os.fstat(file.fileno())
        if procfs.highest_user(pid) == os.geteuid():
            return any(_is_same(about, _status(*name)) and _is_written(*name) for name in wanted)
        with ForeignDescriptors(wanted, also=file.fileno()) as others:
            return any(_is_same(about, others.status(*name)) and _is_written(*name) for name in wanted)


def _status(pid: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(f"/proc/{pid}/fd/{name}")
    except OSError:
        return None


def _is_same(about: os.stat_result, found: os.stat_result | None) -> bool:
    return found is not None and os.path.samestat(about, found)


def _is_written(pid: int, name: str) -> bool:
    flags = mounts.descriptor(pid, name).flags
    return flags & os.O_ACCMODE != os.O_RDONLY
