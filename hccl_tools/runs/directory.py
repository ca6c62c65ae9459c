"""The run directory: its path, owner and mode, the lock of its launcher, the ``latest`` link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import LaunchError
from hccl_tools.notation.phrases import operand
from hccl_tools.processes import procfs, run_files
from hccl_tools.runs import names, parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The mode of a run directory that other users cannot read.
PRIVATE = 0o700
_OTHERS_WRITE = 0o022
#: Bytes; the plan of 65,536 ranks has about 100 MB.
LARGEST_PLAN = 1 << 28
#: The beginning of a line of the launcher's file; exit code and reason of a run without a report follow.
ENDED = "ended "
#: What is before the processes of a plan, each of which is a line.
PROCESSES = ',\n  "processes": [\n'
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


def create(run_dir: str, *, shared: bool = False, mode: int = PRIVATE, again: bool = False) -> None:
    """Create the run directory and hold it (see ``run_files``); ``mode`` is independent of the umask.

    A ``shared`` directory may exist: another process of the job has created it as the same user. At a restart
    (``again``) in a new process it must have the plan of this run, unless it is new.

    Raises:
        LaunchError: The directory cannot be created, or another user owns or can exchange it.
    """
    try:
        parents.make(os.path.dirname(run_dir))
        os.mkdir(run_dir, PRIVATE)
        folder = run_files.hold(run_dir)
        check_owner(run_dir, mode)
        if not shared and folder.names():
            run_files.release(run_dir)
            raise LaunchError(f"another directory has taken the place of the run directory {run_dir}")
        folder.change_mode(mode)
    except FileExistsError as error:
        if not (shared and os.path.isdir(run_dir)):
            raise _not_made(run_dir, error) from error
        check_owner(run_dir, mode)
        # The process that creates it may not have set the mode yet.
        run_files.hold(run_dir).file_mode = mode & 0o666
        if again:
            _check_run(run_dir)
    except OSError as error:
        raise _not_made(run_dir, error) from error
    if shared:
        point_latest_to(run_dir)


def _check_run(run_dir: str) -> None:
    """Refuse another directory of this user: no plan but that of this run has the run's random name in it."""
    folder, name = run_files.hold(run_dir), os.path.basename(run_dir).encode()
    try:
        is_same = name in folder.read(names.PLAN, LARGEST_PLAN)
    except FileNotFoundError:
        is_same = set(folder.names()) <= {names.GIVEN_TABLE}
    except OSError:
        is_same = False
    if not is_same:
        run_files.release(run_dir)
        raise LaunchError(f"another directory has taken the place of the run directory {run_dir}")


def _not_made(run_dir: str, error: OSError) -> LaunchError:
    return LaunchError(
        f"cannot create the run directory {run_dir}: {error.strerror}",
        hint="choose a writable directory with --log-dir",
    )


def check_owner(run_dir: str, mode: int) -> None:
    """Hold a run directory; refuse one of another user, or one that others can write to against ``mode``.

    Raises:
        LaunchError: The directory has another owner, or other users can write to it.
    """
    try:
        folder = run_files.hold(run_dir)
    except OSError as error:
        raise LaunchError(
            f"the run directory {run_dir} cannot be opened: {run_files.reason(error)}"
        ) from error
    if not is_own(run_dir):
        run_files.release(run_dir)
        raise LaunchError(
            f"the run directory {run_dir} belongs to another user",
            hint="choose a directory of your own with --log-dir",
        )
    if os.fstat(folder.descriptor).st_mode & _OTHERS_WRITE & ~mode:
        run_files.release(run_dir)
        raise LaunchError(
            f"other users may write to the run directory {run_dir}", hint=f"chmod go-w {operand(run_dir)}"
        )


def leads_elsewhere(path: str) -> bool:
    """Return whether a path is a link ``latest`` of another user that leads out of its directory.

    ``launch`` writes the name of a run beside it. Another target is not looked at: it can be in a file system
    that the user serves, and that does not answer.
    """
    if os.path.basename(path) != names.LATEST:
        return False
    try:
        if os.lstat(path).st_uid in links.this_user_and_root():
            return False
        target = os.readlink(path)
    except OSError:  # It is not a link, or does not exist.
        return False
    return target != os.path.basename(target) or target in {".", ".."}


def is_own(run_dir: str) -> bool:
    """Return whether a directory belongs to this user, even if an NFS server maps root to another user."""
    try:
        with run_files.opened(run_dir) as folder:
            return folder.owner == os.geteuid() or folder.owner == folder.own_id()
    except OSError:
        return False


def other_user(run_dir: str) -> str:
    """Return the name of the other user to whom a directory belongs, "" if it is this user's."""
    try:
        with run_files.opened(run_dir) as folder:
            return "" if is_own(run_dir) else links.user_name(folder.owner)
    except OSError:
        return "another user"


def owner_of_processes(run_dir: str) -> int:
    """Return the user to whom the processes of a run belong: its owner, or this user for a run of its own.

    Raises:
        OSError: The directory cannot be opened.
    """
    if is_own(run_dir):
        return os.geteuid()
    with run_files.opened(run_dir) as folder:
        return folder.owner


def point_latest_to(run_dir: str) -> None:
    """Point ``latest`` in the parent directory to a run directory."""
    name = os.path.basename(run_dir)
    fresh = f".{names.LATEST}-{name}-{os.getpid()}"
    with run_files.opened(run_dir) as folder:
        parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder.descriptor)
    try:
        os.symlink(name, fresh, dir_fd=parent)
        os.rename(fresh, names.LATEST, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        # A file system without links, or a real directory of that name: the run itself is not affected.
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=parent)
    finally:
        os.close(parent)


def write(run_dir: str, name: str, data: bytes | Iterable[bytes]) -> str:
    """Write one file of the run directory, whole or in parts, and return its path.

    Raises:
        LaunchError: The file cannot be written.
    """
    try:
        return run_files.write(run_dir, name, data)
    except OSError as error:
        raise LaunchError(
            f"{os.path.join(run_dir, name)} cannot be written: {run_files.reason(error)}"
        ) from error


def hold(run_dir: str, *, kind: str = "launch") -> int:
    """Mark a run as running by a locked file with this process's id, and point ``latest`` to the run.

    The lock is held until the returned descriptor is closed; the kernel closes it when the launcher exits.
    ``hccl-tools jobs`` checks the lock. ``kind`` is ``launch``, or ``spawn`` if a program called ``spawn``.

    Raises:
        LaunchError: The file cannot be written.
    """
    folder = run_files.hold(run_dir)
    try:
        descriptor = folder.open_lock(names.LAUNCHER)
    except OSError:
        return -1
    if not _is_ours(descriptor):
        # The launcher that started this process has locked the file on this shared disk.
        os.close(descriptor)
        return -1
    try:
        me = procfs.status(os.getpid())
        lines = (os.getpid(), os.uname().nodename, time.time(), kind, me.start if me else 0)
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        os.close(descriptor)
        raise LaunchError(f"{run_dir}/{names.LAUNCHER} cannot be written: {error.strerror}") from error
    point_latest_to(run_dir)
    return descriptor


def note_end(run_dir: str, exit_code: int, reason: str) -> None:
    """Record the end of this process's run in the launcher's file, in case the report cannot be written.

    The file already occupies a disk block, so this also works if the disk is full.
    """
    with contextlib.suppress(OSError, ValueError), run_files.opened(run_dir) as folder:
        pid, host, *_ = folder.read(names.LAUNCHER, 4096).decode().split("\n")
        if int(pid) == os.getpid() and host == os.uname().nodename:
            with open(folder.open_append(names.LAUNCHER, create=False), "wb") as file:
                file.write(f"{ENDED}{exit_code} {reason}\n".encode())


def _is_ours(descriptor: int) -> bool:
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_RETRY_SECONDS)
    return False
