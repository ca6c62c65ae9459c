"""The rendezvous of three hosts in threads, over real connections on this machine."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.host import host_ports
from hccl_tools.launch.cluster import consistency, membership, rendezvous_client, rendezvous_server, rivals
from hccl_tools.launch.cluster.credentials import Credentials
from hccl_tools.launch.cluster.job_hosts import JobHosts
from hccl_tools.launch.cluster.membership import HostManifest
from hccl_tools.launch.planning import ports
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
SAME = {"fingerprint of the rank table": "1f2e", "--start": "torch"}
MASTER = "127.0.0.1"
NO_KEY = Credentials("this host", b"", 12.0, frozenset({MASTER}))


def set_times(monkeypatch: pytest.MonkeyPatch, timing: membership.Timing) -> None:
    for module in (rendezvous_client, rendezvous_server, rivals):
        monkeypatch.setattr(module, "TIMING", timing)


class Meeting:
    """The rendezvous of hosts, each in a thread; keeps the refusal and the lines of each."""

    def __init__(
        self,
        *,
        port: int | None = None,
        discovery: int | None = None,
        wait: float = LONG,
        credentials: Credentials = NO_KEY,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.credentials, self.look = credentials, look
        self.port, self.discovery, self.wait = port or ports.free_port(), discovery or ports.free_port(), wait
        self.refused: dict[str, str] = {}
        self.hints: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.connections: dict[str, list[int]] = {}
        self.run_dirs: dict[str, dict[int, str]] = {}
        self._threads: list[threading.Thread] = []
        self._open = ExitStack()

    def invite(
        self, own: HostManifest, *, port: int | None = None, credentials: Credentials | None = None
    ) -> None:
        thread = threading.Thread(
            target=self._join, args=(own, port or self.port, credentials or self.credentials)
        )
        thread.start()
        self._threads.append(thread)

    def _join(self, own: HostManifest, port: int, credentials: Credentials) -> None:
        def notify(line: str) -> None:
            self.told[own.host] = f"{self.told.get(own.host, '')}{line}\n"

        try:
            met = consistency.join(
                own,
                JobHosts(own.server, 0, HOSTS, (MASTER, port), frozenset({MASTER})),
                credentials=credentials,
                notify=notify,
                wait=self.wait,
                look=self.look,
                discovery_port=self.discovery,
            )
        except LaunchError as error:
            self.refused[own.host] = error.message
            self.hints[own.host] = error.hint or ""
            return
        self.connections[own.host] = sorted(met.connections)
        self.run_dirs[own.host] = met.run_dirs
        for made in met.connections.values():
            self._open.callback(made.close)

    def end(self) -> dict[str, str]:
        """Wait for all; the port is free for the ranks while the hosts keep their connections."""
        for thread in self._threads:
            thread.join()
        assert host_ports.is_free(self.port)
        self._open.close()
        return self.refused

    def tells(self, host: str, text: str) -> None:
        """Wait until a host has told its user something with this text."""
        assert eventually(lambda: text in self.told.get(host, "")), self.told


def everybody() -> list[HostManifest]:
    return [HostManifest(server, host, dict(SAME)) for server, host in enumerate(HOSTS)]


class Clock:
    """A clock that a test can move on."""

    ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
