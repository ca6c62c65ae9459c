"""The record of this user's launches: which run directories were made here, and not copied or unpacked.

Whoever unpacks a run directory owns it, and its plan and report can name any file and any host. The record
has the name and the inode of each run directory that ``launch`` has made. It is in a directory of this user,
so that the author of an archive cannot write to it, and a copy has another inode.
"""

from __future__ import annotations

import contextlib
import os
import stat

from hccl_tools.document import links
from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.runs import directory, job_key, private_files

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The folder of the record.
_FOLDER = "runs"
#: Runs that the record keeps, the newest ones by their names.
_MOST = 2048
_OTHERS_WRITE = 0o022


def note(run_dir: str, environ: Mapping[str, str], *, is_part: bool = False) -> None:
    """Record that a launch of this user has made a run directory; a full or read-only disk is not an error.

    Args:
        is_part: Whether a launcher on another host has started this one. Thousands of hosts can have the same
            home directory: such a part is recorded on its own host only, until that starts again.
    """
    try:
        name = _name(run_dir)
    except OSError:
        return
    folders = list(_folders(environ))
    for folder in folders[-1:] if is_part else folders:
        try:
            os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
            os.makedirs(folder, 0o700, exist_ok=True)
            _check(folder)
            _remove_oldest(folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(os.path.join(folder, name), flags, 0o600))
        except OSError:
            continue
        return


def is_known(run_dir: str, environ: Mapping[str, str]) -> bool:
    """Return whether this user's launch has made a run directory, which is still the same one."""
    try:
        name = _name(run_dir)
    except OSError:
        return False
    if not directory.is_own(run_dir):
        return False
    for folder in _folders(environ):
        with contextlib.suppress(OSError):
            _check(folder)
            about = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                return True
    return False


def why_strange(run_dir: str, environ: Mapping[str, str]) -> str:
    """Return why what a run names outside of its directory is not used, a clause on the run; "" if it is."""
    if is_known(run_dir, environ):
        return ""
    if not directory.is_own(run_dir):
        return f"belongs to {links.user_of(run_dir)}"
    return "is not in the record of your launches (a copy, or made by another account or version)"


def _name(run_dir: str) -> str:
    """Return the name of the entry of a run.

    The number of the device is not in it: it changes when a network disk is mounted again.

    Raises:
        OSError: The directory cannot be opened.
    """
    with run_files.opened(run_dir) as folder:
        return f"{os.path.basename(run_dir)}-{os.fstat(folder.descriptor).st_ino}"


def _folders(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the places of the record: in the home directory, and for a user without one on this host."""
    state = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # The XDG specification: a relative path is ignored.
        yield os.path.join(state, "hccl-tools", _FOLDER)
    elif home := job_key.home(environ):
        yield os.path.join(home, ".local", "state", "hccl-tools", _FOLDER)
    with contextlib.suppress(LaunchError):
        yield os.path.join(private_files.place(environ), _FOLDER)


def _check(folder: str) -> None:
    """Refuse a directory in which another user can write.

    Raises:
        OSError: It is such a directory, or does not exist.
    """
    about = os.lstat(folder)
    is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    if not is_own or about.st_mode & _OTHERS_WRITE:
        raise PermissionError(folder)


def _remove_oldest(folder: str) -> None:
    """Remove the older half of the record once it is full; names of runs begin with their time."""
    if len(names := sorted(os.listdir(folder))) < _MOST:
        return
    for name in names[: _MOST // 2]:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))
