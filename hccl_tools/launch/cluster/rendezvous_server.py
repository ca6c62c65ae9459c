"""Rendezvous of the hosts of a job that was started by hand on each host, before the first rank starts.

Rank 0's host listens on the port that the ranks use later. The other hosts send their manifests to it, and
receive its verdict. A table, script or setting that differs would otherwise cause a timeout of HCCL or remain
undetected. The connections stay open (see ``peer_link``); the port is released for the ranks.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster.job_addresses import rendezvous_bindings
from hccl_tools.launch.cluster.listener import Listener
from hccl_tools.launch.cluster.membership import (
    HINT,
    PORT,
    TIMING,
    HostManifest,
    Membership,
    difference,
    differing,
    missing_hosts_error,
)
from hccl_tools.launch.cluster.messages import Join, Leave, Ready, Refused, Start, Waiting
from hccl_tools.launch.cluster.rendezvous_client import RendezvousClient
from hccl_tools.launch.planning import ports
from hccl_tools.launch.processes.reactor import wait_readable
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.cluster.connection import Connection
    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.messages import Message

#: Seconds for all hosts to join: the command may be typed on each host in turn.
WAIT = 600.0
#: The number of messages with which a host joins.
_JOINING = 2


def join(
    own: HostManifest,
    hosts: Sequence[str],
    *,
    master: int,
    address: tuple[str, int],
    credentials: Credentials,
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
            own,
            (master, hosts[master]),
            address,
            credentials=credentials,
            discovery_port=discovery_port,
            notify=notify,
        )
        return client.join(deadline, wait)
    server = RendezvousServer(own, hosts, address, credentials)
    try:
        server.listen(address[1], discovery_port)
        return server.wait_for_all(deadline, wait, notify)
    finally:
        server.close()


class RendezvousServer:
    """Rank 0's host: the listener, admitted members, and connections that have not joined yet."""

    def __init__(
        self, own: HostManifest, hosts: Sequence[str], address: tuple[str, int], credentials: Credentials
    ) -> None:
        self.own, self.hosts, self.address = own, hosts, address
        self.missing = set(range(len(hosts))) - {own.server}
        self.members: dict[int, Connection] = {}
        self.run_dirs = {own.server: own.run_dir}
        #: The connections that have not joined, each with its messages and its port.
        self.joining: dict[Connection, tuple[list[Message], int]] = {}
        self.credentials = credentials
        self.listener = Listener(credentials.secret, silence=credentials.silence, allows=credentials.allows)
        self.discovery_port = 0
        self.refusal = ""
        self.complete = False

    def listen(self, port: int, discovery_port: int) -> None:
        """Listen on the rendezvous port, and on the discovery port for hosts with another start port."""
        bindings = rendezvous_bindings(self.address[0])
        try:
            self.listener.listen(bindings, port)
        except OSError as error:
            raise LaunchError(
                f"cannot listen on rendezvous port {port}: {error.strerror}",
                hint="choose another port with --start-port, the same on all hosts",
            ) from error
        with suppress(OSError):  # Another job uses this port; hosts with another start port count as missing.
            self.discovery_port = self.listener.listen(bindings, discovery_port)

    def close(self) -> None:
        """Close the listener, joining connections and, unless all hosts have joined, all others."""
        self.listener.close()
        for other in [*self.joining, *(() if self.complete else self.members.values())]:
            other.close()

    def wait_for_all(self, deadline: float, wait: float, notify: Callable[[str], None]) -> Membership:
        """Wait until all hosts have joined, and release them; refuse all hosts at the first difference."""
        notify_at = time.monotonic() + TIMING.notice
        while self.missing:
            now = time.monotonic()
            if now > deadline:
                if self.refusal:
                    break
                raise missing_hosts_error(self.names(self.missing), wait, self.listener.strangers())
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
        if strangers := self.listener.strangers():
            notify(strangers)
        for other in self.members.values():
            other.send(Start(run_dirs=self.run_dirs))
        return Membership(self.members, self.run_dirs)

    def names(self, servers: Iterable[int]) -> list[str]:
        """Return the names of servers, in order of their indices."""
        return [self.hosts[server] for server in sorted(servers)]

    def poll_once(self) -> None:
        """Wait once and handle new, readable and closed connections."""
        wait_readable(TIMING.poll, self.listener, *self.joining, *self.members.values())
        for server, member in list(self.members.items()):
            if member.messages() or member.closed:  # A member sends nothing until it is released.
                member.close()
                del self.members[server]
                self.missing.add(server)
        for guest in self.listener.guests():
            self.joining[guest.connection] = (guest.messages, guest.port)
        if not self.refusal:
            self.refusal = self.credentials.conflict(self.listener)
        for connection, (messages, port) in list(self.joining.items()):
            messages.extend(connection.messages())
            if len(messages) >= _JOINING or connection.closed:
                del self.joining[connection]
                if connection.closed or not self.admit(connection, messages, port):
                    connection.close()

    def admit(self, newcomer: Connection, messages: Sequence[Message], port: int) -> bool:
        """Handle the first messages of a connection; return whether the connection was admitted."""
        join, ready = messages[:_JOINING]
        if not (isinstance(join, Join) and isinstance(ready, Ready) and 0 <= join.number < len(self.hosts)):
            return False
        other = HostManifest(join.number, self.hosts[join.number], dict(ready.values), join.run_dir)
        if port == self.discovery_port and differing(self.own, other) != [PORT]:
            newcomer.send(Leave("another job"))
            return False
        if not self.refusal:
            known = self.members.get(other.server)
            self.refusal = difference(other if known else self.own, other)
            for member in self.members.values() if self.refusal else ():
                member.send(Refused(self.refusal))
        self.missing.discard(other.server)
        if self.refusal:
            newcomer.send(Refused(self.refusal))
            return False
        newcomer.send(Waiting(tuple(self.names(self.missing))))
        self.members[other.server] = newcomer
        self.run_dirs[other.server] = other.run_dir
        return True
