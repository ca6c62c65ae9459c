"""Write files atomically: readers see the old file or the complete new file."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free disk space, or write to another folder"),
    errno.EDQUOT: ("your disk quota is used up", "free disk space, or write to another folder"),
    errno.EFBIG: ("it would exceed the file size limit", "raise the limit (`ulimit -f`)"),
    errno.EROFS: ("the file system is read-only", "write to another folder"),
    errno.EACCES: ("no permission to write in its folder", "write to a folder of your own"),
    errno.EPERM: ("no permission to write in its folder", "write to a folder of your own"),
    errno.ENOENT: ("its folder does not exist", "create the folder first (`mkdir -p`)"),
    errno.ENOTDIR: ("its folder is a file", "specify a file in a folder that exists"),
    errno.ELOOP: ("it is a symbolic link that leads back to itself", "remove the link"),
    errno.ENAMETOOLONG: ("its name is too long", "choose a shorter name"),
    errno.EEXIST: ("another process has made it meanwhile", None),
    errno.EBUSY: ("it is a mount point, and a mounted file cannot be replaced",
                  "mount its folder instead, or write to another name and copy: cat NEW > TARGET"),
    errno.EXDEV: ("it cannot be replaced in one step across file systems", "write to another folder"),
}  # fmt: skip

#: The errors of file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def write_atomically(
    path: str | os.PathLike[str],
    chunks: Iterable[str | bytes],
    *,
    mode: int | None = None,
    follow_link: bool = True,
    create: bool = False,
) -> str:
    """Write text (as UTF-8) or bytes to a file, completely or not at all.

    A temporary file in the same folder is written, synced and renamed. A new file gets 0666 minus the umask;
    an existing file keeps its mode, and its owner if possible. ``mode`` overrides both. If ``path`` is a
    symbolic link, its target is replaced and the link stays; without ``follow_link`` that is an error, and so
    is a link of another user. With ``create``, a file that exists by then is an error.

    Returns:
        The file that was written: ``path``, or its target.

    Raises:
        WriteError: The file could not be written; an existing file is unchanged.
    """
    target = os.fspath(path)
    try:
        if os.path.islink(target) and not follow_link:
            raise WriteError(f"{target} cannot be written: it is a symbolic link", hint="remove the link")
        target = _followed(target)
        old = _status(target)
        _replace(target, chunks, old, mode, create=create)
    except UnicodeEncodeError:
        raise WriteError(f"{path} cannot be written: its text has a lone surrogate") from None
    except OSError as error:
        reason, hint = _REASONS.get(error.errno or 0, (os.strerror(error.errno or 0).lower(), None))
        raise WriteError(f"{path} cannot be written: {reason}", hint=hint) from None
    return target


def write_together(files: Mapping[str, str]) -> None:
    """Write several files by path, all or none of them; each one as ``write_atomically`` does.

    All temporary files are written and synced before the first file is replaced. If a replacement fails, the
    files that were replaced before it are restored.

    Raises:
        WriteError: A file could not be written; all files are as before.
    """
    staged: list[tuple[str, str]] = []
    saved: dict[str, str] = {}
    done: list[str] = []
    current = ""
    try:
        for current, text in files.items():
            target = _followed(current)
            old = _status(target)
            staged.append((_stage(target, [text], old, None), target))
            if old is not None:
                with open(target, "rb") as file:
                    saved[target] = _stage(target, [file.read()], old, None)
        for path, (temporary, target) in zip(files, staged, strict=True):
            current = path
            os.replace(temporary, target)
            done.append(target)
    except BaseException as error:
        _restore(done, saved)
        if isinstance(error, OSError):
            reason, hint = _REASONS.get(error.errno or 0, (os.strerror(error.errno or 0).lower(), None))
            raise WriteError(
                f"{current} cannot be written: {reason}; no file is changed", hint=hint
            ) from None
        raise
    finally:
        for left in (*(temporary for temporary, _ in staged), *saved.values()):
            with contextlib.suppress(OSError):
                os.unlink(left)
    for folder in {os.path.dirname(target) or os.curdir for target in done}:
        _sync_folder(folder)


def _followed(path: str) -> str:
    """Return the file that a path leads to, which is replaced.

    Raises:
        WriteError: The path leads through a link of another user: the file may be any file of this user.
    """
    if found := links.foreign(path):
        raise WriteError(
            f"{path} cannot be written: {found}", hint="write to a folder of your own, or remove the link"
        )
    return os.path.realpath(path) if os.path.islink(path) else path


def _restore(done: Iterable[str], saved: Mapping[str, str]) -> None:
    for target in done:
        with contextlib.suppress(OSError):
            if target in saved:
                os.replace(saved[target], target)
            else:
                os.unlink(target)


def _status(target: str) -> os.stat_result | None:
    """Return the status of the file to replace, or ``None`` if it does not exist."""
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise WriteError(f"{target} cannot be written: it is a directory", hint="specify a file in it")
    if stat.S_ISLNK(status.st_mode):  # realpath gives up on a loop
        raise WriteError(f"{target} cannot be written: it is a symbolic link that leads back to itself")
    if not stat.S_ISREG(status.st_mode):
        raise WriteError(f"{target} cannot be written: it is a device or a pipe, not a file",
                         hint="use - to write to standard output")  # fmt: skip
    return status


def _replace(
    target: str,
    chunks: Iterable[str | bytes],
    old: os.stat_result | None,
    mode: int | None,
    *,
    create: bool,
) -> None:
    temporary = _stage(target, chunks, old, mode)
    try:
        if create:
            _create(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target) or os.curdir)


def _stage(target: str, chunks: Iterable[str | bytes], old: os.stat_result | None, mode: int | None) -> str:
    """Write a temporary file in the folder of a file, with the mode and owner that the file gets."""
    if mode is None and old is not None:
        mode = stat.S_IMODE(old.st_mode)
    folder = os.path.dirname(target) or os.curdir
    temporary = os.path.join(folder, f".hccl-tools-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o666 if mode is None else mode & 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in chunks)
            file.flush()
            if old is not None and not _is_of_a_stranger(folder, old):
                _keep_owner(handle, old)
            if mode is not None:
                os.fchmod(handle, mode)
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _create(temporary: str, target: str) -> None:
    """Give a file its name; unlike a rename, a link fails if the name exists."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            raise
        os.replace(temporary, target)
    else:
        os.unlink(temporary)


def _is_of_a_stranger(folder: str, old: os.stat_result) -> bool:
    """Return whether another user may have put a file into a folder that is open to all users."""
    about = os.stat(folder)
    return old.st_uid not in {0, os.geteuid(), about.st_uid} and bool(about.st_mode & stat.S_IWOTH)


def _keep_owner(handle: int, old: os.stat_result) -> None:
    """Give the new file the owner and group of the old file, or only the group if no more is allowed."""
    new = os.fstat(handle)
    for uid, gid in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
            return
        with contextlib.suppress(OSError):
            os.fchown(handle, uid, gid)
            return


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
