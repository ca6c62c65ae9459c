"""Rendezvous server: rank 0's host, which compares the manifests of all hosts."""

from __future__ import annotations

import select
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import rivals
from hccl_tools.launch.cluster.credentials import claim_of_guest
from hccl_tools.launch.cluster.job_addresses import rendezvous_aliases, rendezvous_bindings
from hccl_tools.launch.cluster.membership import (
    ANOTHER_TABLE,
    PORT,
    TABLE,
    TIMING,
    HostManifest,
    Membership,
    RefusalError,
    difference,
    differing,
    missing_hosts_error,
    refusal,
    waiting,
    with_another_table,
)
from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.planning import ports
from hccl_tools.launch.protocol.connection import Unproved, broadcast
from hccl_tools.launch.protocol.listener import LARGEST_SHARE, Listener
from hccl_tools.launch.protocol.messages import LARGEST, Leave, Ready, Refused, Start, Waiting
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.job_hosts import JobHosts
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.listener import Guest
    from hccl_tools.launch.protocol.messages import Message

#: The number of messages with which a host joins.
_JOINING = 2
#: The number of missing hosts that each host is told by name.
_MOST_NAMED = 4


class RendezvousServer:
    """Rank 0's host: the listener, admitted members, and connections that have not joined yet."""

    def __init__(
        self,
        own: HostManifest,
        hosts: JobHosts,
        credentials: Credentials,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.own, self.hosts, self.look = own, hosts, look
        #: The hosts that have come with another table, in order.
        self.other_tables: dict[str, None] = {}
        #: The servers that have not joined, in order; those that have joined and left come last.
        self.missing = dict.fromkeys(server for server in range(len(hosts.names)) if server != own.server)
        self.members: dict[int, Connection] = {}
        #: How each member has joined.
        self.joins: dict[int, Join] = {}
        #: When the wait for the other hosts ends.
        self.deadline = 0.0
        #: What was said about hosts without the key of the job.
        self.notes: dict[tuple[str, str], str] = {}
        self.run_dirs = {own.server: own.run_dir}
        #: By descriptor, the servers of members, and the connections that have not joined.
        self.server_of: dict[int, int] = {}
        self.joining: dict[int, Guest] = {}
        #: The same connections: without a key, any program can have proved itself.
        self.unjoined = Unproved(len(hosts.names))
        self.credentials = credentials
        self.listener = Listener(
            credentials.secret,
            silence=credentials.silence,
            hosts=len(hosts.names),
            allows=credentials.allows,
            expected=hosts.addresses or frozenset(),
            aliases=rendezvous_aliases(hosts.address[0]),
            largest=LARGEST_SHARE,  # A host may send more once it has joined.
        )
        #: Of the listener and all connections: a turn must not take time for each host that has joined.
        self.poller = select.epoll()
        self.poller.register(self.listener.fileno(), select.EPOLLIN)
        self.rivals = rivals.Rivals(own, hosts, credentials, self.poller)
        self.discovery_port = 0
        self.refusal: Refused | None = None
        self.complete = False

    def listen(self, discovery_port: int = ports.DISCOVERY_PORT) -> None:
        """Listen on the rendezvous port, and on the discovery port for hosts with another start port.

        Raises:
            LaunchError: The rendezvous port is in use. Hosts that query the discovery port learn that first.
        """
        address, port = self.hosts.address
        bindings = rendezvous_bindings(address)
        in_use = None
        try:
            self.listener.listen(bindings, port)
        except OSError as error:
            in_use = LaunchError(
                f"cannot listen on rendezvous port {port}: {error.strerror}",
                hint="choose another port with --start-port, the same on all hosts",
            )
        with suppress(OSError):  # Another job uses this port; hosts with another start port count as missing.
            self.discovery_port = self.listener.listen(bindings, discovery_port)
        if in_use is not None:
            self.refuse(in_use.message)
            raise RefusalError(in_use.message, hint=in_use.hint)

    def refuse(self, why: str) -> None:
        """Tell the hosts that connect in the next seconds why this host does not start its part."""
        self.refusal = Refused(f"{self.own.host} does not start its part: {why}", self.own.server)
        with suppress(RefusalError):
            self.wait_for_all(TIMING.linger, lambda _line: None)

    def close(self) -> None:
        """Close the listener, joining connections and, unless all hosts have joined, all others."""
        self.rivals.close()
        self.poller.close()
        self.listener.close()
        joining = (guest.connection for guest in self.joining.values())
        for other in [*joining, *(() if self.complete else self.members.values())]:
            other.close()

    def wait_for_all(self, wait: float, notify: Callable[[str], None]) -> Membership:
        """Wait until all hosts have joined, and release them; refuse all hosts at the first difference.

        Raises:
            RefusalError: The hosts differ, a host refuses its part, or a host did not join in ``wait`` s.
        """
        self.deadline, notify_at = time.monotonic() + wait, time.monotonic() + TIMING.notice
        is_first = True
        while self.missing:
            if self.look:
                self.look()
            now = time.monotonic()
            if now > self.deadline:
                if self.refusal:
                    break
                error = missing_hosts_error(self.names(self.missing), self.own, wait, self.heard())
                self.refuse_all(Refused(error.message, self.own.server))
                raise error
            if now > notify_at:
                missing, heard = and_more(self.names(self.missing)), self.heard()
                also = f"; {heard}" if heard else ""
                where = f"{missing} to start its part (port {self.hosts.address[1]} here)"
                left = wait if is_first else self.deadline - now
                notify(waiting(where, self.own, left, is_first=is_first, also=also))
                notify_at, is_first = now + TIMING.again, False
            self.poll_once()
            self.name_hosts_without_key(notify)
            if self.refusal:
                self.deadline = min(self.deadline, time.monotonic() + TIMING.linger)
        if self.refusal:
            number = self.refusal.number
            raise refusal(self.refusal, self.hosts.names[number] if number >= 0 else self.own.host)
        self.complete = True
        if strangers := self.listener.strangers():
            notify(strangers)
        broadcast(self.members.values(), Start(run_dirs=self.run_dirs))
        return Membership(self.members, self.run_dirs)

    def heard(self) -> str:
        """Return what is known about connections that did not join, "" if there were none."""
        tables = with_another_table([*self.other_tables])
        return "; ".join(filter(None, (tables, self.listener.strangers())))

    def name_hosts_without_key(self, notify: Callable[[str], None]) -> None:
        """Name the hosts that say that they have no key or another one, on each host's screen."""
        found = [claim for claim in self.listener.claims if claim not in self.notes]
        if not found or not self.credentials.secret:
            return
        for address, kind in found:
            self.notes[address, kind] = claim_of_guest(
                address, kind, self.hosts.address[0], self.hosts.addresses
            )
            notify(self.notes[address, kind])
        broadcast(self.members.values(), self.waiting([self.notes[claim] for claim in found]))

    def waiting(self, notes: Iterable[str]) -> Waiting:
        """Return the message to hosts that have joined while others are missing."""
        first = self.names(islice(self.missing, _MOST_NAMED))
        seconds = max(0.0, self.deadline - time.monotonic())
        return Waiting(tuple(first), len(self.missing) - len(first), seconds, tuple(notes))

    def names(self, servers: Iterable[int]) -> list[str]:
        """Return the names of servers, in order of their indices."""
        return [self.hosts.names[server] for server in sorted(servers)]

    def poll_once(self) -> None:
        """Wait once and handle new, readable and closed connections."""
        if not self.refusal:
            self.rivals.look(self.missing)
        ready = [descriptor for descriptor, _ in self.poller.poll(TIMING.poll)]
        for descriptor in ready:
            if descriptor in self.rivals:
                if refused := self.rivals.read(descriptor):
                    self.refuse_all(refused._replace(number=-1))
            elif (server := self.server_of.get(descriptor)) is not None:
                self.read_member(server)
        for descriptor in self.unjoined.expired(time.monotonic()):
            self.give_up(descriptor)
        for guest in self.listener.guests():
            if self.unjoined.is_full:
                self.give_up(self.unjoined.surplus())
            descriptor = guest.connection.fileno()
            self.joining[descriptor] = guest
            self.unjoined.add(guest.connection, guest.port)
            self.poller.register(descriptor, select.EPOLLIN)
            ready.append(descriptor)  # Its first messages may have arrived with its proof.
        if conflict := self.credentials.conflict(self.listener):
            self.refuse_all(Refused(conflict))
        for descriptor in ready:
            if descriptor in self.joining:
                self.read_guest(descriptor)

    def read_member(self, server: int) -> None:
        """Drop a member that has disconnected or sends something before it is released."""
        member = self.members[server]
        if member.messages() or member.closed:
            self.drop(server)

    def drop(self, server: int) -> None:
        """Disconnect a member, which is missing from now on."""
        member = self.members.pop(server)
        del self.server_of[member.fileno()]
        self.missing[server] = None
        self.disconnect(member)

    def read_guest(self, descriptor: int) -> None:
        """Read from a connection that has not joined; admit or close it once it has sent enough."""
        connection, messages, port = self.joining[descriptor]
        messages.extend(connection.messages())
        if len(messages) >= _JOINING or connection.closed:
            if len(messages) < _JOINING:
                self.give_up(descriptor)
                return
            del self.joining[descriptor]
            self.unjoined.remove(descriptor)
            if not self.admit(connection, messages, port):
                self.disconnect(connection)

    def give_up(self, descriptor: int) -> None:
        """Close a connection that has not joined."""
        del self.joining[descriptor]
        self.disconnect(self.unjoined.remove(descriptor))

    def disconnect(self, connection: Connection) -> None:
        """Close a connection of the poller."""
        self.poller.unregister(connection.fileno())
        connection.close()

    def refuse_all(self, why: Refused) -> None:
        """Refuse all members, unless they have been refused already."""
        if self.refusal is None:
            self.refusal = why
            broadcast(self.members.values(), why)

    def admit(self, newcomer: Connection, messages: Sequence[Message], port: int) -> bool:
        """Handle the first messages of a connection; return whether the connection was admitted."""
        join, message = messages[:_JOINING]
        names = self.hosts.names
        if not isinstance(join, Join) or not isinstance(message, Ready | Refused):
            return False
        if join.number == rivals.RIVAL and isinstance(message, Ready):
            self.answer_rival(newcomer, join, message)
            return False
        if not 0 <= join.number < len(names):
            return False
        name = names[join.number]
        if isinstance(message, Refused):
            self.missing.pop(join.number, None)
            self.refuse_all(Refused(f"{name} does not start its part: {message.why}", join.number))
            return False
        other = HostManifest(join.number, name, dict(message.values), join.run_dir)
        differs = differing(self.own, other)
        if port == self.discovery_port and differs != [PORT] and (differs or not self.refusal):
            newcomer.send(Leave("another job"))
            return False
        if self.look and TABLE in differs:
            self.other_tables[name] = None
            newcomer.send(Leave(ANOTHER_TABLE))
            return False
        self.other_tables.pop(name, None)
        known = self.members.get(other.server)
        if known and join.run_dir and join == self.joins[other.server]:
            self.drop(other.server)  # That launcher has given up its connection, which something keeps open.
            known = None
        if why := difference(other if known else self.own, other):
            self.refuse_all(Refused(why))
        self.missing.pop(other.server, None)
        if self.refusal:
            newcomer.send(self.refusal)
            return False
        newcomer.accept_up_to(LARGEST)
        newcomer.send(self.waiting(self.notes.values()))
        self.members[other.server], self.joins[other.server] = newcomer, join
        self.server_of[newcomer.fileno()] = other.server
        self.run_dirs[other.server] = other.run_dir
        return True

    def answer_rival(self, rival: Connection, join: Join, message: Ready) -> None:
        """Refuse the job if another host claims rank 0; that host may belong to another job."""
        other = HostManifest(join.number, join.node, dict(message.values), join.run_dir)
        is_this = join.run_dir == self.own.run_dir  # An address may lead back to this host.
        is_earlier = self.look is not None and TABLE in differing(self.own, other)
        why = "" if is_this or is_earlier else rivals.conflict(self.own, other)
        if why:
            self.refuse_all(Refused(why))
        rival.send(Refused(why) if why else Leave("another job"))
