"""What has started a shim: mpirun's process, and a launcher on this host, to which it has a connection.

The launcher sees by the connection's end that a shim was killed, and the shim that the launcher was. Loading
``socket`` would take longer than all of this.
"""

from __future__ import annotations

import _socket
import os
import select
import signal

from hccl_tools.errors import LaunchError
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.processes import procfs

TYPE_CHECKING = False  # That of typing, which a shim does without; see records.
if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from hccl_tools.launch.processes.linux import Received

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class LauncherLink:
    """The connection of one rank's shim."""

    def __init__(self, told: str, rank: int) -> None:
        """Connect, and say which rank this is.

        Raises:
            LaunchError: The launcher does not listen on this host.
        """
        token, port, _ = told.split("@", 2)
        self._socket = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        try:
            self._socket.connect(("127.0.0.1", int(port)))
        except OSError as error:
            raise LaunchError(
                f"rank {rank} on {os.uname().nodename} cannot reach the launcher: {error.strerror}",
                hint="without a rank table all ranks run on the launcher's host; is this another one?",
            ) from error
        parent = f'["{os.uname().nodename}", {os.getppid()}]'
        self.send(f'{{"hello": "{token}", "agent": {rank}, "pid": {os.getpid()}, "parent": {parent}}}\n')

    def fileno(self) -> int:
        """Readable when the launcher has ended or has answered."""
        return self._socket.fileno()

    def send(self, message: str) -> None:
        """Send a message; without a launcher nothing is to be reported."""
        try:
            self._socket.sendall(message.encode())
        except OSError:
            return

    def is_closed(self) -> bool:
        """Whether the launcher has ended; takes away what it has answered."""
        try:
            return not self._socket.recv(4096, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


def from_environment(environ: MutableMapping[str, str], rank: int) -> LauncherLink | None:
    """Connect to the launcher that is told in the environment, and take that out for no rank to see it.

    Raises:
        LaunchError: The launcher does not listen on this host.
    """
    told = environ.pop(LAUNCHER_VARIABLE, "")
    return LauncherLink(told, rank) if told else None


class Above:
    """What has started this shim: mpirun's process, and the launcher if there is one."""

    def __init__(self, link: LauncherLink | None) -> None:
        self.link, self.pid = link, os.getppid()
        self.name = procfs.read(f"/proc/{self.pid}/comm").strip() if link else ""
        #: Which process was lost, where the rank was killed for that; whether it was asked to end.
        self.lost = ""
        self.asked, self._watched = False, list[int]()

    def has_gone(self) -> bool:
        """Whether either has ended: nobody is left to run for."""
        return os.getppid() != self.pid or (self.link is not None and self.link.is_closed())

    def watch(self, poller: select.poll) -> bool:
        """Have a poller woken when either ends; whether it has to look by itself (kernels before 5.3)."""
        if self.link is None:
            return False  # A signal tells; see shim._leave_the_original_to_mpirun.
        self._poller, self._watched = poller, [self.link.fileno()]
        try:  # noqa: SIM105  (contextlib would take a shim's time)
            self._watched.append(os.pidfd_open(self.pid))
        except OSError:
            pass
        for descriptor in self._watched:
            poller.register(descriptor, select.POLLIN)
        return len(self._watched) == 1

    def judge(self, received: list[Received]) -> list[int]:
        """Return the signals that the rank is to get, SIGKILL once nobody is left to run for."""
        told = [one for one in received if one.number != signal.SIGCHLD]
        if (told or self.link) and self.has_gone():
            if self.link and not self.asked and not self.link.is_closed():
                self.lost = f"{self.name} (pid {self.pid}) was killed, or has ended before its ranks"
            while self._watched:
                self._poller.unregister(self._watched.pop())
            return [signal.SIGKILL]
        ending = [one for one in told if one.number in _ENDING]
        if self.link and any(one.sender == self.pid for one in ending):
            self.link.send('{"ended_by_engine": true}\n')
        self.asked = self.asked or bool(ending)
        return [one.number for one in told]
