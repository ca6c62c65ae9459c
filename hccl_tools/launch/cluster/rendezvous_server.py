"""Rendezvous of the hosts of a job that was started by hand on each host, before the first rank starts.

Rank 0's host listens on the port that the ranks use later. The other hosts send their manifests to it, and
receive its verdict. A table, script or setting that differs would otherwise cause a timeout of HCCL or remain
undetected. The connections stay open (see ``peer_link``); the port is released for the ranks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import transport
from hccl_tools.launch.cluster.membership import (
    HINT,
    PORT,
    PROTOCOL,
    TIMING,
    Membership,
    difference,
    differing,
    missing_hosts_error,
    parse,
)
from hccl_tools.launch.cluster.rendezvous_client import RendezvousClient
from hccl_tools.launch.planning import ports
from hccl_tools.launch.processes.file_limit import FileLimit
from hccl_tools.launch.processes.reactor import wait_readable
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.cluster.membership import HostManifest
    from hccl_tools.launch.cluster.transport import Connection

#: Seconds for all hosts to join: the command may be typed on each host in turn.
WAIT = 600.0


def join(
    own: HostManifest,
    hosts: Sequence[str],
    *,
    master: int,
    address: tuple[str, int],
    notify: Callable[[str], None],
    wait: float = WAIT,
    discovery_port: int = ports.DISCOVERY_PORT,
) -> Membership:
    """Return this host's membership once all hosts have joined and agree.

    Rank 0's host (the server ``master``) listens at ``address``, and has a connection to each other host.
    ``hosts`` are the names of the servers by index, ``wait`` is in seconds. Hosts with another start port
    connect to ``discovery_port``.

    Raises:
        LaunchError: Two hosts differ (the message names both), or a host did not join in time.
    """
    deadline = time.monotonic() + wait
    if own.server != master:
        client = RendezvousClient(
            own, (master, hosts[master]), address, discovery_port=discovery_port, notify=notify
        )
        return client.join(deadline, wait)
    server = RendezvousServer(own, hosts, address)
    try:
        server.listen(address[1], discovery_port)
        return server.wait_for_all(deadline, wait, notify)
    finally:
        server.close()


class RendezvousServer:
    """Rank 0's host: listeners, admitted members, and connections not yet identified."""

    def __init__(self, own: HostManifest, hosts: Sequence[str], address: tuple[str, int]) -> None:
        self.own, self.hosts, self.address = own, hosts, address
        self.missing = set(range(len(hosts))) - {own.server}
        self.members: dict[int, Connection] = {}
        self.run_dirs = {own.server: own.run_dir}
        #: The time of each connection, and whether it was made to the discovery port.
        self.unidentified: dict[Connection, tuple[float, bool]] = {}
        #: Whether each listener is bound to the discovery port.
        self.listeners: dict[socket.socket, bool] = {}
        self.limit = FileLimit()  # Ranks are unaffected: the keeper starts them.
        self.refusal = ""
        self.complete = False

    def listen(self, port: int, discovery_port: int) -> None:
        """Listen on the rendezvous port, and on the discovery port for hosts with another start port."""
        try:
            self.listeners[transport.listen(self.address[0], port)] = False
        except OSError as error:
            raise LaunchError(
                f"cannot listen on rendezvous port {port}: {error.strerror}",
                hint="choose another port with --start-port, the same on all hosts",
            ) from error
        try:
            self.listeners[transport.listen(self.address[0], discovery_port)] = True
        except OSError:
            return  # Another job uses this port; hosts with another start port then count as missing.

    def close(self) -> None:
        """Close listeners, unidentified connections and, unless all hosts have joined, all others."""
        for listener in self.listeners:
            listener.close()
        for other in [*self.unidentified, *(() if self.complete else self.members.values())]:
            other.close()

    def wait_for_all(self, deadline: float, wait: float, notify: Callable[[str], None]) -> Membership:
        """Wait until all hosts have joined, and release them; refuse all hosts at the first difference."""
        notify_at = time.monotonic() + TIMING.notice
        while self.missing:
            now = time.monotonic()
            if now > deadline:
                if self.refusal:
                    break
                raise missing_hosts_error(self.names(self.missing), wait)
            if now > notify_at:
                notify_at = float("inf")
                missing = and_more(self.names(self.missing))
                notify(f"waiting for {missing} to start its part (port {self.address[1]} here)")
            self.poll_once()
            if self.refusal:
                deadline = min(deadline, time.monotonic() + TIMING.linger)
        if self.refusal:
            raise LaunchError(self.refusal, hint=HINT)
        self.complete = True
        for other in self.members.values():
            other.send({"kind": PROTOCOL, "type": "go", "run_dirs": self.run_dirs})
        return Membership(self.members, self.run_dirs)

    def names(self, servers: Iterable[int]) -> list[str]:
        """Return the names of servers, in order of their indices."""
        return [self.hosts[server] for server in sorted(servers)]

    def poll_once(self) -> None:
        """Call poll() once and handle new, readable and closed connections."""
        wait_readable(TIMING.poll, *self.listeners, *self.unidentified, *self.members.values())
        for server, member in list(self.members.items()):
            if any(member.messages()) or member.closed:  # A member sends nothing until it is released.
                member.close()
                del self.members[server]
                self.missing.add(server)
        for newcomer, (since, at_discovery) in list(self.unidentified.items()):
            messages = list(newcomer.messages())
            if messages or newcomer.closed or time.monotonic() - since > TIMING.identify:
                del self.unidentified[newcomer]
                if not messages or not self.admit(newcomer, messages[0], at_discovery=at_discovery):
                    newcomer.close()
        for listener, at_discovery in self.listeners.items():
            while (new := transport.accept(listener)) is not None:
                self.limit.allows(new.fileno())
                self.unidentified[new] = (time.monotonic(), at_discovery)

    def admit(self, newcomer: Connection, message: dict[str, Any], *, at_discovery: bool) -> bool:
        """Handle the first message of a connection; return whether the connection was admitted."""
        other = parse(message)
        if other is None or not 0 <= other.server < len(self.hosts):
            return False
        if at_discovery and differing(self.own, other) != [PORT]:
            newcomer.send({"kind": PROTOCOL, "type": "another job"})
            return False
        if not self.refusal:
            known = self.members.get(other.server)
            self.refusal = difference(other if known else self.own, other)
            for member in self.members.values() if self.refusal else ():
                member.send({"kind": PROTOCOL, "type": "refused", "why": self.refusal})
        self.missing.discard(other.server)
        if self.refusal:
            newcomer.send({"kind": PROTOCOL, "type": "refused", "why": self.refusal})
            return False
        missing = and_more(self.names(self.missing))
        newcomer.send({"kind": PROTOCOL, "type": "welcome", "missing": missing})
        self.members[other.server] = newcomer
        self.run_dirs[other.server] = other.run_dir
        return True
