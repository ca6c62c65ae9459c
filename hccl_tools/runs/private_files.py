"""A private directory of this user on this host, for locks and for files that are executed or unpickled.

Other users may be able to write to a log directory and replace a run directory in it. In the private
directory the owner of every directory and file is checked before it is used. XDG_RUNTIME_DIR is not the
first choice: systemd removes that directory when the user logs out, and a job may continue.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from hccl_tools.document import links
from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.runs import parents

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_JOB = "job-"
#: Other users can write to /tmp, too: the directory created in it is checked before it is used.
_TMP = "/tmp"  # noqa: S108  # nosec B108
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  # nosec B108
#: The prefix of the files in which the first MPI rank of a host prepares the other ranks.
SHIMS = "ranks-"
#: Age in seconds from which files of killed processes are removed.
_ABANDONED_SECONDS = 600.0


def new_path(environ: Mapping[str, str]) -> str:
    """Return the path of a new directory for one job, with a random name; create nothing.

    Raises:
        LaunchError: No safe place for the directory exists.
    """
    return os.path.join(place(environ), _JOB + os.urandom(16).hex())


def place(environ: Mapping[str, str]) -> str:
    """Return the path of this user's private directory, which may not exist yet.

    Raises:
        LaunchError: No safe place for the directory exists; the message explains the first problem.
    """
    found = [(path, _problem(path)) for path in _paths(environ)]
    for path, problem in found:
        if not problem:
            return path
    raise LaunchError(
        f"no private directory for this user: {found[0][1]}",
        hint="set TMPDIR to a directory in which only you, or only its owner (as in /tmp), can rename a file",
    )


def make(path: str) -> int:
    """Create a private directory of a job; return a descriptor that protects it from removal.

    Raises:
        LaunchError: The directory cannot be created.
    """
    parent = os.path.dirname(path)
    ensure(parent)
    _remove_abandoned(parent)
    try:
        os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        raise LaunchError(f"cannot create the private directory {path}: {error.strerror}") from error
    return descriptor


def ensure(path: str) -> None:
    """Create this user's private directory if it does not exist.

    Raises:
        LaunchError: The directory cannot be created, or belongs to another user.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise LaunchError(f"cannot create the private directory {path}: {error.strerror}") from error
    if problem := _problem(path):
        raise LaunchError(f"no private directory for this user: {problem}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LaunchError(f"cannot open the private directory {path}: {error.strerror}") from error


def remove(path: str) -> None:
    """Remove a private directory of a job, or the directory of a run that did not start, with its files."""
    try:
        with run_files.opened(path) as folder:
            for name in folder.names():
                folder.unlink(name)
        os.rmdir(path)
    except OSError:
        return  # The next job removes the remaining files.


def open_own(path: str) -> int:
    """Open a file whose content will be executed or unpickled: only a regular file that this user wrote.

    Raises:
        OSError: The file cannot be opened, or belongs to another user.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    about = os.fstat(descriptor)
    if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o022:
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{path} is not a regular file that only this user can write")


def _paths(environ: Mapping[str, str]) -> Iterator[str]:
    name = f"hccl-tools-{os.geteuid()}"
    for parent in (environ.get("TMPDIR") or _TMP, _SHARED_MEMORY, environ.get("XDG_RUNTIME_DIR")):
        if parent:
            yield os.path.join(os.path.abspath(parent), name)
    # Another user can make the names above first. The home directory is the last choice: it may be on a slow
    # disk, and several hosts may share it, so that the name has the host.
    if home := environ.get("HOME"):
        yield os.path.join(os.path.abspath(home), f".hccl-tools-{os.uname().nodename}")


def _problem(path: str) -> str:
    parent = os.path.dirname(path)
    try:
        above = os.stat(parent)
        if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
            return f"every user can rename files in {parent}"
        if group := parents.group_that_renames(above):
            return f"the group {group} can rename files in {parent}"
        if above.st_uid not in {0, os.geteuid(), os.stat("/").st_uid}:
            return f"{parent} belongs to {links.user_name(above.st_uid)}, who can rename files in it"
        about = os.lstat(path)
    except FileNotFoundError as error:
        if error.filename == path and os.access(parent, os.W_OK | os.X_OK, effective_ids=True):
            return ""
        return f"{parent} does not exist or is not writable"
    except OSError as error:
        return f"{path}: {error.strerror}"
    if not stat.S_ISDIR(about.st_mode):
        return f"{path} is not a directory"
    return "" if about.st_uid == os.geteuid() else f"{path} belongs to another user"


def _remove_abandoned(parent: str) -> None:
    """Remove files of killed processes: directories that no process has locked, and old files of shims."""
    old = time.time() - _ABANDONED_SECONDS
    for entry in list(os.scandir(parent)):
        try:
            if entry.stat(follow_symlinks=False).st_mtime > old:
                continue
            if entry.name.startswith(SHIMS):
                os.unlink(entry.path)
            elif entry.name.startswith(_JOB) and _is_unlocked(entry.path):
                remove(entry.path)
        except OSError:
            continue


def _is_unlocked(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
