"""Run directories that processes of other users name: only files of their own file system are looked at.

A user can serve a file system that never answers, and mount it on a folder or a file in the directory. Each
is held first, which asks no file system but that of its folder, and what is held is used: it does not matter
what is exchanged in the meantime.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.processes import mounts, run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class GuardedFolder(run_files.Folder):
    """An open directory of whose file system it is known that it answers."""

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the directory, or in a folder below it, sorted.

        Raises:
            OSError: The folder does not exist, or is refused.
        """
        with self._inside(run_files.parts(folder) if folder else []) as inside:
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            return sorted(os.listdir(readable))
        finally:
            os.close(readable)

    def _inside(self, folders: Sequence[str]) -> run_files.Inside:
        return run_files.Inside(self.descriptor, folders, self._admit)

    def _status(self, name: str, inside: int) -> os.stat_result:
        held = self._held(name, inside)
        try:
            return os.fstat(held)
        finally:
            os.close(held)

    def _opened_in(self, inside: int, name: str, flags: int) -> int:
        held = self._held(name, inside)
        try:
            if stat.S_ISLNK(os.fstat(held).st_mode):
                raise run_files.refusal(errno.ELOOP, self.path, name)
            reopen = (flags | run_files.SAFE) & ~(os.O_NOFOLLOW | os.O_CREAT)
            return os.open(f"/proc/self/fd/{held}", reopen)
        finally:
            os.close(held)

    def _held(self, name: str, inside: int) -> int:
        held = os.open(name, run_files.HELD, dir_fd=inside)
        try:
            self._admit(held)
        except OSError:
            os.close(held)
            raise
        return held

    def _admit(self, descriptor: int) -> None:
        own = mounts.descriptor("self", self.descriptor).mount
        if not own or mounts.descriptor("self", descriptor).mount != own:
            raise run_files.refusal(errno.EXDEV, self.path, "")


def guard(path: str, opener: Callable[[int], int]) -> None:
    """Open a run directory by a function from now on: it takes flags, and returns a descriptor."""
    run_files.guards[path] = partial(_opened, path, opener)


def _opened(path: str, opener: Callable[[int], int], flags: int) -> GuardedFolder:
    return GuardedFolder(path, opener(flags))


def about(path: str) -> os.stat_result:
    """Return the status of a run directory, or of what is in its place.

    Raises:
        OSError: There is nothing, or it is not looked at.
    """
    if path not in run_files.guards:
        return os.lstat(path)
    with closing(run_files.guards[path](os.O_PATH)) as folder:
        return os.fstat(folder.descriptor)


def is_closed(path: str) -> bool:
    """Return whether a path is that of a directory that this user cannot read."""
    if path not in run_files.guards:
        return os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK)
    try:
        with run_files.opened(path):
            return False
    except OSError as error:
        return isinstance(error, PermissionError)
