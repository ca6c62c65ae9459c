"""Prepare the logs of a run: their mode, and the logs outside the run directory."""

from __future__ import annotations

import fcntl
import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.runs import names
from hccl_tools.launch.runs.directory import file_mode

if TYPE_CHECKING:
    from collections.abc import Iterable


def let_others_read(run_dir: str, logs: Iterable[str]) -> None:
    """Create the logs of a run directory that other users can read, independent of the umask."""
    mode = file_mode(run_dir)
    if mode & 0o077:
        for log in logs:
            descriptor = os.open(os.path.join(run_dir, log), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, mode)
            os.close(descriptor)


def fresh_log(run_dir: str, log: str, rank: int) -> int:
    """Empty a log outside the run directory (``--log-file``) and create a link to it in the run directory.

    The returned descriptor locks the log: two runs could otherwise empty each other's log.

    Raises:
        LaunchError: The log cannot be written, or another run is writing to it.
    """
    path = os.path.join(run_dir, log)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if path != os.devnull:
            _check_single(descriptor, path)
            _take(descriptor, path)
            os.ftruncate(descriptor, 0)
        os.symlink(path, os.path.join(run_dir, names.rank_log(rank)))
    except OSError as error:
        raise LaunchError(f"the log {path} cannot be written: {error.strerror}") from error
    return descriptor


def _check_single(descriptor: int, path: str) -> None:
    """Refuse to empty a file with a second name: another user may have linked any file there."""
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(descriptor)
        raise LaunchError(
            f"the log {path} is a hard link or not a regular file",
            hint="remove the file, or choose another with --log-file or --log-dir",
        )


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
