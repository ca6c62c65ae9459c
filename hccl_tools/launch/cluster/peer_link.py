"""The connections between the launchers of a job that was started by hand on every host.

After the rendezvous, rank 0's host (the leader) has a connection to each other host, and forwards messages
for all hosts. If a connection closes unexpectedly, a launcher was killed or its host is down or unreachable.
"""

from __future__ import annotations

import json
import select
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import membership, verdict
from hccl_tools.launch.cluster.membership import HostManifest
from hccl_tools.launch.cluster.own_part import JobParts
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.protocol.connection import broadcast
from hccl_tools.launch.protocol.messages import End, Ending, Ready, Start
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.printable import one_line_each
from hccl_tools.processes import timing
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.processes.signals import ENDING, signal_name
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.launch.cluster.membership import Membership
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.processes.signals import Signals


class Timing(NamedTuple):
    """Times of the protocol between the launchers of a job, in seconds.

    Attributes:
        barrier: For all hosts to end their ranks before a restart.
        notice: Until a message lists the hosts for which this launcher waits.
        acknowledge: For the other hosts to acknowledge the last message.
        scheduler: For MindSpore's scheduler to exit once no rank needs it.
        flush: Between two attempts to send queued data.
        poll: Maximum wait in one poll.
    """

    barrier: float = 600.0
    notice: float = 3.0
    acknowledge: float = 2.0
    scheduler: float = 0.2
    flush: float = 0.1
    poll: float = 0.5


#: Messages about the next start that a host keeps.
_MOST_UNREAD = 1 << 16

TIMING = timing.from_environment("peers", Timing())


class PeerLink:
    """This host's connections to its peers.

    Attributes:
        own: The index of this host's server.
        hosts: The names of the servers, by index.
        connections: The connections by server, including closed connections.
        run_dirs: The run directories, by server.
        is_leader: Whether this is rank 0's host.
    """

    def __init__(
        self,
        own: int,
        master: int,
        hosts: Sequence[str],
        joined: Membership,
        plan: Plan,
    ) -> None:
        self.own, self.hosts, self._plan, self._parts = own, hosts, plan, JobParts(plan)
        self.connections, self.run_dirs = joined.connections, joined.run_dirs
        self.is_leader = own == master
        #: Of the connections: one event must not take time for each host.
        self._poller = select.epoll()
        self._servers: dict[int, int] = {}
        for server, connection in self.connections.items():
            self._servers[connection.fileno()] = server
            self._poller.register(connection.fileno(), select.EPOLLIN)
        self._unsent = [one for one in self.connections.values() if one.waiting]
        #: Servers whose connection has closed, not handled yet.
        self._lost: list[int] = []
        #: Messages not handled yet, each with the server that sent it.
        self._unread: deque[tuple[int, Message]] = deque(maxlen=_MOST_UNREAD)
        #: The values of hosts that are ready to restart, by number of the restart and server.
        self._ready: dict[tuple[int, int], dict[str, str]] = {}

    def describe_loss(self, server: int) -> str:
        """Describe the loss of a server's launcher."""
        return verdict.launcher_loss(self._plan, server)

    def fileno(self) -> int:
        """Return a descriptor that is readable if a connection is."""
        return self._poller.fileno()

    def lost(self) -> list[int]:
        """Return the servers whose connection has closed since the last call."""
        lost, self._lost = self._lost, []
        return lost

    def flush(self) -> bool:
        """Send queued data; return whether some is left."""
        for connection in self._unsent:
            connection.flush()
        self._unsent = [one for one in self._unsent if one.waiting and not one.closed]
        return bool(self._unsent)

    @property
    def others(self) -> list[int]:
        """The servers that are still connected."""
        return [server for server, connection in self.connections.items() if not connection.closed]

    def broadcast(self, message: Message, *to: int) -> None:
        """Send a message to the given servers, by default to all other servers."""
        connections = [self.connections[server] for server in to or self.others]
        broadcast(connections, message)
        self._unsent += [one for one in connections if one.waiting]

    def receive(self, restart: int) -> Iterator[tuple[int, Message]]:
        """Yield the messages about this start of the job, each with the server that sent it.

        They have what that server may say.
        """
        for descriptor, _ in self._poller.poll(0):
            server = self._servers[descriptor]
            connection = self.connections[server]
            self._unread += [(server, message) for message in connection.messages()]
            if connection.closed:
                self._poller.unregister(descriptor)
                self._lost.append(server)
        for _ in range(len(self._unread)):
            server, message = self._unread.popleft()
            number = getattr(message, "restart", -1)
            if isinstance(message, Ready):
                self._ready[number, server] = dict(message.values)
            elif number == restart:
                yield server, self._checked(server, one_line_each(message))
            elif restart < number <= restart + 1:
                self._unread.append((server, message))  # That host is ahead of this one.

    def _checked(self, server: int, message: Message) -> Message:
        if isinstance(message, End):
            return self._parts.forwarded(message, server, self.own)
        return self._parts.of(server).checked(message)

    def keep_run_dirs(self, run_dir: str) -> None:
        """Record the run directory of each host in this host's run directory, for ``hccl-tools logs``."""
        # Messages show these paths: no line break of another host may be in one.
        found = {self.hosts[server]: path for server, path in self.run_dirs.items() if "\n" not in path}
        with suppress(LaunchError):  # The disk is full, which the ranks' logs will show.
            directory.write(run_dir, names.RUN_DIRS, json.dumps(found).encode())

    def abort(self, why: str | Cause, restart: int = 0, *, server: int | None = None) -> None:
        """Report why the job is not started; then disconnect.

        Args:
            why: What this host refuses, or the cause that ``server`` has reported.
        """
        cause = why if isinstance(why, Cause) else Cause.lost(self.hosts[self.own], "refused", why)
        if self.is_leader:
            self.broadcast(End(cause, self.own if server is None else server, restart))
        elif server is None:  # Else all hosts have it from rank 0's host.
            self.broadcast(Ending(cause, restart))
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()
        self._poller.close()

    def barrier(
        self, restart: int, values: dict[str, str], *, signals: Signals, notify: Callable[[str], None]
    ) -> None:
        """Wait until all hosts are ready to restart and have the same values.

        Raises:
            LaunchError: The hosts differ, a host was lost or aborted, or this launcher received a signal.
        """
        if not self.is_leader:
            self.broadcast(Ready(restart, values))
        began = time.monotonic()
        notify_at = began + TIMING.notice
        while not self._all_ready(restart, values):
            if number := next(iter(ENDING & set(signals.read())), 0):
                self._fail(restart, f"the launcher on {self.hosts[self.own]} received {signal_name(number)}")
            if time.monotonic() > began + TIMING.barrier:
                self._fail(restart, f"not all hosts ended their ranks within {TIMING.barrier:g} s")
            if time.monotonic() > notify_at:
                notify("waiting for the other hosts to end their ranks")
                notify_at = float("inf")
            wait_readable(1.0, signals, self)

    def _all_ready(self, restart: int, values: dict[str, str]) -> bool:
        for server, message in self.receive(restart):
            if isinstance(message, Start):
                return True
            if isinstance(message, End | Ending):
                self._fail(restart, message.cause, server)
        lost = [self.hosts[server] for server, connection in self.connections.items() if connection.closed]
        if lost:
            self._fail(restart, f"lost contact with the launcher on {and_more(lost)}")
        if not self.is_leader or any((restart, server) not in self._ready for server in self.connections):
            return False
        own = HostManifest(self.own, self.hosts[self.own], values)
        for server in self.connections:
            other = HostManifest(server, self.hosts[server], self._ready[restart, server])
            if why := membership.difference(own, other):
                self._fail(restart, why)
        self.broadcast(Start(restart))
        return True

    def _fail(self, restart: int, why: str | Cause, server: int | None = None) -> None:
        self.abort(why, restart, server=server)
        raise LaunchError(why if isinstance(why, str) else why.message)
