"""A network switch that loses, delays and drops frames: ``python switch.py ADDRESS=INTERFACE...``.

It forwards the frames between the interfaces of its network namespace itself, as the kernel of many a
machine has no netem, and no other way to delay a packet. It starts with no fault. Each line on its standard
input is a JSON list of faults, which replaces the list before, or ``null``, which leaves it. When the faults
are in force, it prints how many frames have been lost so far, by the protocol of their IP packet (6 is TCP).
"""

from __future__ import annotations

import heapq
import json
import os
import random
import select
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_EVERY_PROTOCOL = 0x0003  # ETH_P_ALL
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_LARGEST_FRAME = 65600
_BUFFER_BYTES = 8 << 20
#: Frames of one port in a row, so that no port waits long for its turn.
_AT_ONCE = 64
#: ``sockaddr_ll.sll_pkttype`` of a frame that this namespace sends.
_OUTGOING = 4


@dataclass(frozen=True)
class Fault:
    """What happens to the frames from one host to another.

    ``source`` and ``target`` are addresses of hosts, "" for any. Of the frames the share ``loss`` (0 to 1) is
    lost, and the others take ``delay`` seconds more. With a ``period`` in seconds, the fault is in force in
    every other period, first in the one that begins when the fault does.
    """

    source: str = ""
    target: str = ""
    loss: float = 0.0
    delay: float = 0.0
    period: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def applies(self, source: str, target: str) -> bool:
        """Whether it is in force between two hosts."""
        if self.source not in ("", source) or self.target not in ("", target):
            return False
        return not self.period or int((time.monotonic() - self.began) / self.period) % 2 == 0


class Switch:
    """The ports by the addresses of their hosts, and the faults between them."""

    def __init__(self, interfaces: dict[str, str]) -> None:
        self._ports = {address: _open(name) for address, name in interfaces.items()}
        self._addresses = {port.fileno(): address for address, port in self._ports.items()}
        #: Link-layer address: the host that sends from it.
        self._learned: dict[bytes, str] = {}
        self._faults: list[Fault] = []
        self._delayed: list[tuple[float, int, str, bytes]] = []
        self._count = 0
        self._lost: Counter[int] = Counter()
        self._random = random.Random(1)  # noqa: S311  (repeatable, not secret)

    def run(self) -> None:
        """Forward until the standard input ends."""
        poll = select.epoll()
        for descriptor in (0, *self._addresses):
            poll.register(descriptor, select.EPOLLIN)
        while True:
            wait = max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else -1
            for descriptor, _ in poll.poll(wait):
                if descriptor:
                    self._read(self._addresses[descriptor])
                elif not self._obey():
                    return
            while self._delayed and self._delayed[0][0] <= time.monotonic():
                _, _, target, frame = heapq.heappop(self._delayed)
                self._send(target, frame)

    def _obey(self) -> bool:
        lines = os.read(0, 1 << 16).decode().splitlines()
        for line in lines:
            described: list[dict[str, Any]] | None = json.loads(line)
            if described is not None:
                self._faults = [Fault(**one) for one in described]
            print(json.dumps(self._lost), flush=True)
        return bool(lines)

    def _read(self, source: str) -> None:
        for _ in range(_AT_ONCE):
            try:
                frame, (_, _, kind, *_) = self._ports[source].recvfrom(_LARGEST_FRAME)
            except OSError:  # None left, or the interface is down.
                return
            if kind != _OUTGOING:
                self._learned[frame[6:12]] = source
                known = self._learned.get(frame[:6])
                for target in self._ports if known is None else (known,):
                    if target != source:
                        self._forward(source, target, frame)

    def _forward(self, source: str, target: str, frame: bytes) -> None:
        delay = 0.0
        for fault in self._faults:
            if fault.applies(source, target):
                if self._random.random() < fault.loss:
                    self._lost[_protocol(frame)] += 1
                    return
                delay += fault.delay
        if delay:
            self._count += 1
            heapq.heappush(self._delayed, (time.monotonic() + delay, self._count, target, frame))
        else:
            self._send(target, frame)

    def _send(self, target: str, frame: bytes) -> None:
        try:
            self._ports[target].send(frame)
        except OSError:  # The cable of that host is out, or its queue is full: the frame is lost.
            return


def _protocol(frame: bytes) -> int:
    """Return the protocol of the IP packet in a frame, 0 for another packet."""
    kind = frame[12:14]
    return frame[23] if kind == b"\x08\x00" else frame[20] if kind == b"\x86\xdd" else 0


def _open(interface: str) -> socket.socket:
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for option in (_SO_RCVBUFFORCE, _SO_SNDBUFFORCE):
        port.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    port.bind((interface, _EVERY_PROTOCOL))
    port.setblocking(False)
    return port


def main() -> None:
    """Be a switch."""
    switch = Switch(dict(word.rsplit("=", 1) for word in sys.argv[1:]))
    print("ready", flush=True)
    switch.run()


if __name__ == "__main__":
    main()
