"""Simulated hosts of a job: one process that holds the connections of all agents to a real controller.

Each host has a session of its own and sends what an agent sends. The hosts share the cores of this machine
with the controller, so most of them read only the type of a message; every 512th host reads whole messages.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import socket
import struct
import time
import zlib
from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.launch.model.rank_messages import Ended, Join, RankExit
from hccl_tools.launch.protocol.messages import LARGEST_FROM_CONTROLLER, Heard, Ready
from hccl_tools.launch.protocol.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.protocol.messages import Message

_TYPE = re.compile(rb'"type": "(\w+)"')
#: In bytes: the length and the MAC of a frame, and a beginning that has its type also if it is packed.
_LENGTH, _BEFORE, _HEAD = 4, 4 + 32, 1024
_READ = 1 << 18
_SAMPLED = 512
#: As in RendezvousClient.
_RETRY_SECONDS = 0.2
#: As in AgentLink: for the proof of the controller, until a host connects again.
_ANSWER_SECONDS = 5.0
_SO_ATTACH_FILTER = 26
#: As long as the path of a real one, and like a real one with random digits.
_RUN_DIR = "/home/user/work/log/20261124-030000-{}"


class Address(NamedTuple):
    """Where the controller listens, its key, and what the hosts of a job started by hand have in common.

    ``values`` is ``None`` if an engine has started the agents.
    """

    port: int
    key: bytes
    values: Mapping[str, str] | None = None


class Host:
    """The agent of one host.

    Attributes:
        sent, received: The bytes of this host, with lengths and MACs but without TCP's headers.
        tries: The number of times that this host has connected.
    """

    def __init__(self, number: int, address: Address, ranks: Sequence[int]) -> None:
        self.number, self.address, self.ranks = number, address, ranks
        self.sent, self.received, self.tries = 0, 0, 0
        self.is_sampled = number % _SAMPLED == 1
        self.connect()

    def connect(self) -> None:
        """Begin to connect; the kernel does the rest."""
        self.tries += 1
        self.session = Session(self.address.key, listens=False, largest=LARGEST_FROM_CONTROLLER)
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", self.address.port))
        self._head, self._left = bytearray(), 0

    def send(self, *messages: Message) -> None:
        """Send messages, and what the session has to send."""
        for message in messages:
            self.session.send(message)
        if self.session.outgoing:
            data = bytes(self.session.outgoing)
            self.socket.sendall(data)  # A few KB, which the kernel accepts.
            self.sent += len(data)
            self.session.outgoing.clear()

    def join(self) -> list[Message]:
        """Return the messages with which this host joins."""
        join = Join(
            self.number, os.getpid(), ("node", 1), f"node{self.number}", _RUN_DIR.format(os.urandom(16).hex())
        )
        values = self.address.values
        return [join] if values is None else [join, Ready(values=values)]

    def ended(self, status: int) -> Ended:
        """Return the message that all ranks of this host have exited."""
        if self.address.values is not None:
            return Ended()
        return Ended(tuple(RankExit(rank, 1000, status, 1.0, bool(status), "log") for rank in self.ranks))

    def read(self) -> list[str]:
        """Return the types of the messages that have arrived.

        Raises:
            OSError: The connection has ended.
        """
        found: list[str] = []
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            return found
        if not data:
            raise ConnectionResetError
        self.received += len(data)
        while data:
            taken, kind = self._take(data)
            data = data[taken:]
            found += [kind] if kind else []
        return found

    def _take(self, data: bytes) -> tuple[int, str]:
        """Take one frame or a part of it; return the number of bytes, and the type of a whole message."""
        if not self._left:
            need = _LENGTH - len(self._head)
            self._head += data[:need]
            if len(self._head) == _LENGTH:
                self._left = int.from_bytes(self._head, "big")
            return min(need, len(data)), ""
        part = data[: self._left]
        self._left -= len(part)
        if self.is_sampled or not self.session.is_proved or len(self._head) < _HEAD:
            self._head += part
        if self._left:
            return len(part), ""
        frame, self._head = bytes(self._head), bytearray()
        if not self.session.is_proved:
            self.session.receive(frame)
            self.send(*(self.join() if self.session.is_proved else ()))
            return len(part), ""
        if self.is_sampled:
            assert len(self.session.receive(frame)) == 1, self.session.problem
        content = frame[_BEFORE:_HEAD]
        if not content.startswith(b"{"):
            content = zlib.decompressobj().decompress(content, _BEFORE)
        kind = _TYPE.search(content)
        assert kind, content
        return len(part), kind[1].decode()

    def fall_silent(self) -> None:
        """Drop every packet that arrives, as a host without power does; nothing is sent either."""
        code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: accept 0 bytes
        program = struct.pack("HL", 1, ctypes.addressof(code))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


class Crowd:
    """All simulated hosts.

    Attributes:
        counts: The number of messages that have arrived, by type.
        last: When the last message of a type arrived (``time.monotonic``).
        dropped: The number of connections that the controller, or the kernel, has closed before the end.
    """

    def __init__(self) -> None:
        self.hosts: dict[int, Host] = {}
        self.counts: Counter[str] = Counter()
        self.last: dict[str, float] = {}
        self.dropped, self.is_ending = 0, False
        self._retry: deque[tuple[float, Host]] = deque()
        self._unproved: deque[tuple[float, Host, int]] = deque()
        self._poll = select.epoll()

    def add(self, host: Host) -> None:
        """Serve a host that has begun to connect."""
        self.hosts[host.socket.fileno()] = host
        self._unproved.append((time.monotonic() + _ANSWER_SECONDS, host, host.tries))
        self._poll.register(host.socket.fileno(), select.EPOLLIN)

    def run(self, what: str, done: Callable[[], bool], seconds: float = 300.0) -> None:
        """Serve the hosts until ``done``.

        Raises:
            SystemExit: It took too long.
        """
        deadline = time.monotonic() + seconds
        while not done():
            now = time.monotonic()
            if now > deadline:
                raise SystemExit(f"{what}: not within {seconds:g} s; {dict(self.counts)}")
            self._reconnect(now)
            for descriptor, _ in self._poll.poll(0.02, 512):
                if descriptor in self.hosts:
                    self._serve(self.hosts[descriptor])

    def _reconnect(self, now: float) -> None:
        while self._unproved and self._unproved[0][0] <= now:
            _, host, tries = self._unproved.popleft()
            if host.tries == tries and not host.session.is_proved:
                self._drop(host)
        while self._retry and self._retry[0][0] <= now:
            host = self._retry.popleft()[1]
            host.connect()
            self.add(host)

    def _drop(self, host: Host) -> None:
        self.leave(host)
        self.dropped += 1
        self._retry.append((time.monotonic() + _RETRY_SECONDS, host))

    def _serve(self, host: Host) -> None:
        try:
            kinds = host.read()
        except OSError:
            if self.is_ending:
                self.leave(host)
            else:
                self._drop(host)
            return
        for kind in kinds:
            self.counts[kind] += 1
            self.last[kind] = time.monotonic()
            if kind == "end":
                host.send(Heard() if host.address.values is not None else host.ended(15))
            if kind in {"release", "heard"} or (kind == "end" and host.address.values is not None):
                self.leave(host)  # As an agent does once its ranks have ended.
                return

    def leave(self, host: Host) -> None:
        """Close the connection of a host."""
        del self.hosts[host.socket.fileno()]
        host.socket.close()

    def end(self) -> None:
        """Report from each host that its ranks have exited with 0."""
        for host in self.hosts.values():
            host.send(host.ended(0))

    def close(self) -> None:
        """Close all connections."""
        for host in list(self.hosts.values()):
            self.leave(host)
        self._poll.close()
