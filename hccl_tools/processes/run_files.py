"""The only way to the files of a run directory: they are opened relative to one descriptor of the directory.

Other users may be able to write to a parent of the run directory, and to put another directory or a link in
its place. A process therefore opens the directory once (``hold``), and from then on its path means that
directory; a process that receives the path from another one also receives the device and the inode. There, a
file counts only if it is a regular file of the directory's owner. Symbolic links are not followed, a named
pipe or a device does not block, and a file that is written must not have a second name.

The functions that take a path look it up among the held directories. A log outside of run directories
(``--log-file``, ``--flat-logs``) is in a held directory of its own, in which only direct entries count.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: O_NONBLOCK: opening a named pipe does not wait for its other end. O_PATH asks nothing of a file itself.
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
HELD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: The error numbers of refusals; the keeper sends only a number.
_REFUSALS = {
    errno.ELOOP: "it is a symbolic link",
    errno.ENXIO: "it is not a regular file",
    errno.EMLINK: "it has a second name (a hard link)",
    errno.EUSERS: "it belongs to another user",
    errno.ESTALE: "another directory is in the place of its directory",
    errno.EXDEV: "another user may serve its file system",
}


def reason(error: OSError | int) -> str:
    """Return the text for an error of this module, or of the kernel: "it is a symbolic link"."""
    number = error if isinstance(error, int) else error.errno or 0
    return _REFUSALS.get(number) or os.strerror(number)


class Folder:
    """An open directory.

    Attributes:
        path: The path by which it was opened; only for messages and to look it up.
        descriptor: The descriptor to which all names are relative.
        owner: The owner that its files must have. An NFS server may map this user to another one.
        file_mode: The mode of new files, independent of the umask.
        is_run: Whether it is a run directory: subdirectories count as well.
        takes_all: Whether the files of all users count that have no second name: another user can give a
            file of this user a name in a directory.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        about = os.fstat(descriptor)
        self.path, self.descriptor = path, descriptor
        self.owner, self.file_mode, self.is_run = about.st_uid, about.st_mode & 0o666, True
        self.takes_all = False
        self._inode = about.st_dev, about.st_ino

    @property
    def identity(self) -> tuple[Any, ...]:
        """What another process of this host needs to open the same directory; see ``adopt``."""
        of_process = os.getpid(), self.descriptor
        return (self.path, *self._inode, self.owner, self.file_mode, self.is_run, *of_process)

    def is_same(self, identity: Sequence[Any]) -> bool:
        """Return whether an identity is that of this directory."""
        return self._inode == tuple(identity[1:3])

    def change_mode(self, mode: int) -> None:
        """Change the mode of the directory; new files get the read and write bits.

        Raises:
            OSError: The mode cannot be changed.
        """
        os.fchmod(self.descriptor, mode)
        self.file_mode = mode & 0o666

    def own_id(self) -> int:
        """Return the owner of the files that this user creates here; -1 if the user may not.

        An NFS server may map root to another user, and a mounted disk may have one owner for all files.
        """
        probe = f".owner-{os.urandom(16).hex()}"
        try:
            descriptor = os.open(probe, _TEMPORARY, 0o600, dir_fd=self.descriptor)
        except OSError:
            return -1
        try:
            return os.fstat(descriptor).st_uid
        finally:
            os.close(descriptor)
            os.unlink(probe, dir_fd=self.descriptor)

    def read(self, name: str, most: int) -> bytes:
        """Return the first ``most`` bytes of a file.

        Raises:
            OSError: The file does not exist, cannot be read, or is refused.
        """
        with open(self.open_read(name), "rb") as file:
            return file.read(most)

    def open_read(self, name: str) -> int:
        """Open a file to read.

        Raises:
            OSError: The file does not exist, cannot be read, or is refused.
        """
        return self._open(name, os.O_RDONLY)

    def open_append(self, name: str, *, create: bool = True) -> int:
        """Open a file to append to it; a new one gets ``file_mode``.

        Raises:
            OSError: The file cannot be opened, or is refused.
        """
        descriptor = self._open(name, os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0))
        # A rank inherits the descriptor, with its flags.
        os.set_blocking(descriptor, True)
        return descriptor

    def open_lock(self, name: str) -> int:
        """Open or create a file to lock it, to read and to write.

        Raises:
            OSError: The file cannot be opened, or is refused.
        """
        return self._open(name, os.O_RDWR | os.O_CREAT)

    def create(self, name: str, data: bytes) -> None:
        """Create a file that must not exist.

        Raises:
            FileExistsError: The name exists, as a file, a link or anything else.
            OSError: The file cannot be written.
        """
        descriptor = self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def write(self, name: str, data: bytes | Iterable[bytes], mode: int | None = None) -> str:
        """Write a file completely or not at all, even if several hosts share the disk; return its path.

        The data is not synchronized to the disk: the files are not needed after a power failure. An existing
        file or link of this name is replaced.

        Raises:
            OSError: The file cannot be written; an existing file is unchanged.
        """
        temporary = f"{name}.{os.urandom(8).hex()}.part"
        descriptor = os.open(temporary, _TEMPORARY, 0o600, dir_fd=self.descriptor)
        try:
            with open(descriptor, "wb") as file:
                os.fchmod(descriptor, self.file_mode if mode is None else mode)
                file.writelines([data] if isinstance(data, bytes) else data)
            os.rename(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError:
            os.unlink(temporary, dir_fd=self.descriptor)
            raise
        return os.path.join(self.path, name)

    def touch(self, name: str) -> None:
        """Set the time of a file to now, or create it.

        Raises:
            OSError: The file cannot be created.
        """
        try:
            os.utime(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            os.close(self._open(name, os.O_WRONLY | os.O_CREAT))

    def stat(self, name: str) -> os.stat_result:
        """Return the facts about a regular file of the owner, without opening it.

        Raises:
            OSError: The file does not exist, or is refused.
        """
        *folders, last = parts(name)
        with self._inside(folders) as inside:
            about = self._status(last, inside)
        if stat.S_ISLNK(about.st_mode):
            raise refusal(errno.ELOOP, self.path, name)
        self._check(about, name)
        return about

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the directory, or in a folder below it, sorted.

        Raises:
            OSError: The folder does not exist, or is a link.
        """
        with self._inside(parts(folder) if folder else []) as inside:
            return sorted(os.listdir(inside))

    def unlink(self, name: str) -> None:
        """Remove a file.

        Raises:
            OSError: The file does not exist, or cannot be removed.
        """
        os.unlink(name, dir_fd=self.descriptor)

    def link(self, target: str, name: str) -> None:
        """Create a symbolic link for people who look into the directory; no function here follows it.

        Raises:
            OSError: The link cannot be created.
        """
        os.symlink(target, name, dir_fd=self.descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)

    def _open(self, name: str, flags: int) -> int:
        *folders, last = parts(name)
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        with self._inside(folders) as inside:
            descriptor = self._opened_in(inside, last, flags)
        try:
            about = os.fstat(descriptor)
            self._check(about, name)
            if writes and about.st_nlink > 1:
                raise refusal(errno.EMLINK, self.path, name)
            if flags & os.O_CREAT and not about.st_size and stat.S_IMODE(about.st_mode) != self.file_mode:
                os.fchmod(descriptor, self.file_mode)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _inside(self, folders: Sequence[str]) -> Inside:
        return Inside(self.descriptor, folders)

    def _status(self, name: str, inside: int) -> os.stat_result:
        return os.stat(name, dir_fd=inside, follow_symlinks=False)

    def _opened_in(self, inside: int, name: str, flags: int) -> int:
        return os.open(name, flags | SAFE, self.file_mode, dir_fd=inside)

    def _check(self, about: os.stat_result, name: str) -> None:
        if not stat.S_ISREG(about.st_mode):
            raise refusal(errno.ENXIO, self.path, name)
        if about.st_uid != self.owner and not (self.takes_all and about.st_nlink == 1):
            raise refusal(errno.EUSERS, self.path, name)


class Inside:
    """The descriptor of a folder below another one; no part of the way may be a link."""

    def __init__(
        self, descriptor: int, folders: Sequence[str], admit: Callable[[int], object] | None = None
    ) -> None:
        self._opened, flags = -1, HELD | os.O_DIRECTORY if admit else _DIRECTORY | os.O_NOFOLLOW
        try:
            for folder in folders:
                before, self._opened = self._opened, os.open(folder, flags, dir_fd=descriptor)
                self._close(before)
                descriptor = self._opened
                if admit:
                    admit(descriptor)
        except OSError:
            self._close(self._opened)
            raise
        self.descriptor = descriptor

    def __enter__(self) -> int:
        return self.descriptor

    def __exit__(self, *_error: object) -> None:
        self._close(self._opened)

    @staticmethod
    def _close(descriptor: int) -> None:
        if descriptor >= 0:
            os.close(descriptor)


def parts(name: str) -> list[str]:
    """Return the parts of a name in a directory, none of which may lead out of it."""
    found = name.split("/")
    if not {"", ".", ".."}.isdisjoint(found):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)
    return found


def refusal(number: int, folder: str, name: str) -> OSError:
    """Return the error for a file that is refused; ``number`` is one of those with a ``reason``."""
    return OSError(number, _REFUSALS[number], os.path.join(folder, name))


#: The held directories by path.
_held: dict[str, Folder] = {}
#: Directories that are opened in another way, with flags: a process of another user has named them.
guards: dict[str, Callable[[int], Folder]] = {}


def _opened_folder(path: str) -> Folder:
    guarded = guards.get(path)
    return guarded(_DIRECTORY) if guarded else Folder(path, os.open(path, _DIRECTORY | os.O_NOFOLLOW))


def hold(path: str) -> Folder:
    """Open a run directory and hold it: from now on, its path means the directory that it is now.

    Raises:
        OSError: It does not exist, is a link, or cannot be read.
    """
    if path not in _held:
        _held[path] = _opened_folder(path)
    return _held[path]


def hold_outside(path: str, *, file_mode: int) -> Folder:
    """Hold the directory of logs outside of run directories; only files directly in it count.

    A user may name it by a link. The caller sets the ``owner``.

    Raises:
        OSError: It does not exist, or cannot be read.
    """
    if path not in _held:
        # O_PATH: the directory itself is not read.
        folder = Folder(path, os.open(path, _DIRECTORY | os.O_PATH))
        folder.file_mode, folder.is_run = file_mode, False
        _held[path] = folder
    return _held[path]


def hold_logs(path: str, descriptor: int, *, below: bool) -> None:
    """Hold a directory of logs that a user has named, to read from it; ``descriptor`` is closed with it.

    ``below`` says whether subdirectories count. Links in it are not followed.
    """
    held = _held.get(path)
    if held is not None and not held.takes_all:  # the directory of a run
        os.close(descriptor)
        return
    release(path)
    folder = Folder(path, descriptor)
    folder.is_run, folder.takes_all = below or (held is not None and held.is_run), True
    _held[path] = folder


def release_logs() -> None:
    """Close the directories of ``hold_logs``."""
    for path in [path for path, folder in _held.items() if folder.takes_all]:
        release(path)


def identity_of(path: str) -> tuple[Any, ...]:
    """Return the identity of a directory, which is held from now on; of none, if it cannot be opened."""
    try:
        return hold(path).identity
    except OSError:
        return (path, -1, -1, -1, 0, True, 0, -1)


def adopt(identity: Sequence[Any]) -> Folder:
    """Hold the directory that another process of this host holds; see ``Folder.identity``.

    If another directory is in its place, it is opened through the other process, which needs /proc.

    Raises:
        OSError: It cannot be opened, or another directory is in its place.
    """
    path, _device, _inode, owner, file_mode, is_run, pid, descriptor = identity
    if path not in _held:
        folder = _same(identity, path) or _same(identity, f"/proc/{pid}/fd/{descriptor}")
        if folder is None:
            os.close(os.open(path, _DIRECTORY | os.O_PATH))  # It may not exist.
            raise refusal(errno.ESTALE, path, "")
        folder.owner, folder.file_mode, folder.is_run = owner, file_mode, is_run
        _held[path] = folder
    return _held[path]


def _same(identity: Sequence[Any], path: str) -> Folder | None:
    try:
        # O_PATH: a directory of logs outside of run directories is not read itself.
        found = Folder(identity[0], os.open(path, _DIRECTORY | (0 if identity[5] else os.O_PATH)))
    except OSError:
        return None
    if found.is_same(identity):
        return found
    found.close()
    return None


def release(path: str) -> None:
    """Close a held directory."""
    if folder := _held.pop(path, None):
        folder.close()


def forget_all() -> None:
    """Forget the directories that the parent of this process holds; their descriptors are closed already."""
    _held.clear()


class opened:  # noqa: N801  (used as a function)
    """The held directory of a path, or the directory opened for as long as a ``with`` block lasts.

    With ``identity`` it must be the directory that had this identity before.

    Raises:
        OSError: The directory does not exist, is a link, is another one, or cannot be read.
    """

    def __init__(self, path: str, identity: Sequence[Any] = ()) -> None:
        self._path, self._identity = path, identity
        self._opened: Folder | None = None

    def __enter__(self) -> Folder:
        if folder := _held.get(self._path):
            return folder
        self._opened = folder = _opened_folder(self._path)
        if self._identity and not folder.is_same(self._identity):
            folder.close()
            raise refusal(errno.ESTALE, self._path, "")
        return folder

    def __exit__(self, *_error: object) -> None:
        if self._opened is not None:
            self._opened.close()


def find(path: str) -> tuple[Folder, str] | None:
    """Return the held directory in which a file is, and its name there; ``None`` if there is none."""
    folder, name = os.path.split(path)
    if found := _held.get(folder):
        return found, name
    while folder not in {"", "/"}:
        folder, part = os.path.split(folder)
        name = f"{part}/{name}"
        if (found := _held.get(folder)) and found.is_run:
            return found, name
    return None


def open_read(path: str, owner: int | None = None) -> int:
    """Open a regular file to read, never blocking; in a held directory as ``Folder.open_read``.

    A file elsewhere must belong to ``owner``, if given, and then links are not followed to it.

    Raises:
        OSError: The file does not exist, cannot be read, or is refused.
    """
    if found := find(path):
        return found[0].open_read(found[1])
    descriptor = os.open(path, os.O_RDONLY | (SAFE if owner is not None else SAFE & ~os.O_NOFOLLOW))
    about = os.fstat(descriptor)
    is_regular = stat.S_ISREG(about.st_mode)
    if path == os.devnull or (is_regular and owner in {None, about.st_uid}):
        return descriptor
    os.close(descriptor)
    raise refusal(errno.EUSERS if is_regular else errno.ENXIO, path, "")


def open_append(path: str, *, create: bool = True) -> int:
    """Open a log to append to it; its directory must be held, or is held from now on.

    Raises:
        OSError: The file cannot be opened, or is refused.
    """
    if path == os.devnull:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    folder, name = find(path) or (hold(os.path.dirname(path)), os.path.basename(path))
    return folder.open_append(name, create=create)


def status(path: str) -> os.stat_result | None:
    """Return the facts about a regular file; ``None`` if there is none, or it is refused."""
    try:
        if found := find(path):
            return found[0].stat(found[1])
        about = os.stat(path)
    except OSError:
        return None
    return about if stat.S_ISREG(about.st_mode) else None


def write(folder: str, name: str, data: bytes | Iterable[bytes], mode: int | None = None) -> str:
    """Write a file of a directory, as ``Folder.write``.

    Raises:
        OSError: The directory cannot be opened, or the file cannot be written.
    """
    with opened(folder) as inside:
        return inside.write(name, data, mode)
