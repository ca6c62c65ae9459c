"""Strangers that connect to the port of a job: ``python -m tests.support.attacks KIND...``.

The process reads its target from stdin, a JSON object a line: ``address``, ``source`` (the own address),
``recorded`` (what an agent of another job has sent). It attacks in every kind, prints a line, and keeps its
connections until stdin ends.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_messages import Ended, Join
from hccl_tools.launch.protocol import session
from hccl_tools.launch.protocol.connection import endpoint
from hccl_tools.launch.protocol.messages import Ending, Kill, Message, Ready, Refused, to_bytes
from hccl_tools.launch.protocol.session import Session
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds to wait for an answer; what does not answer is attacked all the same.
_ANSWER_S = 2.0
_LINES = 100 << 20
_MANY = 2000
OTHER_KEY = b"o" * 32
#: What would join, end or kill a job if it were believed.
MESSAGES: tuple[Message, ...] = (
    Join(1, 1, ("", 0)),
    Ready(),
    Ending(Cause.lost("stranger", "host", "a stranger said so")),
    Ended(),
    Refused("a stranger said so"),
    Kill(),
)
_OLD_HELLO = b'{"kind":"hccl-tools launch","server":1,"host":"h","has":{}}\n'


class Target:
    """The address under attack, and the connections to it."""

    def __init__(self, address: tuple[str, int] | str, source: str = "", recorded: str = "") -> None:
        self.address, self.source = address, source
        self.recorded = bytes.fromhex(recorded)
        self.is_over = threading.Event()
        self._open: list[socket.socket] = []

    def connect(self) -> socket.socket:
        if isinstance(self.address, str):
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(_ANSWER_S)
            made.connect("\0" + self.address)
        else:
            own = (self.source, 0) if self.source else None
            host, port = self.address
            made = socket.create_connection((host, port), _ANSWER_S, own)
        self._open.append(made)
        return made

    def send(self, *parts: bytes) -> None:
        """Send bytes over a connection of their own."""
        with suppress(OSError):
            connection = self.connect()
            for part in parts:
                connection.sendall(part)

    def answer(self, *frames: bytes) -> None:
        """Send frames after the first frame of the listener."""
        with suppress(OSError):
            connection = self.connect()
            connection.recv(1 << 16)
            connection.sendall(b"".join(map(framed, frames)))

    def background(self, act: Callable[[], None]) -> None:
        """Repeat something until the end of the attack."""

        def repeat() -> None:
            while not self.is_over.is_set():
                with suppress(OSError):
                    act()

        threading.Thread(target=repeat, daemon=True).start()

    def close(self) -> None:
        self.is_over.set()
        for connection in self._open:
            connection.close()


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def speak(target: Target, key: bytes, version: str = "") -> None:
    """Do everything as an agent does, with a key and a version of one's own; then send messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "__version__", version or __version__)
        with suppress(OSError):
            connection = target.connect()
            spoken = Session(key, listens=False, dialled=endpoint(connection.getpeername()))
            while not spoken.is_proved and (data := connection.recv(1 << 16)):
                spoken.receive(data)
                connection.sendall(bytes(spoken.outgoing))
                spoken.outgoing.clear()
                if spoken.problem is not None:
                    break
            for message in MESSAGES:
                spoken.send(message)
                mac = b"" if spoken.is_proved else os.urandom(32)
                connection.sendall(bytes(spoken.outgoing) or framed(mac + to_bytes(message)))
                spoken.outgoing.clear()


def _half_closed(target: Target) -> None:
    for _ in range(20):
        target.connect().shutdown(socket.SHUT_WR)


def _half_open(target: Target) -> None:
    for part in (b"", b"\0", b"\0\0\0", framed(b"x" * 4000)[:-1]):
        for _ in range(5):
            target.connect().sendall(part)


def _resets(target: Target) -> None:
    for _ in range(50):
        connection = target.connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def _slow(target: Target) -> None:
    slow = [target.connect() for _ in range(50)]
    frame = framed(b" " * 4000)

    def drip(sent: list[int] = [0]) -> None:  # noqa: B006
        for connection in slow:
            with suppress(OSError):
                connection.sendall(frame[sent[0] % len(frame) :][:1])
        sent[0] += 1
        time.sleep(0.02)

    target.background(drip)


def _many(target: Target) -> None:
    for _ in range(_MANY):
        target.connect()


def _again_and_again(target: Target) -> None:
    def come_and_go() -> None:
        try:
            target.connect().close()
        finally:
            time.sleep(0.002)

    target.background(come_and_go)


def _lines(target: Target) -> None:
    left, chunk = _LINES, b"{}\n" * (1 << 18)
    while left > 0:
        connection = target.connect()
        with suppress(OSError):
            while left > 0:
                left -= connection.send(chunk)


def _wrong_types(target: Target) -> None:
    nonce = "00" * 32
    about: dict[str, Any] = {"version": "0.1.0", "nonce": nonce, "keyed": True}
    answers: list[Any] = [
        *(None, 5, "about", [], [[1, 2], ["a", 3]], {}, {"about": None}, {"about": []}, {"refused": {}}),
        *({"about": about, "proof": proof} for proof in (None, 5, "", "zz", [1], "00" * 32, "ü")),
        *({"about": {**about, "nonce": wrong}, "proof": nonce} for wrong in (None, 7, "", "00", "ü" * 64)),
        *({"about": {**about, "version": text}, "proof": nonce} for text in (None, 7, "\x1b[2J", "9" * 99)),
        *({"about": {**about, "keyed": flag}, "proof": nonce} for flag in (None, 1, "true")),
        {"about": {**about, "more": {"deep": [1e999, "\ud800"]}}, "proof": nonce},
    ]
    for answer in answers:
        target.answer(json.dumps(answer).encode())


def _wrong_texts(target: Target) -> None:
    for content in (b"", b"\xff\xfe", b"[" * 4000, b'{"a":' * 800, b"1" * 4000, b"NaN", b"\0" * 4000):
        target.answer(content)


def _mirrored(target: Target) -> None:
    connection = target.connect()
    connection.sendall(connection.recv(1 << 16))


#: Every kind of stranger.
KINDS: dict[str, Callable[[Target], None]] = {
    "garbage": lambda target: target.send(os.urandom(1 << 20)),
    "zeros": lambda target: target.send(bytes(1 << 20)),
    "web browser": lambda target: target.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    "TLS": lambda target: target.send(bytes.fromhex("16030100c8010000c40303") + os.urandom(200)),
    "half-open": _half_open,
    "half-closed": _half_closed,
    "resets": _resets,
    "slow": _slow,
    "2,000 connections": _many,
    "again and again": _again_and_again,
    "100 MB of lines": _lines,
    "4 GB announced": lambda target: target.send(b"\xff\xff\xff\xff", os.urandom(1 << 20)),
    "wrong texts": _wrong_texts,
    "wrong types": _wrong_types,
    "old protocol": lambda target: target.send(_OLD_HELLO, b'{"kind":"ending","exit_code":0}\n'),
    "no handshake": lambda target: target.answer(*map(to_bytes, MESSAGES)),
    "no handshake, with a MAC": lambda target: target.answer(*(bytes(32) + to_bytes(m) for m in MESSAGES)),
    "own challenge sent back": _mirrored,
    "replayed hello": lambda target: target.send(
        target.recorded[: 4 + int.from_bytes(target.recorded[:4], "big")]
    ),
    "replayed messages": lambda target: target.send(target.recorded),
    "wrong key": lambda target: speak(target, OTHER_KEY),
    "no key": lambda target: speak(target, b""),
    "wrong version": lambda target: speak(target, OTHER_KEY, "9.9.9"),
    "wrong version without a key": lambda target: speak(target, b"", "9.9.9"),
}
#: The kinds that do what a host of a job without a key does: such a job cannot tell them from its hosts.
LIKE_A_HOST = ("wrong key", "no key", "wrong version", "wrong version without a key")


def main() -> None:
    """Attack each target that stdin names, until stdin ends."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    targets = []
    for line in sys.stdin:
        targets.append(Target(**json.loads(line)))
        for kind in sys.argv[1:]:
            with suppress(OSError):  # Nobody listens, or the listener has hung up.
                KINDS[kind](targets[-1])
        print("in place", flush=True)
    for target in targets:
        target.close()


if __name__ == "__main__":
    main()
