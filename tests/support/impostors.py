"""Programs that listen where rank 0's host of a job should: they answer, and have not the job's key."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.protocol import session
from hccl_tools.launch.protocol.session import Session
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER_KEY = b"o" * 32


def framed(content: Any) -> bytes:
    data = json.dumps(content).encode()
    return len(data).to_bytes(4, "big") + data


def challenge(**changes: Any) -> bytes:
    """Return a listener's first frame."""
    about = {"protocol": session.PROTOCOL, "version": __version__, "nonce": os.urandom(32).hex()}
    return framed({**about, "keyed": True, **changes})


def _send(*frames: bytes) -> Callable[[socket.socket], None]:
    return lambda guest: guest.sendall(b"".join(frames))


def _answer(answer: Callable[[dict[str, Any]], Any], **changes: Any) -> Callable[[socket.socket], None]:
    """Send a challenge, and what follows from the other side's answer."""

    def serve(guest: socket.socket) -> None:
        guest.sendall(challenge(**changes))
        data = guest.recv(1 << 16)
        guest.sendall(framed(answer(json.loads(data[4:]))))

    return serve


def _with_another_key(guest: socket.socket) -> None:
    spoken = Session(OTHER_KEY, listens=True)
    while spoken.problem is None:
        guest.sendall(bytes(spoken.outgoing))
        spoken.outgoing.clear()
        if not (data := guest.recv(1 << 16)):
            return
        spoken.receive(data)
    guest.sendall(bytes(spoken.outgoing))


def _silent(guest: socket.socket) -> None:
    while guest.recv(1 << 16):  # Until the other side gives up.
        pass


def _drip(guest: socket.socket) -> None:
    """Send a frame byte by byte, one whenever the other side has a chance to take it."""
    pause = threading.Event()
    guest.settimeout(None)
    for byte in framed({"keyed": " " * 4000}):
        guest.sendall(bytes([byte]))
        pause.wait(0.01)


#: Every kind of impostor, with what the host says that it has heard.
KINDS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "no key": (_send(challenge(keyed=False)), "says that it has no job key (not proved)"),
    "other protocol": (
        _send(challenge(protocol="hccl-tools job 2", version="9.9.9")),
        "says that it has hccl-tools 9.9.9, with another protocol (not proved)",
    ),
    "other version": (
        _answer(lambda _: {"proof": "00" * 32}, version="9.9.9"),
        "answers with a wrong proof of the job key (not proved)",
    ),
    "refused: key": (_send(framed({"refused": "key"})), "says that it has another job key (not proved)"),
    "refused: no key": (
        _send(framed({"refused": "keyless here"})),
        "says that it has no job key (not proved)",
    ),
    "refused: address": (
        _send(framed({"refused": "address"})),
        "says that it does not accept this host's address (not proved)",
    ),
    "refused: elsewhere": (
        _send(framed({"refused": "elsewhere"})),
        "says that the connection was for another address or port (not proved)",
    ),
    "refused after the challenge": (
        _answer(lambda _: {"refused": "key"}),
        "says that it has another job key (not proved)",
    ),
    "another key": (_with_another_key, "says that it has another job key (not proved)"),
    "wrong proof": (
        _answer(lambda _: {"proof": "00" * 32}),
        "answers with a wrong proof of the job key (not proved)",
    ),
    "proof sent back": (
        _answer(lambda answer: {"proof": answer["proof"]}),
        "answers with a wrong proof of the job key (not proved)",
    ),
    "garbage": (
        _send(b"SSH-2.0-OpenSSH_9.2\r\n" * 100),
        "does not speak the protocol of hccl-tools (not proved)",
    ),
    "unknown refusal": (
        _send(framed({"refused": ["key"]})),
        "does not speak the protocol of hccl-tools (not proved)",
    ),
    "close": (lambda _guest: None, "closes connections without an answer"),
    "silence": (_silent, "does not answer"),
    "drip": (_drip, "does not answer"),
}


class Impostor:
    """Listens at an address, and serves each connection in one way."""

    def __init__(self, address: tuple[str, int], serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._listening = socket.create_server(address)
        #: A semaphore that counts the connections whose service has ended.
        self.served = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                guest, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(guest,), daemon=True).start()

    def _serve_one(self, guest: socket.socket) -> None:
        with guest, suppress(OSError, ValueError):
            self._serve(guest)
            guest.shutdown(socket.SHUT_WR)
            while guest.recv(1 << 16):  # Closing at once would reset the connection before all is read.
                pass
        self.served.release()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def main() -> None:
    """Listen at an address and port with one kind of answer, until stdin ends; print each connection."""
    host, port, kind = sys.argv[1:]
    impostor = Impostor((host, int(port)), KINDS[kind][0])
    print("in place", flush=True)

    def count() -> None:
        while impostor.served.acquire():
            print("served", flush=True)

    threading.Thread(target=count, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
