"""Where the open descriptors of the processes of this host lead, within limits for those of other users.

A user can have millions of descriptors open, and root's look at all of them takes seconds. Those of root and
of this user are read without a limit.
"""

from __future__ import annotations

import os
import pwd
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

#: Descriptors of another user, and of all other users, that are read; a million take four seconds.
_MOST_OF_A_USER, _MOST_OF_OTHERS = 1 << 16, 1 << 18
#: Descriptors of each further process: programs open devices early.
_FEWER = 64
#: Descriptors up to which it is not asked whose a process of root is: it may hide that it is another user's.
_CHEAP = 8
_MOST_NAMED = 4


class OpenDescriptors:
    """The open descriptors of all processes; ``left_out`` is known after ``each`` has ended."""

    def __init__(self, without: Container[int] = ()) -> None:
        self._without = without
        self._left: dict[int, int] = {}
        self._left_of_all = _MOST_OF_OTHERS
        self._incomplete: dict[int, int] = {}

    def each(self) -> Iterator[tuple[int, Iterator[tuple[str, str]]]]:
        """Yield the id of each process, and the names of its descriptors and where they lead."""
        for name in os.listdir("/proc"):
            if not name.isdigit() or (pid := int(name)) in self._without:
                continue
            try:
                folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                yield pid, _targets(folder, self._names(pid, folder))
            except OSError:  # The process has ended.
                continue
            finally:
                os.close(folder)

    def left_out(self) -> str:
        """Return whose descriptors were not all read, "" if all were."""
        if not self._incomplete:
            return ""
        users = users_and_numbers(self._incomplete)
        return f"too many open files of {users}; the numbers are those of processes"

    def _names(self, pid: int, folder: int) -> list[str]:
        """Return the names of the descriptors of a process, as far as the limits of its user allow."""
        owner, own = os.fstat(folder).st_uid, os.geteuid()
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _CHEAP + 1)]
            if len(names) <= _CHEAP:
                return names
            owner = owner or procfs.highest_user(pid)
            if owner in {0, own}:
                return names + [entry.name for entry in entries]
            left = min(self._left.setdefault(owner, _MOST_OF_A_USER), self._left_of_all)
            names += [entry.name for entry in islice(entries, max(_FEWER, left) - len(names))]
            if next(entries, None) is not None:
                self._incomplete[owner] = self._incomplete.get(owner, 0) + 1
        self._left[owner] -= len(names)
        self._left_of_all -= len(names)
        return names


def users_and_numbers(numbers: Mapping[int, int]) -> str:
    """Return the users with the highest numbers, each with its number: ``ann (3), bob (1)``."""
    listed = sorted(numbers.items(), key=lambda one: -one[1])
    users = [f"{_user(uid)} ({number})" for uid, number in listed[:_MOST_NAMED]]
    more = f" and {len(listed) - _MOST_NAMED} more users" if len(listed) > _MOST_NAMED else ""
    return f"{', '.join(users)}{more}"


def _targets(folder: int, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    # Not `suppress`: every descriptor of every process is looked at before a start.
    for name in names:
        try:
            yield name, os.readlink(name, dir_fd=folder)
        except OSError:  # noqa: PERF203  (the process may have closed the descriptor)
            continue


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"user {uid}"
