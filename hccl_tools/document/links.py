"""The symbolic links of a path: whom they belong to, and which of them a command follows."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

_MOST_LINKS = 40
#: O_PATH: neither a directory that is passed nor a file whose status is asked for need be readable.
_ANY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
#: O_DIRECTORY also mounts what an automounter provides.
_FOLDER = _ANY | os.O_DIRECTORY


class ForeignLinkError(OSError):
    """A path leads through a link of another user, who chooses the file that it leads to.

    Attributes:
        link: The path of the link.
        owner: The id of its owner.
        clause: Both as a clause: ``/tmp/out is a symbolic link of nobody``.
    """

    def __init__(self, path: str, link: str, owner: int) -> None:
        self.link, self.owner = link, owner
        self.clause = f"{link} is a symbolic link of {user_name(owner)}"
        super().__init__(errno.ELOOP, self.clause, path)


class _Entered(NamedTuple):
    """A link of another user that was followed, with the number of parts of the path after it."""

    left: int
    path: str
    owner: int


class Entry:
    """The entry of a directory to which a path leads, and a descriptor of that directory.

    Other users may be able to exchange a part of a path at any time. Each part is therefore opened relative
    to the part before it, and checked by its descriptor; what is done with ``name`` relative to ``folder`` is
    done in the directory that was checked. Links of this user and of root are followed. A link of another
    user is followed only if its target belongs to that user, and only that user can make links in its folder:
    its owner gains nothing by it. Use it as a context manager, or ``close`` it.

    Attributes:
        folder: The descriptor of the directory (O_PATH).
        name: The name in the directory, which may not exist; "." for the directory itself.
        about: The status of what had that name when it was checked, ``None`` if nothing had.
        is_behind_link: Whether the last part of the path was a link that was followed.
    """

    def __init__(
        self,
        path: str,
        *,
        follow_last: bool = True,
        owners: frozenset[int] | None = None,
        admit: Callable[[int], None] | None = None,
    ) -> None:
        """Open the directory of an entry.

        Args:
            path: Absolute or relative; with a slash at its end it must be a directory.
            follow_last: Whether to follow a link that is the last part of the path; else ``about`` is its
                status.
            owners: The users whose links are followed, in place of those above, wherever they lead.
            admit: Raises OSError for a descriptor (O_PATH) whose file system must not be asked. It is called
                for each part of the path before anything else is done with it.

        Raises:
            ForeignLinkError: The path leads through a link that is not followed.
            OSError: A directory of the path does not exist or cannot be entered, or the links have no end.
        """
        self._admit = admit
        self.about: os.stat_result | None = None
        self.is_behind_link, self._links = False, 0
        self._owners = this_user_and_root() if owners is None else owners
        self._takes_others = owners is None
        self._entered: list[_Entered] = []
        self._begin(path)
        try:
            self._walk(path, follow_last=follow_last)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The path of the entry, absolute and without links; only for messages."""
        return os.path.normpath(os.path.join(self._here, self.name))

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open the entry itself; a link that has its name by now is an error, and no pipe is waited for.

        Raises:
            OSError: It cannot be opened.
        """
        safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(self.name, flags | safe, mode, dir_fd=self.folder)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _begin(self, path: str) -> None:
        self._here = "/"
        if not path.startswith("/"):
            try:
                self._here = os.getcwd()
            except OSError:  # It is only for messages.
                self._here = "."
        self.folder = self._open("/" if path.startswith("/") else ".", _FOLDER)

    def _walk(self, path: str, *, follow_last: bool) -> None:
        parts = _parts(path)
        while True:
            self.name = name = parts.pop()
            if parts and self._enter(name):
                self._check_targets(os.fstat(self.folder), len(parts), path)
                continue
            try:
                found = self._open(name, _ANY, self.folder)
            except FileNotFoundError:
                if parts:
                    raise
                self._check_targets(os.fstat(self.folder), 0, path)  # A new file would be made there.
                return
            try:
                about = os.fstat(found)
                is_followed = stat.S_ISLNK(about.st_mode) and (bool(parts) or follow_last)
                target = self._target(found, about, len(parts), path) if is_followed else ""
            finally:
                os.close(found)
            if not is_followed:
                if parts:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                self._check_targets(about, 0, path)
                self.about = about
                return
            self.is_behind_link |= not parts
            if target.startswith("/"):
                self._replace(self._open("/", _FOLDER), "/")
            parts += _parts(target)

    def _enter(self, name: str) -> bool:
        """Go into a directory; return false if the name is that of a link or a file."""
        if name == ".":
            return True
        try:
            inner = self._open(name, _FOLDER, self.folder)
        except OSError as error:
            if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                return False
            raise
        self._replace(inner, os.path.normpath(os.path.join(self._here, name)))
        return True

    def _open(self, name: str, flags: int, folder: int | None = None) -> int:
        opened = os.open(name, flags, dir_fd=folder)
        if self._admit is not None:
            try:
                self._admit(opened)
            except BaseException:
                os.close(opened)
                raise
        return opened

    def _replace(self, folder: int, here: str) -> None:
        os.close(self.folder)
        self.folder, self._here = folder, here

    def _target(self, link: int, about: os.stat_result, left: int, path: str) -> str:
        """Return where an open link leads to.

        Args:
            left: The number of parts of the path after the link.

        Raises:
            OSError: The link is not followed, or it is one too many.
        """
        if about.st_uid not in self._owners:
            if not self._takes_others or not self._is_in_folder_of(about.st_uid):
                raise ForeignLinkError(path, self.path, about.st_uid)
            self._entered.append(_Entered(left, self.path, about.st_uid))
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.readlink("", dir_fd=link)

    def _is_in_folder_of(self, owner: int) -> bool:
        folder = os.fstat(self.folder)
        return folder.st_uid == owner and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def _check_targets(self, about: os.stat_result, left: int, path: str) -> None:
        """Refuse a link of another user that leads to what is not that user's.

        Args:
            about: The status of what was reached.
            left: The number of parts that are left of the path: links with as many after them end here.

        Raises:
            ForeignLinkError: There is such a link.
        """
        while self._entered and self._entered[-1].left >= left:
            one = self._entered.pop()
            if about.st_uid != one.owner:
                raise ForeignLinkError(path, one.path, one.owner)


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the last first; "." is the last part of a path that is a directory's."""
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    parts = path.split("/")
    end = ["."] if parts[-1] in {"", ".", ".."} else []
    return end + [part for part in reversed(parts) if part not in {"", "."}]


def open_folder(path: str, flags: int = os.O_PATH, *, owners: frozenset[int] | None = None) -> int:
    """Open a directory by a path; see ``Entry`` on the links that are followed, and on ``owners``.

    Raises:
        ForeignLinkError: The path leads through a link that is not followed.
        OSError: It does not exist, is not a directory, or cannot be opened.
    """
    with Entry(os.path.join(path, ""), owners=owners) as entry:
        return os.open(".", flags | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry.folder)


def make_folders(path: str, mode: int = 0o777) -> int:
    """Open a directory, and make it and its parents if they do not exist.

    Args:
        path: The directory.
        mode: The mode of new directories, from which the umask is taken.

    Returns:
        A descriptor of the directory (O_PATH).

    Raises:
        ForeignLinkError: The path leads through a link that is not followed.
        OSError: A directory cannot be made or entered.
    """
    missing = []
    while True:
        try:
            folder = open_folder(path or ".")
            break
        except FileNotFoundError:
            path, name = os.path.split(path.rstrip("/"))
            if not name or os.path.islink(os.path.join(path, name)):
                raise
            missing.append(name)
    for name in reversed(missing):
        try:
            with contextlib.suppress(FileExistsError):  # Another process has made it meanwhile.
                os.mkdir(name, mode, dir_fd=folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def passed(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the directories and the symbolic links through which an absolute path leads, from the root on.

    Each is named by its path without links.

    Raises:
        OSError: A part of the path does not exist, or the links have no end.
    """
    parts, here, links = path.split("/")[::-1], "/", 0
    yield here, os.lstat(here)
    while parts:
        part = parts.pop()
        there = os.path.dirname(here) if part == ".." else os.path.join(here, part)
        if part in {"", ".", ".."}:
            here = there if part == ".." else here
            continue
        about = os.lstat(there)
        yield there, about
        if not stat.S_ISLNK(about.st_mode):
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(there)
        here = "/" if target.startswith("/") else here
        parts += target.split("/")[::-1]


def real_path(path: str) -> str:
    """Return a path without links, for messages and comparisons; one that changes meanwhile stays as it is.

    ``os.path.realpath`` raises OSError if a link is replaced by something else while it is read.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)


def this_user_and_root() -> frozenset[int]:
    """Return the users whose links are followed wherever they lead."""
    return frozenset({0, os.geteuid()})


def user_name(uid: int) -> str:
    """Return the name of a user, or the number: ``user 1000``."""
    import pwd  # noqa: PLC0415  (a shim rarely names a user)

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def user_of(path: str) -> str:
    """Return the name of a file's owner, or its number; "another user" if the file was removed."""
    try:
        return user_name(os.stat(path).st_uid)
    except OSError:
        return "another user"
