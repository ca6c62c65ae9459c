"""Watch a shim's parents: mpirun's process and, over a connection, a launcher on this host.

The connection is closed if the launcher or the shim is killed. The module imports ``_socket``: importing
``socket`` would take longer than all its other work.
"""

from __future__ import annotations

import _socket
import os
import select

from hccl_tools.errors import LaunchError
from hccl_tools.launch.model.rank_messages import EndedByEngine, Join
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.processes import procfs
from hccl_tools.records import to_json

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    import signal
    from collections.abc import MutableMapping

    from hccl_tools.launch.model.rank_messages import Ended
    from hccl_tools.processes.linux import Received
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class LauncherLink:
    """The connection from one rank's shim to the launcher."""

    def __init__(self, address: str, rank: int) -> None:
        """Connect and identify this rank; ``address`` is the name of the launcher's local socket.

        Raises:
            LaunchError: The launcher does not listen on this host.
        """
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        try:
            self._socket.connect("\0" + address)
        except OSError as error:
            raise LaunchError(
                f"rank {rank} on {os.uname().nodename} cannot reach the launcher: {error.strerror}",
                hint="without a rank table all ranks run on the launcher's host; is this another host?",
            ) from error
        self.send(Join(rank, os.getpid(), (os.uname().nodename, os.getppid())))

    def fileno(self) -> int:
        """Return a descriptor that is readable if the launcher has exited."""
        return self._socket.fileno()

    def send(self, message: Join | EndedByEngine | Ended) -> None:
        """Send a message, unless the launcher has exited."""
        content = to_json(message, tagged=True)
        try:
            self._socket.sendall(len(content).to_bytes(4, "big") + content)
        except OSError:
            return

    def is_closed(self) -> bool:
        """Return whether the launcher has exited, which sends nothing to a shim."""
        try:
            return not self._socket.recv(4096, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


def from_environment(environ: MutableMapping[str, str], rank: int) -> LauncherLink | None:
    """Connect to the launcher whose address is in the environment; remove the variable.

    Raises:
        LaunchError: The launcher does not listen on this host.
    """
    address = environ.pop(LAUNCHER_VARIABLE, "")
    return LauncherLink(address, rank) if address else None


class ParentWatch:
    """Watches the process that has started this shim, and the launcher if there is one.

    Attributes:
        lost: A sentence with the process whose exit caused this shim to kill its rank.
        has_terminated: Whether a parent has sent a signal that ends the rank.
    """

    def __init__(self, link: LauncherLink | None) -> None:
        self.link, self.pid = link, os.getppid()
        self.name = procfs.read(f"/proc/{self.pid}/comm").strip() if link else ""
        self.lost, self.has_terminated = "", False
        self._watched = list[int]()

    def has_ended(self) -> bool:
        """Return whether a parent has exited; the rank must then be killed."""
        return os.getppid() != self.pid or (self.link is not None and self.link.is_closed())

    def watch(self, poller: select.poll) -> bool:
        """Register the parents; return whether mpirun's process needs checks (kernels before 5.3)."""
        if self.link is None:
            return False  # A signal reports the parent's exit; see shim._continue_in_a_copy.
        self._poller, self._watched = poller, [self.link.fileno()]
        try:  # noqa: SIM105  (importing contextlib would delay the shim)
            self._watched.append(os.pidfd_open(self.pid))
        except OSError:
            pass
        for descriptor in self._watched:
            poller.register(descriptor, select.POLLIN)
        return len(self._watched) == 1

    def signals_to_forward(self, received: list[Received]) -> list[int]:
        """Return the signals for the rank: the received ones, or SIGKILL once a parent has exited."""
        forwarded = [one for one in received if one.number != signal.SIGCHLD]
        if (forwarded or self.link) and self.has_ended():
            if self.link and not self.has_terminated and not self.link.is_closed():
                self.lost = f"{self.name} (pid {self.pid}) was killed or exited before its ranks"
            while self._watched:
                self._poller.unregister(self._watched.pop())
            return [signal.SIGKILL]
        ending = [one for one in forwarded if one.number in _ENDING]
        if self.link and any(one.sender == self.pid for one in ending):
            self.link.send(EndedByEngine())
        self.has_terminated = self.has_terminated or bool(ending)
        return [one.number for one in forwarded]
