"""Reap ended processes in the order in which they ended.

wait(2) returns children in the order of their start, and one SIGCHLD may represent several children. The
report must identify the rank that failed first, so an epoll set contains a process descriptor of each rank;
it lists ready descriptors in order of time. On kernels without process descriptors (before 5.3), or at the
limit of open files, two processes that exit within microseconds may be reported in the wrong order.
"""

from __future__ import annotations

import os
import select

from hccl_tools.processes.limits import FileLimit
from hccl_tools.records import NamedTuple


class Death(NamedTuple):
    """A rank's end: raw wait status, CPU time in nanoseconds, peak memory in KiB."""

    pid: int
    task: int
    status: int
    cpu: int
    peak: int


class Reaper:
    """Reaps the children of this process: ranks in order of death, adopted orphans without a report."""

    def __init__(self) -> None:
        self.limit = FileLimit()
        self.all_reaped = True
        self._order = select.epoll()
        self._indexes: dict[int, int] = {}
        self._descriptors: dict[int, int] = {}
        self._pids: dict[int, int] = {}

    def fileno(self) -> int:
        """Return a descriptor that is readable when a rank has ended, on kernels with process descriptors."""
        return self._order.fileno()

    def add(self, pid: int, index: int) -> None:
        """Add a rank that has been started."""
        self._indexes[pid] = index
        self.all_reaped = False
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return  # On an old kernel, only SIGCHLD reports the exit.
        if not self.limit.allows(descriptor):
            os.close(descriptor)
            return
        self._descriptors[pid] = descriptor
        self._pids[descriptor] = pid
        self._order.register(descriptor, select.EPOLLIN)

    def running(self) -> list[tuple[int, int]]:
        """Return process id and index of the ranks not reaped yet; these ids cannot be reused."""
        return list(self._indexes.items())

    def reap(self) -> list[Death]:
        """Reap ended children; return ranks in order of death, discard adopted orphans."""
        deaths = self._in_order()
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.all_reaped = True
                return deaths
            self.all_reaped = False
            if ended is None:
                return deaths
            pid = ended.si_pid
            if pid not in self._indexes:
                os.waitpid(pid, 0)
                continue
            # Since the first call of _in_order, another rank may have ended, and before this rank.
            deaths += self._in_order()
            if pid in self._indexes:
                deaths.append(self._reap(pid))

    def _in_order(self) -> list[Death]:
        if not self._pids:
            return []
        ready = self._order.poll(0, len(self._pids))
        return [self._reap(self._pids[descriptor]) for descriptor, _ in ready if descriptor in self._pids]

    def _reap(self, pid: int) -> Death:
        descriptor = self._descriptors.pop(pid, -1)
        if descriptor >= 0:
            del self._pids[descriptor]
            # A child before its exec still holds a copy of the descriptor, and with it the registration.
            self._order.unregister(descriptor)
            os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        cpu = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return Death(pid, self._indexes.pop(pid), status, cpu, usage.ru_maxrss)
