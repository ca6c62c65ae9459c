"""Watch the parent of this process, an engine process: prted, orted, hydra_pmi_proxy, slurmstepd ...

An engine that loses one of its processes may detect the loss late or never, or exit with 0. A child of that
process detects it at once.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.processes import linux, procfs
from hccl_tools.processes.reactor import wait_readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.processes.reactor import Reactor

#: Seconds from one check to the next on kernels without process descriptors (before 5.3).
_INTERVAL = 0.25
#: Open MPI's daemons. They wait up to 15 minutes for an mpirun that they cannot reach.
_WAITING_DAEMONS = {"orted", "prted"}


class Parent:
    """The parent of this process, which may exit first."""

    def __init__(self) -> None:
        self.pid = os.getppid()
        self.name = procfs.read(f"/proc/{self.pid}/comm").strip() or "the parent process"

    @property
    def has_ended(self) -> bool:
        """Whether the parent has exited. A parent outside the PID namespace (0) cannot be watched."""
        return self.pid > 0 and os.getppid() != self.pid

    def watch(self, reactor: Reactor, act: Callable[[], None]) -> None:
        """Call ``act`` once when the parent has exited, even if this process is stopped until then."""
        # If the parent is in another session (sshd), the kernel would leave a stopped process stopped.
        linux.die_with_parent(signal.SIGCONT)
        if self.pid > 0 and not on_end_of(self.pid, reactor, act):
            self._check(reactor, act)

    def exits_within(self, seconds: float) -> bool:
        """Return whether the parent has exited; if it is exiting, first wait at most so long for its end.

        The kernel closes the connections of an exiting process before it reports the exit: what other
        processes do about the closed connections may reach this process first.
        """
        if not self.has_ended and self.pid > 0 and procfs.is_exiting(self.pid):
            with suppress(OSError):  # It has exited now, or the kernel has no process descriptors.
                descriptor = os.pidfd_open(self.pid)
                try:
                    wait_readable(seconds, descriptor)
                finally:
                    os.close(descriptor)
        return self.has_ended

    def end_waiting_daemon(self) -> None:
        """Terminate the parent if it would wait for an engine that has been lost."""
        if not self.has_ended and self.name in _WAITING_DAEMONS:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGTERM)

    def _check(self, reactor: Reactor, act: Callable[[], None]) -> None:
        if self.has_ended:
            act()
        else:
            reactor.at("parent", _INTERVAL, lambda: self._check(reactor, act))


def on_end_of(pid: int, reactor: Reactor, act: Callable[[], None]) -> bool:
    """Call ``act`` once a process exits; return False if it has exited or the kernel cannot report it."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False

    def ended() -> None:
        reactor.on_readable(descriptor, None)
        os.close(descriptor)
        act()

    reactor.on_readable(descriptor, ended)
    return True
