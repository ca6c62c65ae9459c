"""The symbolic links of a path: whom they belong to, and which of them a command follows."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 40


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


def foreign(path: str) -> str:
    """Return a clause about a link of another user through which a path leads; "" if there is none.

    The owner of such a link chooses the file that it leads to. Links of this user and of root are followed,
    and those of the owner of a folder in which no other user can make links. A part that does not exist ends
    the search.
    """
    trusted = {0, os.geteuid()}
    try:
        for link, about in passed(os.path.abspath(path)):
            if stat.S_ISLNK(about.st_mode) and about.st_uid not in trusted:
                folder = os.stat(os.path.dirname(link))
                if folder.st_uid != about.st_uid or folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    return f"{link} is a symbolic link of {user_name(about.st_uid)}"
    except OSError:
        return ""
    return ""


def user_name(uid: int) -> str:
    """Return the name of a user, or the number: ``user 1000``."""
    import pwd  # noqa: PLC0415  (for messages)

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
