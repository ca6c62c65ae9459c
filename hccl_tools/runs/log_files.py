"""Prepare the logs outside the run directory: ``--log-file`` and ``--flat-logs``."""

from __future__ import annotations

import errno
import fcntl
import os

from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.runs import names, parents
from hccl_tools.runs.directory import PRIVATE

_OTHERS_WRITE = 0o022
#: The mode of logs outside the run directory, less the umask, unless ``--log-mode`` opens that directory.
_MODE = 0o640

#: Fewer free bytes cause a warning.
LOW_BYTES = 64 << 20
#: With fewer free bytes the disk counts as full.
FULL_BYTES = 64 << 10


def hold_folder(log: str, log_mode: int) -> run_files.Folder:
    """Hold the directory of a log outside the run directory; ``log_mode`` is that of the run directory.

    Raises:
        LaunchError: Another user can exchange the directory.
        OSError: It does not exist, or cannot be read.
    """
    folder = os.path.dirname(log)
    parents.check(folder)
    mode = _MODE & ~_umask() if log_mode == PRIVATE else log_mode & 0o666
    return run_files.hold_outside(folder, file_mode=mode)


def fresh_log(run_dir: str, log: str, rank: int, log_mode: int = PRIVATE) -> int:
    """Empty a log outside the run directory and create a link to it in the run directory, for people.

    The returned descriptor locks the log: two runs could otherwise empty each other's log.

    Raises:
        LaunchError: The log cannot be written, or another run is writing to it.
    """
    try:
        if log == os.devnull:
            descriptor = run_files.open_append(log)
        else:
            descriptor = _open(hold_folder(log, log_mode), os.path.basename(log))
            _take(descriptor, log)
            os.ftruncate(descriptor, 0)
        with run_files.opened(run_dir) as folder:
            folder.link(log, names.rank_log(rank))
    except OSError as error:
        raise LaunchError(
            f"the log {log} cannot be written: {run_files.reason(error)}",
            hint="remove the file, or choose another with --log-file or --log-dir",
        ) from error
    return descriptor


def _open(folder: run_files.Folder, name: str) -> int:
    folder.owner = os.geteuid()
    try:
        descriptor = folder.open_append(name)
    except OSError as error:
        if error.errno != errno.EUSERS:
            raise
        folder.owner = folder.own_id()
        descriptor = folder.open_append(name)
    if os.fstat(descriptor).st_mode & _OTHERS_WRITE & ~folder.file_mode:
        os.fchmod(descriptor, folder.file_mode)
    return descriptor


def _umask() -> int:
    os.umask(before := os.umask(0o077))
    return before


def _take(descriptor: int, path: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LaunchError(
            f"another run is writing the log {path}",
            hint="wait for that run (`hccl-tools jobs`), or choose another with --log-file or --log-dir",
        ) from None
    except OSError:
        pass  # The file system has no locks.


def is_full(path: str) -> bool:
    """Return whether the file system of a path has no room for logs."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def free_bytes(path: str) -> int | None:
    """Return the bytes that this user may still write below a path, ``None`` if unknown."""
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    blocks = system.f_bfree if os.geteuid() == 0 else system.f_bavail
    return blocks * system.f_frsize
