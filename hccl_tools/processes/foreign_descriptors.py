"""What descriptors of other processes lead to, without a question to a file system that another user serves.

Each descriptor is held first (O_PATH), which asks no file system. While it is held, its mount keeps its
number. The lists of mounts are read then, and a descriptor is only looked at if its mount is known from them.
So it does not matter what a process exchanges in the meantime.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from hccl_tools.processes import mounts, procfs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from hccl_tools.processes.mounts import Descriptor, Mount

#: Mounts of another user, and of all other users, that are held.
_MOST_OF_A_USER, _MOST_OF_OTHERS = 64, 256
#: Bytes of the lists of mounts of another user, and of all other users: 4 MiB take 0.12 s.
_BYTES_OF_A_USER, _BYTES_OF_OTHERS = 1 << 23, 1 << 25
#: Seconds for the descriptors of all other users.
_SECONDS_OF_OTHERS = 5.0


class ForeignDescriptors:
    """Descriptors of other processes; ``incomplete`` has the processes that are not looked at, by user.

    Use it as a context manager, or ``close`` it.
    """

    def __init__(self, wanted: Iterable[tuple[int, str]], also: int | None = None) -> None:
        """Hold descriptors, by process and name.

        Args:
            wanted: The descriptors.
            also: A descriptor of this process: files of its mount are looked at as well.
        """
        self.incomplete: dict[int, set[int]] = {}
        self._users: dict[int, int] = {}
        self._bytes: dict[int, int] = {}
        self._bytes_of_all = _BYTES_OF_OTHERS
        self._seconds = _SECONDS_OF_OTHERS
        #: What keeps the number of a mount, and by number, a process of each namespace that has it.
        self._holds: dict[str, int] = {}
        self._seen: dict[str, dict[str, int]] = {}
        self._held_of: dict[int, int] = {}
        self._lists: dict[str, dict[str, Mount] | None] = {}
        self._local: frozenset[str] = frozenset()
        self._also = "" if also is None else mounts.descriptor("self", also).mount
        try:
            self._hold_all(list(wanted))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is held."""
        for held in self._holds.values():
            os.close(held)
        self._holds.clear()

    def status(self, pid: int, name: str) -> os.stat_result | None:
        """Return the status of the file that a descriptor has open, ``None`` if it is not looked at.

        A descriptor that only refers to a file (O_PATH) has not opened it, which needs no right.
        """
        if not self._local or self._is_out_of_time(pid):
            return None
        begun = time.monotonic()
        try:
            held = _held(pid, name)
        except OSError:  # The process may have closed the descriptor.
            return None
        try:
            own, other = mounts.descriptor("self", held), mounts.descriptor(pid, name)
            is_open = other.is_same_file(own) and not other.flags & os.O_PATH
            return os.fstat(held) if is_open and own.mount in self._local else None
        finally:
            os.close(held)
            self._count_time(pid, begun)

    def _hold_all(self, wanted: list[tuple[int, str]]) -> None:
        if not wanted:
            return
        before = self._own_list()
        for pid, name in wanted:
            if before is None:
                self._leave_out(pid)
            elif not self._is_out_of_time(pid):
                begun = time.monotonic()
                self._hold(pid, name, before)
                self._count_time(pid, begun)
        after = self._own_list() if self._holds else {}
        if after is None:
            for pid, _name in wanted:
                self._leave_out(pid)
            return
        self._local = frozenset(number for number in self._holds if self._is_local(number, after))

    def _hold(self, pid: int, name: str, before: dict[str, Mount]) -> None:
        seen: Descriptor = mounts.descriptor(pid, name)
        here = before.get(seen.mount)
        # A network file system of the administrator may not answer either, and can be asked by holding it.
        is_known = here is None or here.is_local or seen.mount == self._also
        if seen.flags & os.O_PATH or not is_known:
            return
        try:
            held = _held(pid, name)
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._leave_out(pid)
            return
        number = mounts.descriptor("self", held).mount
        if number not in self._holds and self._may_hold(pid):
            self._holds[number] = held
        else:
            os.close(held)
        if number in self._holds:
            self._seen.setdefault(number, {}).setdefault(_namespace(pid), pid)

    def _may_hold(self, pid: int) -> bool:
        """Count a mount for the user of a process; return whether it is one too many."""
        user = self._user(pid)
        if _is_trusted(user):
            return True
        number, of_all = self._held_of.get(user, 0), sum(self._held_of.values())
        if number >= _MOST_OF_A_USER or of_all >= _MOST_OF_OTHERS:
            self._leave_out(pid)
            return False
        self._held_of[user] = number + 1
        return True

    def _is_local(self, number: str, own: dict[str, Mount]) -> bool:
        if number == self._also:
            return True
        if number in own:
            return own[number].is_local
        without = []
        for namespace, pid in self._seen.get(number, {}).items():
            listed = self._list(namespace, pid)
            if listed is None:
                without.append(pid)
            elif number in listed:
                return listed[number].is_local_of_user
        for pid in without:
            self._leave_out(pid)
        return False

    def _own_list(self) -> dict[str, Mount] | None:
        try:
            return mounts.of_process()
        except (OSError, mounts.UnusableListError):
            return None

    def _list(self, namespace: str, pid: int) -> dict[str, Mount] | None:
        """Return the mounts of a namespace; each list is read once. ``None`` if it is not usable."""
        if namespace not in self._lists:
            begun = time.monotonic()
            try:
                self._lists[namespace] = mounts.parsed(self._read(pid))
            except OSError:  # The process has ended; another one of the namespace may come.
                return {}
            except mounts.UnusableListError:
                self._lists[namespace] = None
            finally:
                self._count_time(pid, begun)
        return self._lists[namespace]

    def _read(self, pid: int) -> bytes:
        user = self._user(pid)
        if _is_trusted(user):
            return mounts.read(pid, mounts.MOST_BYTES)
        left = min(self._bytes.setdefault(user, _BYTES_OF_A_USER), self._bytes_of_all, mounts.MOST_BYTES)
        if left <= 0 or self._seconds <= 0:
            raise mounts.UnusableListError("the lists of other users are too long")
        size = left
        try:
            data = mounts.read(pid, left)
            size = len(data)
        finally:
            self._bytes[user] -= size
            self._bytes_of_all -= size
        return data

    def _user(self, pid: int) -> int:
        if pid not in self._users:
            self._users[pid] = procfs.highest_user(pid)
        return self._users[pid]

    def _is_out_of_time(self, pid: int) -> bool:
        if self._seconds > 0 or _is_trusted(self._user(pid)):
            return False
        self._leave_out(pid)
        return True

    def _count_time(self, pid: int, begun: float) -> None:
        if not _is_trusted(self._user(pid)):
            self._seconds -= time.monotonic() - begun

    def _leave_out(self, pid: int) -> None:
        self.incomplete.setdefault(self._user(pid), set()).add(pid)


def _held(pid: int, name: str) -> int:
    return os.open(f"/proc/{pid}/fd/{name}", os.O_PATH | os.O_CLOEXEC)


def _is_trusted(user: int) -> bool:
    return user in {0, os.geteuid()}


def _namespace(pid: int) -> str:
    """Return the mount namespace of a process, or a name of its own if it is not known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return f"process {pid}"
