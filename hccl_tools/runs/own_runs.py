"""The record of this user's launches: which run directories were made here, and not copied or unpacked.

Whoever unpacks a run directory owns it, and its plan and report can name any file and any host. The record
has the name and the inode of each run directory that ``launch`` has made, and the digests of its plan and
report. It is in a directory that only this user can write to or exchange, so that the author of an archive
cannot write to it, and no other user chooses the directory in which old entries are removed. A copy has
another inode; what is unpacked into a run directory, or after its removal, has another plan or report.
"""

from __future__ import annotations

import contextlib
import os
import stat

from hccl_tools.document import links
from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.runs import directory, job_key, names, parents, private_files

try:  # 0.3 ms; hashlib takes 2.4 ms of each launch.
    from _blake2 import blake2b
except ImportError:  # another Python
    from hashlib import blake2b

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The folder of the record.
_FOLDER = "runs"
#: Runs that the record keeps, the newest ones by their names.
_MOST = 2048
_OTHERS_WRITE = 0o022
_BLOCK = 1 << 20
#: Bytes of an entry that are read.
_LONGEST = 1 << 10
#: In the entry of a part of a job: the launcher of the job, on another host, writes the report.
_OF_THE_LAUNCHER = "-"


def note(run_dir: str, environ: Mapping[str, str], *, is_part: bool = False) -> None:
    """Record that a launch of this user has made a run directory and written its plan.

    A full or read-only disk is not an error.

    Args:
        is_part: Whether a launcher on another host has started this one. Thousands of hosts can have the same
            home directory: such a part is recorded on its own host only, until that starts again.
    """
    try:
        name = _name(run_dir)
        stated = (_state(run_dir, names.PLAN), _OF_THE_LAUNCHER if is_part else _state(run_dir, names.REPORT))
    except OSError:
        return
    folders = list(_folders(environ))
    for folder in folders[-1:] if is_part else folders:
        with contextlib.suppress(OSError):
            _make(folder)
            with _opened(folder) as record:
                if is_part:
                    _remove_oldest(record)
                _write(record, name, stated)
            return


def note_report(run_dir: str, environ: Mapping[str, str]) -> None:
    """Record the report that this launch has written, if the run is in the record."""
    try:
        name, report = _name(run_dir), _state(run_dir, names.REPORT)
    except OSError:
        return
    for folder in _folders(environ):
        with contextlib.suppress(OSError), _opened(folder) as record:
            plan, _ = _entry(record, name)
            _remove_oldest(record)  # Not before the start: a thousand names take 0.6 ms to list.
            _write(record, name, (plan, report))
            return


def is_known(run_dir: str, environ: Mapping[str, str]) -> bool:
    """Return whether this user's launch has made a run directory, and its plan and report as they are."""
    try:
        name = _name(run_dir)
    except OSError:
        return False
    if not directory.is_own(run_dir):
        return False
    for folder in _folders(environ):
        with contextlib.suppress(OSError), _opened(folder) as record:
            plan, report = _entry(record, name)
            if _is_same(run_dir, names.PLAN, plan) and (
                report == _OF_THE_LAUNCHER or _is_same(run_dir, names.REPORT, report)
            ):
                return True
    return False


def why_strange(run_dir: str, environ: Mapping[str, str]) -> str:
    """Return why what a run names outside of its directory is not used, a clause on the run; "" if it is."""
    if is_known(run_dir, environ):
        return ""
    if not directory.is_own(run_dir):
        return f"belongs to {links.user_of(run_dir)}"
    return "is not in the record of your launches (a copy, or made or changed by another account or version)"


def _name(run_dir: str) -> str:
    """Return the name of the entry of a run.

    The number of the device is not in it: it changes when a network disk is mounted again.

    Raises:
        OSError: The directory cannot be opened.
    """
    with run_files.opened(run_dir) as folder:
        return f"{os.path.basename(run_dir)}-{os.fstat(folder.descriptor).st_ino}"


def _state(run_dir: str, name: str) -> str:
    """Return the size and the digest of a file of a run directory, as in an entry; "" if it does not exist.

    Raises:
        OSError: The file cannot be read.
    """
    if not run_files.status(path := os.path.join(run_dir, name)):
        if os.path.lexists(path):
            raise PermissionError(path)
        return ""
    with open(run_files.open_read(path), "rb", buffering=0) as file:
        digest, size = blake2b(digest_size=32), 0
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return f"{size} {digest.hexdigest()}"


def _is_same(run_dir: str, name: str, stated: str) -> bool:
    """Return whether a file is the one that an entry states; a file of another size is not read."""
    about = run_files.status(os.path.join(run_dir, name))
    if about is not None and stated.partition(" ")[0] != str(about.st_size):
        return False
    return _state(run_dir, name) == stated


def _entry(record: int, name: str) -> tuple[str, str]:
    """Return what an entry states of plan and report.

    Raises:
        OSError: The entry does not exist, or another user or another version of hccl-tools wrote it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=record), "rb") as file:
        if not _is_own_file(os.fstat(file.fileno())):
            raise PermissionError(name)
        plan, mark, report = file.read(_LONGEST).decode(errors="replace").partition("\n")
    if not plan or not mark:
        raise PermissionError(name)
    return plan, report.rstrip("\n")


def _write(record: int, name: str, stated: tuple[str, str]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=record), "wb") as file:
        file.write("\n".join((*stated, "")).encode())


def _folders(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the places of the record: in the home directory, and for a user without one on this host."""
    state = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # The XDG specification: a relative path is ignored.
        yield os.path.join(state, "hccl-tools", _FOLDER)
    elif home := job_key.home(environ):
        yield os.path.join(home, ".local", "state", "hccl-tools", _FOLDER)
    with contextlib.suppress(LaunchError):
        yield os.path.join(private_files.place(environ), _FOLDER)


def _make(folder: str) -> None:
    """Make a place of the record, but not below a folder that another user can exchange.

    Raises:
        OSError: It cannot be made.
    """
    above = folder
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not parents.is_safe(above):
        raise PermissionError(above)
    os.close(links.make_folders(folder, 0o700))


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    """Yield a descriptor of a place of the record.

    Raises:
        OSError: It does not exist, or another user can write to it or exchange it.
    """
    if not parents.is_safe(folder):
        raise PermissionError(folder)
    descriptor = links.open_folder(folder, os.O_RDONLY)
    try:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or about.st_mode & _OTHERS_WRITE:
            raise PermissionError(folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_oldest(record: int) -> None:
    """Remove the older half of the record once it is full; names of runs begin with their time."""
    listed = os.listdir(record)
    if len(listed) < _MOST:
        return
    entries = sorted(filter(_is_of_an_entry, listed))
    for name in entries[: _MOST // 2]:
        with contextlib.suppress(OSError):
            about = os.stat(name, dir_fd=record, follow_symlinks=False)
            if _is_own_file(about) and about.st_size <= _LONGEST:
                os.unlink(name, dir_fd=record)


def _is_of_an_entry(name: str) -> bool:
    run, _, inode = name.rpartition("-")
    return names.is_of_a_run(run) and "-" in run and inode.isdecimal()


def _is_own_file(about: os.stat_result) -> bool:
    return stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
