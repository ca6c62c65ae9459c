"""Collect ended processes in the order in which they ended.

wait(2) gives the children that have ended in the order of their start, and one SIGCHLD may stand for several.
Which rank failed first is the question the report has to answer, so a process descriptor of each rank sits in
an epoll set, whose list of ready descriptors is in order of time. On a kernel without process descriptors
(before 5.3), and where no more files may be open, two deaths between two looks, some microseconds apart, may
change places.
"""

from __future__ import annotations

import os
import select
from typing import NamedTuple

from hccl_tools.launch.processes.file_limit import FileLimit


class Death(NamedTuple):
    """A rank's end: raw wait status, CPU time in nanoseconds, peak memory in KiB."""

    pid: int
    task: int
    status: int
    cpu: int
    peak: int


class Deaths:
    """The running ranks of this process's children, and the order in which they end."""

    def __init__(self) -> None:
        self.limit = FileLimit()
        self.nobody_left = True
        self._order = select.epoll()
        self._indexes: dict[int, int] = {}
        self._descriptors: dict[int, int] = {}
        self._pids: dict[int, int] = {}

    def fileno(self) -> int:
        """Readable when a rank has ended (where the kernel has process descriptors)."""
        return self._order.fileno()

    def watch(self, pid: int, index: int) -> None:
        """A rank has been started."""
        self._indexes[pid] = index
        self.nobody_left = False
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return  # An old kernel: SIGCHLD tells, too.
        if not self.limit.allows(descriptor):
            os.close(descriptor)
            return
        self._descriptors[pid] = descriptor
        self._pids[descriptor] = pid
        self._order.register(descriptor, select.EPOLLIN)

    def running(self) -> list[tuple[int, int]]:
        """Process id and index of the ranks not collected yet; that makes their ids safe to use."""
        return list(self._indexes.items())

    def collect(self) -> list[Death]:
        """The ranks that have ended since the last call; orphans of theirs are collected without a word."""
        deaths = self._in_order()
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.nobody_left = True
                return deaths
            self.nobody_left = False
            if ended is None:
                return deaths
            pid = ended.si_pid
            if pid not in self._indexes:
                os.waitpid(pid, 0)
                continue
            # Another rank may have ended since the look above, and before this one.
            deaths += self._in_order()
            if pid in self._indexes:
                deaths.append(self._collect(pid))

    def _in_order(self) -> list[Death]:
        if not self._pids:
            return []
        ready = self._order.poll(0, len(self._pids))
        return [self._collect(self._pids[descriptor]) for descriptor, _ in ready if descriptor in self._pids]

    def _collect(self, pid: int) -> Death:
        descriptor = self._descriptors.pop(pid, -1)
        if descriptor >= 0:
            del self._pids[descriptor]
            # A child that has not reached its program yet still holds a copy, and with it the registration.
            self._order.unregister(descriptor)
            os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        cpu = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return Death(pid, self._indexes.pop(pid), status, cpu, usage.ru_maxrss)
