"""The directory of one launch, its ``latest`` link, and the lock that keeps a table from running twice."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import zlib
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "latest"
#: pid, host and time of the launcher of a run, locked while it lives.
HOLDER = "launcher"
#: The beginning of a line there that says how a run without a report ended: exit code and reason follow.
ENDED = "ended "
#: Where the other hosts of a job that was started by hand have theirs, by host.
ELSEWHERE = "run_dirs.json"
#: How often, and with what pause in seconds, the lock of a run is tried.
_TRIES, _PAUSE = 4, 0.005


def path_for(
    log_dir: str, environ: Mapping[str, str], *, now: float | None = None, ending: str | None = None
) -> str:
    """Return the absolute path of a new run directory, ``log/20261121-101530-a1b2``; nothing is created.

    ``%j`` in ``log_dir`` stands for Slurm's job id. Inside a Slurm job the name ends with the id as well.
    """
    job = environ.get("SLURM_JOB_ID", "")
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    name = f"{stamp}-{ending or os.urandom(2).hex()}" + (f"-{job}" if job else "")
    return os.path.join(os.path.abspath(log_dir.replace("%j", job or "nojob")), name)


def create(run_dir: str, *, shared: bool = False) -> None:
    """Make the run directory; ``shared`` ones may be there already.

    Raises:
        LaunchError: It cannot be made; the message holds the place and the reason.
    """
    try:
        os.makedirs(run_dir, exist_ok=shared)
    except OSError as error:
        raise LaunchError(
            f"the run directory {run_dir} cannot be made: {error.strerror}",
            hint="name a place you may write to with --log-dir",
        ) from error
    if shared:
        _point_latest_to(run_dir)


def discard(run_dir: str) -> None:
    """Remove the directory of a run that has not come about, with the files that were written into it."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(run_dir):
            os.unlink(entry.path)
        os.rmdir(run_dir)


def _point_latest_to(run_dir: str) -> None:
    """Let ``latest`` beside a run directory point there."""
    parent, name = os.path.split(run_dir)
    link, fresh = os.path.join(parent, LATEST), os.path.join(parent, f".{LATEST}-{name}-{os.getpid()}")
    try:
        os.symlink(name, fresh)
        os.replace(fresh, link)
    except OSError:
        # A file system without links, or a real directory of that name: the run itself is not touched by it.
        _remove_quietly(fresh)


def write(run_dir: str, name: str, data: bytes) -> str:
    """Write one file of the run directory and return its path.

    Raises:
        LaunchError: It cannot be written.
    """
    path = os.path.join(run_dir, name)
    # Whole at once: several hosts may share the disk and write the same.
    temporary = f"{path}.{os.uname().nodename}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        _remove_quietly(temporary)
        raise LaunchError(f"{path} cannot be written: {error.strerror}") from error
    return path


def fresh_log(run_dir: str, log: str, rank: int) -> int:
    """Empty a log that lies outside the run directory (``--log-file``) and link to it from there.

    Return a descriptor that keeps it this run's until it is closed: two runs would empty each other's.

    Raises:
        LaunchError: It cannot be written, or another run writes it now.
    """
    path = os.path.join(run_dir, log)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if path != os.devnull:
            _take(descriptor, path)
            os.ftruncate(descriptor, 0)
        os.symlink(path, os.path.join(run_dir, f"rank_{rank}.log"))
    except OSError as error:
        raise LaunchError(f"the log {path} cannot be written: {error.strerror}") from error
    return descriptor


def _take(descriptor: int, path: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LaunchError(
            f"another run is writing the log {path}",
            hint="wait for it (`hccl-tools jobs`), or name another with --log-file or --log-dir",
        ) from None
    except OSError:
        pass  # A disk without locks goes without.


def hold(run_dir: str, *, kind: str = "launch") -> int:
    """Mark a run as running: a locked file that names this process, until the returned descriptor is closed.

    From then on ``latest`` is this run. ``kind`` says whether the process is a launcher or the program that
    called ``spawn``.

    The kernel releases it when the launcher ends, however it ends; ``hccl-tools jobs`` looks at it.

    Raises:
        LaunchError: The file cannot be written.
    """
    path = os.path.join(run_dir, HOLDER)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError:
        return -1
    if not _is_ours(descriptor):
        # Held on this very disk by the launcher that has started us.
        os.close(descriptor)
        return -1
    try:
        os.write(descriptor, f"{os.getpid()}\n{os.uname().nodename}\n{time.time()}\n{kind}\n".encode())
    except OSError as error:
        os.close(descriptor)
        raise LaunchError(f"{path} cannot be written: {error.strerror}") from error
    _point_latest_to(run_dir)
    return descriptor


def note_end(run_dir: str, exit_code: int, reason: str) -> None:
    """Note how this process's run has ended where its report cannot be written.

    The file that marks the run as running has its block of the disk, so that this works on a full one.
    """
    with contextlib.suppress(OSError, ValueError), open(os.path.join(run_dir, HOLDER), "r+") as file:
        if int(file.readline()) == os.getpid() and file.readline().strip() == os.uname().nodename:
            file.seek(0, os.SEEK_END)
            file.write(f"{ENDED}{exit_code} {reason}\n")


def _is_ours(descriptor: int) -> bool:
    """Take the lock; `hccl-tools jobs` may be looking at it this very moment."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE)
    return False


def fingerprint(data: bytes) -> str:
    """Return the SHA-256 of a table's bytes in hexadecimal."""
    import hashlib  # noqa: PLC0415  (it loads OpenSSL: 3 ms)

    return hashlib.sha256(data).hexdigest()


def lock_table(data: bytes, run_dir: str, environ: Mapping[str, str]) -> int:
    """Take the lock of a table on this host and return its descriptor; it is held until that is closed.

    The kernel releases it when the launcher ends, however it ends. A host where the lock cannot be kept
    (read-only or missing temporary directory) goes without; then the descriptor is -1.

    Raises:
        LaunchError: Another launch of the same table is running; the message names its pid and directory.
    """
    name = f"hccl-tools-{zlib.crc32(data):08x}{zlib.adler32(data):08x}.lock"
    path = os.path.join(environ.get("TMPDIR") or "/tmp", name)  # noqa: S108  (a lock, opened without following)
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o666)
            os.fchmod(descriptor, 0o666)
    except PermissionError:
        # Another user's file from a run under a strict umask: a shared lock on it is still a lock.
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return -1
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.fsdecode(os.pread(descriptor, 4096, 0)).splitlines()
        os.close(descriptor)
        if error.errno != errno.EWOULDBLOCK:
            return -1
        pid, directory = (*holder, "?", "?")[:2]
        raise LaunchError(
            f"this table already runs on this host: pid {pid}, {directory}",
            hint=f"wait for it, or end it with `hccl-tools stop {directory}`{_for_array(environ)}",
        ) from None
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, os.fsencode(f"{os.getpid()}\n{run_dir}\n"), 0)
    except OSError:
        pass  # Somebody else's file: the lock holds, only its holder stays unnamed.
    return descriptor


def _for_array(environ: Mapping[str, str]) -> str:
    if "SLURM_ARRAY_JOB_ID" not in environ:
        return ""
    return "; a job array with --array=...%1 runs its tasks one after another"


def _remove_quietly(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
