"""Other hosts of a job that also claim rank 0: each would wait for the others without end.

This happens if the hosts have a different order: ``--ips`` in another order, tables with rank 0 on different
servers, ``--node-rank 0`` on two hosts. While rank 0's host waits, it connects to the hosts that are missing.
One that listens for the same job compares the manifests, and refuses the job on both.
"""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.job_addresses import rendezvous_aliases, resolved
from hccl_tools.launch.cluster.membership import MACHINES, PORT, PROGRAM, TIMING, HostManifest, difference
from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.protocol.connection import Connection, endpoint
from hccl_tools.launch.protocol.messages import LARGEST_FROM_CONTROLLER, Ready, Refused
from hccl_tools.launch.protocol.session import Session
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.job_hosts import JobHosts

#: ``Join.number`` of a host that also claims rank 0.
RIVAL = -1
#: The most hosts that are asked in one round.
_MOST_ASKED = 16


def conflict(own: HostManifest, other: HostManifest) -> str:
    """Return why two hosts that both claim rank 0 cannot start; "" if the jobs differ."""
    subjects = (MACHINES, PROGRAM, PORT)
    if any(own.values.get(subject) != other.values.get(subject) for subject in subjects):
        return ""
    of_job = HostManifest(other.server, other.host, other.values)
    found = difference(own, of_job._replace(server=-1))
    both = f"{own.host} and {other.host} both claim rank 0"
    return f"{both}: {found}" if found else f"{both}: give them different --node-rank"


class Rivals:
    """The connections of rank 0's host to the hosts that are missing; their descriptors are in ``poller``."""

    def __init__(
        self, own: HostManifest, hosts: JobHosts, credentials: Credentials, poller: select.epoll
    ) -> None:
        self._own, self._hosts, self._credentials, self._poller = own, hosts, credentials, poller
        self._next_round = time.monotonic() + TIMING.discovery
        self._asked: set[int] = set()
        self._opening: dict[int, socket.socket] = {}
        self._open: dict[int, Connection] = {}
        self._greeted: set[int] = set()
        #: By server, the address of its name; and the addresses at which other hosts reach rank 0's.
        self._resolved: dict[int, str] = {}
        self._aliases: list[str] | None = None

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._opening or descriptor in self._open

    def look(self, missing: Iterable[int]) -> None:
        """Begin to connect to some of the missing hosts, from time to time."""
        if time.monotonic() < self._next_round:
            return
        self._next_round = time.monotonic() + TIMING.discovery_retry
        self.close()
        waiting = list(missing)
        if self._asked.issuperset(waiting):
            self._asked.clear()
        chosen = list(islice((server for server in waiting if server not in self._asked), _MOST_ASKED))
        self._asked.update(chosen)
        if self._aliases is None:
            self._aliases = sorted(rendezvous_aliases(self._hosts.address[0]))
        for address in (*filter(None, map(self._address, chosen)), *self._aliases):
            self._connect(address, self._hosts.address[1])

    def _address(self, server: int) -> str:
        """Return the address of a host, "" if it is unknown; a name is resolved once.

        Without a table, only addresses are looked at: a name may be a placeholder (``--nnodes 2``), and a
        name server that does not answer would delay the hosts that join.
        """
        name = self._hosts.names[server]
        if packed(name) is not None or self._hosts.addresses is None:
            return name if packed(name) is not None else ""
        if server not in self._resolved:
            self._resolved[server] = next(iter(sorted(resolved([name]))), "")
        return self._resolved[server]

    def _connect(self, address: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with suppress(OSError):
            opening = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            opening.connect_ex((address, port))
            self._poller.register(opening, select.EPOLLIN | select.EPOLLOUT)
            self._opening[opening.fileno()] = opening

    def read(self, descriptor: int) -> Refused | None:
        """Go on with a connection; return the refusal of a host that also claims rank 0."""
        if (opened := self._opening.pop(descriptor, None)) is not None:
            self._begin(descriptor, opened)
            return None
        connection = self._open[descriptor]
        messages = connection.messages()
        if connection.is_proved and descriptor not in self._greeted:
            self._greeted.add(descriptor)
            run_dir, host = self._own.run_dir, self._own.host
            connection.send(Join(RIVAL, os.getpid(), ("", 0), host, run_dir))
            connection.send(Ready(values=self._own.values))
        refused = next((message for message in messages if isinstance(message, Refused)), None)
        if connection.closed or refused:
            self._drop(descriptor)
        return refused

    def _begin(self, descriptor: int, opened: socket.socket) -> None:
        try:
            peer = opened.getpeername()
        except OSError:  # It was refused, or no host has this address.
            self._poller.unregister(descriptor)
            opened.close()
            return
        secret, silence = self._credentials.secret, self._credentials.silence
        session = Session(secret, listens=False, largest=LARGEST_FROM_CONTROLLER, dialled=endpoint(peer))
        self._poller.modify(descriptor, select.EPOLLIN)
        self._open[descriptor] = Connection(opened, session, silence, peer)

    def _drop(self, descriptor: int) -> None:
        self._greeted.discard(descriptor)
        self._poller.unregister(descriptor)
        self._open.pop(descriptor).close()

    def close(self) -> None:
        """Close the connections of the last round."""
        for descriptor in list(self._open):
            self._drop(descriptor)
        for descriptor, opening in self._opening.items():
            self._poller.unregister(descriptor)
            opening.close()
        self._opening.clear()
