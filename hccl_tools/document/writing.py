"""Write files atomically: readers see the old file or the complete new file.

All steps are relative to one descriptor of the file's folder (``links.Entry``): a user who exchanges a part
of the path meanwhile does not change where the file is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import WriteError
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from hccl_tools.document.links import Entry

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free disk space, or write to another folder"),
    errno.EDQUOT: ("your disk quota is used up", "free disk space, or write to another folder"),
    errno.EFBIG: ("it would exceed the file size limit", "raise the limit (`ulimit -f`)"),
    errno.EROFS: ("the file system is read-only", "write to another folder"),
    errno.EACCES: ("no permission to write in its folder", "write to a folder of your own"),
    errno.EPERM: ("no permission to write in its folder", "write to a folder of your own"),
    errno.ENOENT: ("its folder does not exist", "create the folder first"),
    errno.ENOTDIR: ("its folder is a file", "specify a file in a folder that exists"),
    errno.ELOOP: ("it is a symbolic link that leads back to itself", "remove the link"),
    errno.ENAMETOOLONG: ("its name is too long", "choose a shorter name"),
    errno.ESTALE: ("another file has its name since it was checked", "try again"),
    errno.EEXIST: ("another process has made it meanwhile", None),
    errno.EBUSY: ("it is a mount point, and a mounted file cannot be replaced",
                  "mount its folder instead, or write to another name and copy: cat NEW > TARGET"),
    errno.EXDEV: ("it cannot be replaced in one step across file systems", "write to another folder"),
}  # fmt: skip

#: Bytes of a file that are kept while it is replaced together with others, and that are read at once.
_MOST_KEPT, _PIECE = 1 << 28, 1 << 20
#: The errors of file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def write_atomically(
    path: str | os.PathLike[str],
    chunks: Iterable[str | bytes],
    *,
    mode: int | None = None,
    follow_link: bool = True,
    create: bool = False,
    keep_owner: bool = True,
    read: bytes | None = None,
) -> str:
    """Write text (as UTF-8) or bytes to a file, completely or not at all.

    A temporary file in the same folder is written, synced and renamed. A new file gets 0666 minus the umask;
    an existing file keeps its mode, and its owner if possible. ``mode`` overrides the mode; without
    ``keep_owner`` the file belongs to this user. If ``path`` is a symbolic link, its target is replaced and
    the link stays; without ``follow_link`` that is an error, and so is a link of another user. With
    ``create``, a file that exists by then is an error. With ``read``, the content from which the new one was
    made, a file of another content is an error: in a folder of another user, the path can lead to another
    file in the meantime.

    Returns:
        The file that was written: ``path``, or its target.

    Raises:
        WriteError: The file could not be written; an existing file is unchanged.
    """
    target = os.fspath(path)
    try:
        with links.Entry(target, follow_last=follow_link) as entry:
            shown = entry.path if entry.is_behind_link else target
            _check(entry, shown)
            if read is not None and _content(entry, len(read) + 1) != read:
                raise WriteError(f"{path} has changed since it was read", hint="try again")
            _replace(entry, chunks, mode, create=create, keep_owner=keep_owner)
    except UnicodeEncodeError:
        raise WriteError(f"{path} cannot be written: its text has a lone surrogate") from None
    except OSError as error:
        raise refusal(target, error) from None
    return shown


def is_folder(destination: str) -> bool:
    """Return whether a destination is a folder: an existing one, or a path with a final slash."""
    return destination.endswith(os.sep) or os.path.isdir(destination)


def open_new(path: str, mode: int) -> tuple[Entry, int]:
    """Create a file to write to it piece by piece; return its entry, and a descriptor of the file.

    Raises:
        FileExistsError: There is something with this name.
        WriteError: It cannot be created.
    """
    try:
        entry = links.Entry(path, follow_last=False)
        try:
            return entry, entry.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except BaseException:
            entry.close()
            raise
    except FileExistsError:
        raise
    except OSError as error:
        raise refusal(path, error) from None


def change_mode(path: str, mode: int, content: bytes) -> None:
    """Give an existing file a mode, unless it has it; ``content`` is what has been read from it.

    In a folder of another user, another file can have the name by now, even one of this user that was closed
    to others. Therefore the file must still have the content.

    Raises:
        WriteError: The path leads through a link of another user, the file has changed, or the mode cannot be
            changed.
    """
    try:
        with links.Entry(path) as entry, open(entry.open(os.O_RDONLY), "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o777 == mode:
                return
            if file.read(len(content) + 1) != content:
                raise WriteError(f"{path} has changed since it was read", hint="try again")
            os.fchmod(file.fileno(), mode)
    except OSError as error:
        raise refusal(path, error) from None


def refusal(path: str, error: OSError, more: str = "") -> WriteError:
    """Return the error for a file that cannot be written, with ``more`` at the end of the reason."""
    if isinstance(error, links.ForeignLinkError):
        return WriteError(
            f"{path} cannot be written: {error.clause}",
            hint="write to a folder of your own, or type the path without the link",
        )
    reason, hint = _REASONS.get(error.errno or 0, (os.strerror(error.errno or 0).lower(), None))
    if error.errno == errno.ENOENT:
        hint = f"create the folder first: `mkdir -p {shlex.quote(os.path.dirname(path))}`"
    return WriteError(f"{path} cannot be written: {reason}{more}", hint=hint)


class _Staged(NamedTuple):
    """A file that is written with others: its entry, and the names of temporary files in its folder.

    Attributes:
        new: The new content.
        old: The old content; ``None`` if there is no old file.
    """

    entry: Entry
    new: str
    old: str | None


def write_together(files: Mapping[str, str], *, create: bool = False) -> None:
    """Write several files by path, all or none of them; each one as ``write_atomically`` does.

    All temporary files are written and synced before the first file is replaced. If a replacement fails, the
    files that were replaced before it are restored. With ``create``, it is an error if a file that did not
    exist at first exists by then.

    Raises:
        WriteError: A file could not be written; all files are as before.
    """
    staged: list[_Staged] = []
    folders: dict[tuple[int, int], int] = {}
    current, done = "", 0
    try:
        for current, text in files.items():
            entry = _in_one_of(folders, links.Entry(current))
            _check(entry, entry.path if entry.is_behind_link else current)
            staged.append(_Staged(entry, _stage(entry, [text], None), None))
            if entry.about is not None:
                staged[-1] = staged[-1]._replace(old=_stage(entry, _old_content(entry, current), None))
        for path, one in zip(files, staged, strict=True):
            current = path
            if create and one.entry.about is None:
                _create(one.entry, one.new)
            else:
                _rename(one.entry, one.new)
            done += 1
    except BaseException as error:
        for one in staged[:done]:
            _restore(one)
        if isinstance(error, OSError):
            is_foreign = isinstance(error, links.ForeignLinkError)
            raise refusal(current, error, "" if is_foreign else "; no file is changed") from None
        raise
    else:
        for folder in folders.values():
            _sync_folder(folder)
    finally:
        for one in staged:
            for left in (one.new, one.old):
                with contextlib.suppress(OSError):
                    if left is not None:
                        os.unlink(left, dir_fd=one.entry.folder)
        for folder in folders.values():
            os.close(folder)


def _in_one_of(folders: dict[tuple[int, int], int], entry: Entry) -> Entry:
    """Let the entries of a folder share one descriptor: a process may not have one for each of its files."""
    about = os.fstat(entry.folder)
    folder = folders.setdefault((about.st_dev, about.st_ino), entry.folder)
    if folder != entry.folder:
        entry.close()
        entry.folder = folder
    return entry


def _restore(one: _Staged) -> None:
    with contextlib.suppress(OSError):
        if one.old is not None:
            _rename(one.entry, one.old)
        else:
            os.unlink(one.entry.name, dir_fd=one.entry.folder)


def _check(entry: Entry, shown: str) -> None:
    """Refuse what is not a regular file, and cannot be replaced."""
    if entry.about is None or stat.S_ISREG(entry.about.st_mode):
        return
    if stat.S_ISDIR(entry.about.st_mode):
        raise WriteError(f"{shown} cannot be written: it is a directory", hint="specify a file in it")
    if stat.S_ISLNK(entry.about.st_mode):
        raise WriteError(f"{shown} cannot be written: it is a symbolic link", hint="remove the link")
    raise WriteError(f"{shown} cannot be written: it is a device or a pipe, not a file",
                     hint="use - to write to standard output")  # fmt: skip


def _content(entry: Entry, most: int) -> bytes:
    """Return the beginning of the file that was checked, whose mode a copy of it gets."""
    with _opened(entry) as file:
        return file.read(most)


def _old_content(entry: Entry, path: str) -> Iterator[bytes]:
    """Yield the content of the file that was checked, to restore it; another user may have made it huge.

    Raises:
        WriteError: It is too large.
    """
    left = _MOST_KEPT
    with _opened(entry) as file:
        while piece := file.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise WriteError(
                    f"{path} cannot be replaced: it has more than {_MOST_KEPT >> 20} MiB; no file is changed",
                    hint="remove it first",
                )
            yield piece


def _opened(entry: Entry) -> BinaryIO:
    file = open(entry.open(os.O_RDONLY), "rb")  # noqa: SIM115  (the caller closes it)
    if entry.about is not None and os.path.samestat(os.fstat(file.fileno()), entry.about):
        return file
    file.close()
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), entry.name)


def _rename(entry: Entry, temporary: str) -> None:
    os.replace(temporary, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)


def _replace(
    entry: Entry, chunks: Iterable[str | bytes], mode: int | None, *, create: bool, keep_owner: bool
) -> None:
    temporary = _stage(entry, chunks, mode, keep_owner=keep_owner)
    try:
        if create:
            _create(entry, temporary)
        else:
            _rename(entry, temporary)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=entry.folder)
        raise
    _sync_folder(entry.folder)


def _stage(entry: Entry, chunks: Iterable[str | bytes], mode: int | None, *, keep_owner: bool = True) -> str:
    """Write a temporary file in the folder of a file, with the mode and owner that the file gets."""
    old = entry.about
    temporary = f".hccl-tools-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    first = (0o666 if old is None else 0o600) if mode is None else mode & 0o600
    handle = os.open(temporary, flags, first, dir_fd=entry.folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in chunks)
            file.flush()
            if keep_owner and old is not None and not _is_of_a_stranger(entry.folder, old):
                _keep_owner(handle, old)
            if mode is None and old is not None:
                mode = _kept_mode(handle, entry.folder, old)
            if mode is not None:
                os.fchmod(handle, mode)
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=entry.folder)
        raise
    return temporary


def _create(entry: Entry, temporary: str) -> None:
    """Give a file its name; unlike a rename, a link fails if the name exists."""
    folder = entry.folder
    try:
        os.link(temporary, entry.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS or _exists(entry):
            raise
        _rename(entry, temporary)
    else:
        os.unlink(temporary, dir_fd=folder)


def _exists(entry: Entry) -> bool:
    try:
        os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_of_a_stranger(folder: int, old: os.stat_result) -> bool:
    """Return whether another user may have put a file into a folder that is open to all users.

    In a folder that is open to a group, the members can replace each other's files, unless it is sticky.
    """
    about = os.fstat(folder)
    group = stat.S_IWGRP if about.st_mode & stat.S_ISVTX else 0
    return old.st_uid not in {0, os.geteuid(), about.st_uid} and bool(about.st_mode & (stat.S_IWOTH | group))


def _kept_mode(handle: int, folder: int, old: os.stat_result) -> int:
    """Return the mode of the old file for the new one, without setuid, setgid and sticky bits.

    The owner of the old file chose its mode. If another user owns the new one, all others cannot write to it,
    and its group cannot in a folder that all users can write to.
    """
    mode = old.st_mode & 0o777
    if os.fstat(handle).st_uid == old.st_uid:
        return mode
    is_open = os.fstat(folder).st_mode & stat.S_IWOTH
    return mode & ~(stat.S_IWOTH | (stat.S_IWGRP if is_open else 0))


def _keep_owner(handle: int, old: os.stat_result) -> None:
    """Give the new file the owner and group of the old file, or only the group if no more is allowed."""
    new = os.fstat(handle)
    for uid, gid in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
            return
        with contextlib.suppress(OSError):
            os.fchown(handle, uid, gid)
            return


def _sync_folder(folder: int) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
