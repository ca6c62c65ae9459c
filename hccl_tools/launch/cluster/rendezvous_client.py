"""Rendezvous client: retry until rank 0's host accepts or refuses this host."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.credentials import UnprovedAnswers
from hccl_tools.launch.cluster.membership import (
    ANOTHER_TABLE,
    TIMING,
    Membership,
    missing_hosts_error,
    refusal,
    waiting,
    with_another_table,
)
from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.protocol.connection import connect, proved
from hccl_tools.launch.protocol.messages import (
    LARGEST_FROM_CONTROLLER,
    Leave,
    Ready,
    Refused,
    Start,
    Waiting,
)
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes.reactor import wait_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.job_hosts import JobHosts
    from hccl_tools.launch.cluster.membership import HostManifest
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.messages import Message


class RendezvousClient:
    """A host other than rank 0's: it sends its manifest and waits for the verdict."""

    def __init__(
        self,
        own: HostManifest,
        hosts: JobHosts,
        credentials: Credentials,
        discovery_port: int,
        notify: Callable[[str], None],
        *,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.own, self.address, self.notify, self.look = own, hosts.address, notify, look
        #: Whether the last answer was that the tables differ.
        self.differs = False
        self.server, self.master = hosts.master, hosts.names[hosts.master]
        self.discovery = (hosts.address[0], discovery_port)
        self.notify_at = time.monotonic() + TIMING.notice
        self.discover_at = time.monotonic() + TIMING.discovery
        self.credentials = credentials
        self.run_dirs: dict[int, str] = {}
        self.answers = UnprovedAnswers(hosts.address[0])
        #: The lines of rank 0's host that the user has seen.
        self.shown: set[str] = set()

    def join(self, wait: float) -> Membership:
        """Retry until this host is admitted or refused, or ``wait`` seconds have passed."""
        deadline = time.monotonic() + wait
        where = f"{self.master} (port {self.address[1]})"
        is_first = True
        while time.monotonic() < deadline:
            if connection := self.connect_once(self.address, deadline):
                return Membership({self.server: connection}, self.run_dirs)
            if time.monotonic() > self.notify_at:
                heard = self.heard()
                left, also = wait if is_first else deadline - time.monotonic(), f"{heard and '; '}{heard}"
                text = f"{where} to start its part"
                self.notify(waiting(text, self.own, left, is_first=is_first, also=also))
                self.notify_at, is_first = time.monotonic() + TIMING.again, False
            self.discover(deadline)
            self.pause(TIMING.table_retry if self.differs else TIMING.retry)
        raise missing_hosts_error([where], self.own, wait, self.heard())

    def pause(self, seconds: float) -> None:
        """Wait before the next attempt, and look whether there is another table."""
        if self.look:
            self.look()
        time.sleep(seconds)

    def heard(self) -> str:
        """Return what was heard in place of an admission, "" if nothing was."""
        table = with_another_table([self.master] if self.differs else [])
        return "; ".join(filter(None, (table, self.answers.summary())))

    def refuse(self, why: str) -> None:
        """Tell rank 0's host that this host does not start its part, if it listens within a few seconds."""
        deadline = time.monotonic() + TIMING.linger
        while (left := deadline - time.monotonic()) > 0:
            connection = self.connect(self.address)
            is_proved = connection is not None and proved(connection, left) is not None
            if connection is not None and is_proved:
                connection.send(Join(self.own.server, os.getpid(), ("", 0)))
                connection.send(Refused(why, self.own.server))
                while not connection.closed and (left := deadline - time.monotonic()) > 0:
                    wait_readable(left, connection)
                    connection.messages()
            if connection is not None:
                connection.close()
            if is_proved:
                return
            time.sleep(TIMING.retry)

    def discover(self, deadline: float) -> None:
        """Query the discovery port from time to time: rank 0's host may have another start port, or none."""
        if time.monotonic() > self.discover_at:
            self.discover_at = float("inf")
            self.connect_once(self.discovery, min(deadline, time.monotonic() + TIMING.connect))
            self.discover_at = time.monotonic() + TIMING.discovery_retry

    def notify_once(self, text: str) -> None:
        """Report the host for which this host waits, and do not report it again."""
        self.notify_at = float("inf")
        self.notify(text)

    def connect_once(self, address: tuple[str, int], deadline: float) -> Connection | None:
        """Connect once; return the connection, ``None`` if it does not lead to the rendezvous."""
        connection = self.connect(address)
        if connection is None:
            return None
        try:
            early = self.wait_for_proof(connection, min(deadline, time.monotonic() + TIMING.answer))
            if early is None:
                if address != self.discovery:
                    self.credentials.check(connection, self.master, awaits_table=self.look is not None)
                    if line := self.answers.note(connection, address[1]):
                        self.notify(line)
                connection.close()
                return None
            connection.send(Join(self.own.server, os.getpid(), ("", 0), run_dir=self.own.run_dir))
            connection.send(Ready(values=self.own.values))
            is_admitted = self.wait_for_verdict(connection, early, deadline)
        except BaseException:
            connection.close()
            raise
        if not is_admitted:
            connection.close()
        return connection if is_admitted else None

    def wait_for_proof(self, connection: Connection, deadline: float) -> list[Message] | None:
        """Wait for the proof of the other side; a program that has the port may never answer."""
        early = None
        while early is None and not connection.closed and time.monotonic() < deadline:
            if self.look:
                self.look()
            early = proved(connection, TIMING.poll)
            self.discover(deadline)
        return early

    def connect(self, address: tuple[str, int]) -> Connection | None:
        """Connect, without a proof yet; return ``None`` on failure."""
        return connect(
            address,
            self.credentials.secret,
            silence=self.credentials.silence,
            seconds=TIMING.connect,
            largest=LARGEST_FROM_CONTROLLER,
        )

    def wait_for_verdict(self, connection: Connection, early: list[Message], deadline: float) -> bool:
        """Wait for the verdict; return false if the peer disconnects or is not the rendezvous.

        Once rank 0's host has admitted this host, it decides how long the job waits for the others, and names
        that time: what passes its bytes on may stop.

        Raises:
            LaunchError: This host is refused.
        """
        answer_by = min(deadline, time.monotonic() + TIMING.answer)
        missing = ""
        while not connection.closed and time.monotonic() < answer_by:
            if self.look:
                self.look()
            if not early:
                wait_readable(TIMING.retry, connection)
            received, early = [*early, *connection.messages()], []
            for message in received:
                if isinstance(message, Refused):
                    raise refusal(message, self.master if self.server == message.number else "that host")
                if isinstance(message, Start):
                    self.run_dirs = dict(message.run_dirs)
                    return True
                self.differs = isinstance(message, Leave) and message.why == ANOTHER_TABLE
                if not isinstance(message, Waiting):
                    return False  # Another job's rendezvous, or another table.
                answer_by = time.monotonic() + message.seconds + TIMING.answer
                missing = and_more(message.hosts, unlisted=message.more)
                self.show(message.notes)
            if missing and time.monotonic() > self.notify_at:
                self.notify_once(
                    f"{self.master} waits for {missing} to start its part (port {self.address[1]})"
                )
        if not connection.closed:
            self.answers.note_silence(connection.address, self.address[1])
        return False

    def show(self, lines: Sequence[str]) -> None:
        """Show the lines of rank 0's host that the user has not seen."""
        for line in lines:
            if line not in self.shown:
                self.shown.add(line)
                self.notify(line)
