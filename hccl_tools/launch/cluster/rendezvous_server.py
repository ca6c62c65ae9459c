"""Hosts on which the same command was typed compare what they have, before the first rank starts.

The host of rank 0 listens where the ranks will meet later; the others tell it what they have, and all get its
verdict. A table, script or setting that is not the same everywhere would otherwise show as a time-out of
HCCL, or not at all. Their connections stay (see ``line``), the port itself is free again for the ranks.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import transport
from hccl_tools.launch.cluster.membership import (
    HINT,
    KIND,
    PORT,
    Met,
    absent,
    difference,
    differing,
    parse,
    some,
)
from hccl_tools.launch.cluster.rendezvous_client import Guest
from hccl_tools.launch.planning import ports

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.cluster.membership import Attendance
    from hccl_tools.launch.cluster.transport import Wire

#: Seconds for all hosts to come: somebody types the command on one after the other.
WAIT = 600.0
#: Seconds between two looks at the time, until a stranger must have said who it is, until it is said who is
#: waited for, and in which those who come late are still told of a refusal.
_PAUSE, _STRANGER, _PATIENCE, _LINGER = 0.2, 10.0, 2.0, 3.0
#: How many files a launcher may need besides its connections.
_DESCRIPTORS = 512


def meet(
    own: Attendance,
    hosts: Sequence[str],
    *,
    master: int,
    address: tuple[str, int],
    tell: Callable[[str], None],
    wait: float = WAIT,
    ask: int = ports.DISCOVERY_PORT,
) -> Met:
    """Return what this host has of it once every host has said that it has the same.

    Rank 0's host has a wire to each of the others, they have one to it.

    Args:
        own: This host.
        hosts: How the servers are called, by index.
        master: The server of rank 0, whose host listens.
        address: Its address, and the port.
        tell: Called with a line when there is somebody to wait for.
        wait: Seconds that all hosts may take to come.
        ask: The port for questions of hosts that have another start port.

    Raises:
        LaunchError: Something differs (the message names both hosts), or a host has not come in time.
    """
    deadline = time.monotonic() + wait
    if own.server != master:
        return Guest(own, (master, hosts[master]), address, ask=ask, tell=tell).attend(deadline, wait)
    hall = _Hall(own, hosts, address)
    _allow(len(hosts))
    try:
        hall.open(address[1], ask)
        return hall.gather(deadline, wait, tell)
    finally:
        hall.close()


def _allow(connections: int) -> None:
    """Let this process have so many: the usual limit is 1024. The ranks are the keeper's, and keep theirs."""
    import resource  # noqa: PLC0415  (rank 0's host only)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _DESCRIPTORS
    if soft != resource.RLIM_INFINITY and wanted > soft:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Hall:
    """The host of rank 0 at the meeting: its doors, who has come, and who has not said yet who it is."""

    def __init__(self, own: Attendance, hosts: Sequence[str], address: tuple[str, int]) -> None:
        self.own, self.hosts, self.address = own, hosts, address
        self.missing = set(range(len(hosts))) - {own.server}
        self.here: dict[int, Wire] = {}
        self.run_dirs = {own.server: own.run_dir}
        self.strangers: dict[Wire, tuple[float, bool]] = {}
        self.doors: dict[socket.socket, bool] = {}
        self.refused = ""
        self.over = False

    def open(self, port: int, ask: int) -> None:
        """Listen where the ranks will meet, and where hosts ask that have another port."""
        try:
            self.doors[transport.door(self.address[0], port)] = False
        except OSError as error:
            raise LaunchError(
                f"port {port}, where the hosts meet, cannot be had: {error.strerror}",
                hint="say another with --start-port, the same on all hosts",
            ) from error
        try:
            self.doors[transport.door(self.address[0], ask)] = True
        except OSError:
            return  # Another job's meeting has it; hosts with another port then show as missing.

    def close(self) -> None:
        """Hang up on everybody who does not belong to the job, or on all if it does not come about."""
        for door in self.doors:
            door.close()
        for other in [*self.strangers, *(() if self.over else self.here.values())]:
            other.close()

    def gather(self, deadline: float, wait: float, tell: Callable[[str], None]) -> Met:
        """Hear all the others, then let all go; at the first difference refuse."""
        say_at = time.monotonic() + _PATIENCE
        while self.missing:
            now = time.monotonic()
            if now > deadline:
                if self.refused:
                    break
                raise absent(self.names(self.missing), wait)
            if now > say_at:
                say_at = float("inf")
                who = self.names(self.missing)
                tell(f"waiting for {who} to start its part (port {self.address[1]} here)")
            self.look()
            if self.refused:
                deadline = min(deadline, time.monotonic() + _LINGER)
        if self.refused:
            raise LaunchError(self.refused, hint=HINT)
        self.over = True
        for other in self.here.values():
            other.send({"kind": KIND, "word": "go", "run_dirs": self.run_dirs})
        return Met(self.here, self.run_dirs)

    def names(self, servers: Iterable[int]) -> str:
        """How some servers are called, in a few words."""
        return some([self.hosts[server] for server in sorted(servers)])

    def look(self) -> None:
        """Wait a moment for somebody to come, to say something or to leave, and see to it."""
        poller = select.poll()
        for door in self.doors:
            poller.register(door.fileno(), select.POLLIN)
        for guest in (*self.strangers, *self.here.values()):
            poller.register(guest.fileno(), select.POLLIN)
        poller.poll(_PAUSE * 1000)
        for server, other in list(self.here.items()):
            if any(other.words()) or other.closed:  # It was to wait for our word.
                other.close()
                del self.here[server]
                self.missing.add(server)
        for stranger, (since, asks) in list(self.strangers.items()):
            words = list(stranger.words())
            if words or stranger.closed or time.monotonic() - since > _STRANGER:
                del self.strangers[stranger]
                if not words or not self.receive(stranger, words[0], asks=asks):
                    stranger.close()
        for door, asks in self.doors.items():
            while (new := transport.accept(door)) is not None:
                self.strangers[new] = (time.monotonic(), asks)

    def receive(self, stranger: Wire, word: dict[str, Any], *, asks: bool) -> bool:
        """Hear who somebody is; false for one that does not stay."""
        other = parse(word)
        if other is None or not 0 <= other.server < len(self.hosts):
            return False
        if asks and differing(self.own, other) != [PORT]:
            stranger.send({"kind": KIND, "word": "another job"})
            return False
        if not self.refused:
            known = self.here.get(other.server)
            self.refused = difference(other if known else self.own, other)
            for waiting in self.here.values() if self.refused else ():
                waiting.send({"kind": KIND, "word": "refused", "why": self.refused})
        self.missing.discard(other.server)
        if self.refused:
            stranger.send({"kind": KIND, "word": "refused", "why": self.refused})
            return False
        stranger.send({"kind": KIND, "word": "welcome", "missing": self.names(self.missing)})
        self.here[other.server] = stranger
        self.run_dirs[other.server] = other.run_dir
        return True
