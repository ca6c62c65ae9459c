"""The run directory: its path, owner and mode, the lock of its launcher, the ``latest`` link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs import names, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The mode of a run directory that other users cannot read.
PRIVATE = 0o700
_OTHERS_WRITE = 0o022
#: The beginning of a line of the launcher's file; exit code and reason of a run without a report follow.
ENDED = "ended "
#: Attempts to take the lock of a run.
_LOCK_ATTEMPTS = 4
#: Seconds between two attempts.
_LOCK_RETRY_SECONDS = 0.005


def path_for(
    log_dir: str, environ: Mapping[str, str], *, now: float | None = None, ending: str | None = None
) -> str:
    """Return the absolute path of a new run directory, ``log/20261121-101530-`` and 32 digits; not created.

    ``%j`` in ``log_dir`` stands for Slurm's job id. Inside a Slurm job the name ends with the id as well.
    """
    job = environ.get("SLURM_JOB_ID", "")
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    name = f"{stamp}-{ending or os.urandom(16).hex()}" + (f"-{job}" if job else "")
    return os.path.join(os.path.abspath(log_dir.replace("%j", job or "nojob")), name)


def create(run_dir: str, *, shared: bool = False, mode: int = PRIVATE) -> None:
    """Create the run directory; ``mode`` is independent of the umask.

    A ``shared`` directory may exist: another process of the job has created it as the same user.

    Raises:
        LaunchError: The directory cannot be created, or belongs to another user.
    """
    try:
        os.makedirs(run_dir, PRIVATE)  # Only the last directory gets this mode.
        if mode != PRIVATE:
            os.chmod(run_dir, mode)
    except FileExistsError as error:
        if not (shared and os.path.isdir(run_dir)):
            raise _not_made(run_dir, error) from error
        check_owner(run_dir, mode)
    except OSError as error:
        raise _not_made(run_dir, error) from error
    if shared:
        point_latest_to(run_dir)


def _not_made(run_dir: str, error: OSError) -> LaunchError:
    return LaunchError(
        f"cannot create the run directory {run_dir}: {error.strerror}",
        hint="choose a writable directory with --log-dir",
    )


def check_owner(run_dir: str, mode: int) -> None:
    """Refuse a run directory of another user, or one that others can write to although ``mode`` forbids it.

    Raises:
        LaunchError: The directory has another owner, or other users can write to it.
    """
    about = os.lstat(run_dir)
    if not is_own(run_dir):
        raise LaunchError(
            f"the run directory {run_dir} belongs to another user",
            hint="choose a directory of your own with --log-dir",
        )
    if about.st_mode & _OTHERS_WRITE & ~mode:
        raise LaunchError(
            f"other users may write to the run directory {run_dir}", hint=f"chmod go-w {shlex.quote(run_dir)}"
        )


def is_own(run_dir: str) -> bool:
    """Return whether a directory belongs to this user, even if an NFS server maps root to another user."""
    about = os.lstat(run_dir)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid == os.geteuid():
        return stat.S_ISDIR(about.st_mode)
    probe = os.path.join(run_dir, f".owner-{os.urandom(16).hex()}")
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        return os.fstat(descriptor).st_uid == about.st_uid
    finally:
        os.close(descriptor)
        _remove_quietly(probe)


def point_latest_to(run_dir: str) -> None:
    """Point ``latest`` in the parent directory to a run directory."""
    parent, name = os.path.split(run_dir)
    link, fresh = (
        os.path.join(parent, names.LATEST),
        os.path.join(parent, f".{names.LATEST}-{name}-{os.getpid()}"),
    )
    try:
        os.symlink(name, fresh)
        os.replace(fresh, link)
    except OSError:
        # A file system without links, or a real directory of that name: the run itself is not affected.
        _remove_quietly(fresh)


def write(run_dir: str, name: str, data: bytes | Iterable[bytes]) -> str:
    """Write one file of the run directory, whole or in parts, and return its path.

    Raises:
        LaunchError: The file cannot be written.
    """
    try:
        return writing.write(run_dir, name, data, file_mode(run_dir))
    except OSError as error:
        raise LaunchError(f"{os.path.join(run_dir, name)} cannot be written: {error.strerror}") from error


def file_mode(run_dir: str) -> int:
    """Return the mode of the files in a run directory: readable by the users who can read the directory."""
    return os.stat(run_dir).st_mode & 0o666


def hold(run_dir: str, *, kind: str = "launch") -> int:
    """Mark a run as running by a locked file with this process's id, and point ``latest`` to the run.

    The lock is held until the returned descriptor is closed; the kernel closes it when the launcher exits.
    ``hccl-tools jobs`` checks the lock. ``kind`` is ``launch``, or ``spawn`` if a program called ``spawn``.

    Raises:
        LaunchError: The file cannot be written.
    """
    path = os.path.join(run_dir, names.LAUNCHER)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return -1
    if not _is_ours(descriptor):
        # The launcher that started this process has locked the file on this shared disk.
        os.close(descriptor)
        return -1
    try:
        os.fchmod(descriptor, file_mode(run_dir))
        me = procfs.status(os.getpid())
        lines = (os.getpid(), os.uname().nodename, time.time(), kind, me.start if me else 0)
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        os.close(descriptor)
        raise LaunchError(f"{path} cannot be written: {error.strerror}") from error
    point_latest_to(run_dir)
    return descriptor


def note_end(run_dir: str, exit_code: int, reason: str) -> None:
    """Record the end of this process's run in the launcher's file, in case the report cannot be written.

    The file already occupies a disk block, so this also works if the disk is full.
    """
    with contextlib.suppress(OSError, ValueError), open(os.path.join(run_dir, names.LAUNCHER), "r+") as file:
        if int(file.readline()) == os.getpid() and file.readline().strip() == os.uname().nodename:
            file.seek(0, os.SEEK_END)
            file.write(f"{ENDED}{exit_code} {reason}\n")


def _is_ours(descriptor: int) -> bool:
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_RETRY_SECONDS)
    return False


def _remove_quietly(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
