"""Rendezvous client: retry until rank 0's host accepts or refuses this host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import transport
from hccl_tools.launch.cluster.membership import HINT, PROTOCOL, TIMING, Membership, missing_hosts_error
from hccl_tools.launch.processes.reactor import wait_readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.cluster.membership import HostManifest
    from hccl_tools.launch.cluster.transport import Connection


class RendezvousClient:
    """A host other than rank 0's: it sends its manifest and waits for the verdict."""

    def __init__(
        self,
        own: HostManifest,
        master: tuple[int, str],
        address: tuple[str, int],
        *,
        discovery_port: int,
        notify: Callable[[str], None],
    ) -> None:
        self.own, self.address, self.notify = own, address, notify
        self.server, self.master = master
        self.discovery = (address[0], discovery_port)
        self.notify_at = time.monotonic() + TIMING.notice
        self.discover_at = time.monotonic() + TIMING.discovery
        self.run_dirs: dict[int, str] = {}

    def join(self, deadline: float, wait: float) -> Membership:
        """Retry until this host is admitted or refused, or the deadline has passed."""
        where = f"{self.master} (port {self.address[1]})"
        while time.monotonic() < deadline:
            if connection := self.connect_once(self.address, deadline):
                return Membership({self.server: connection}, self.run_dirs)
            if time.monotonic() > self.notify_at:
                self.notify_once(f"waiting for {where} to start its part")
            if time.monotonic() > self.discover_at:
                self.connect_once(self.discovery, min(deadline, time.monotonic() + TIMING.connect))
                self.discover_at = time.monotonic() + TIMING.discovery_retry
            time.sleep(TIMING.retry)
        raise missing_hosts_error([where], wait)

    def notify_once(self, text: str) -> None:
        """Report the host for which this host waits, and do not report it again."""
        self.notify_at = float("inf")
        self.notify(text)

    def connect_once(self, address: tuple[str, int], deadline: float) -> Connection | None:
        """Connect once; return the connection, ``None`` if it does not lead to the rendezvous."""
        connection = transport.connect(address, TIMING.connect)
        if connection is None:
            return None
        connection.send(self.own.to_message())
        try:
            is_admitted = self.wait_for_verdict(connection, deadline)
        except BaseException:
            connection.close()
            raise
        if not is_admitted:
            connection.close()
        return connection if is_admitted else None

    def wait_for_verdict(self, connection: Connection, deadline: float) -> bool:
        """Wait for the verdict; return false if the peer disconnects or is not the rendezvous.

        Raises:
            LaunchError: This host is refused.
        """
        answer_by = time.monotonic() + TIMING.answer
        missing = ""
        while not connection.closed and time.monotonic() < min(deadline, answer_by):
            wait_readable(TIMING.retry, connection)
            for message in connection.messages():
                kind = message.get("type") if message.get("kind") == PROTOCOL else None
                if kind == "refused":
                    raise LaunchError(str(message.get("why")), hint=HINT)
                if kind == "go":
                    self.run_dirs = {int(server): path for server, path in message["run_dirs"].items()}
                    return True
                if kind != "welcome":
                    return False  # Another job's rendezvous, or another program.
                answer_by, missing = float("inf"), str(message.get("missing", ""))
            if missing and time.monotonic() > self.notify_at:
                self.notify_once(
                    f"{self.master} waits for {missing} to start its part (port {self.address[1]})"
                )
        return False
