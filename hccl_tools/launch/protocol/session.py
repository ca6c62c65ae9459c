"""One side of a connection between two launchers, without the socket: bytes in, messages out.

A frame is a length of 4 bytes (big-endian) and a content. The handshake has three frames:

1. listener: protocol, version, nonce, and whether the listener has a job key
2. connecting side: version, nonce, whether it has a job key, the address and port to which it has connected,
   the token of a connection for output, and a proof
3. listener: its proof, or the reason why it refuses

A proof is an HMAC-SHA-256 with the job key over both nonces and everything else in frames 1 and 2. What a
side learns before the other side's proof is a claim: it ends this session, and must have no other effect.
After the handshake the content of a frame is a MAC of 32 bytes and a message. The MAC has a key per
direction, derived from the job key and the handshake, and covers the number of the frame and the SHA-256 of
the message: a replayed, repeated, reordered or changed frame ends the session, as does a message that is not
its sender's turn (see ``states``). Messages are authenticated, not encrypted.

A session over a socket whose peer the kernel has identified needs no key; it begins with the messages.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from hccl_tools.codec import DecodeError, decode, parse
from hccl_tools.launch.protocol import messages, states
from hccl_tools.launch.protocol.messages import Outgoing, Payload, digests
from hccl_tools.records import NamedTuple, plain
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.records import Port

PROTOCOL = "hccl-tools job 1"
#: In bytes: a frame of the handshake.
_LARGEST_HANDSHAKE = 4096
_LENGTH, _MAC, _NONCE = 4, 32, 32
#: The version is shown before the peer is authenticated: it must be too short for a sentence.
_LONGEST_VERSION = 32
_LONGEST_TOKEN = 64
_INVALID = (DecodeError, ValueError, RecursionError)
#: What the other side knows about a refusal.
_MIRRORED = {
    "keyless here": "keyless there",
    "keyless there": "keyless here",
    "key": "key",
    "address": "address",
    "elsewhere": "elsewhere",
}


class Problem(NamedTuple):
    """Why a session has ended.

    Attributes:
        kind: ``protocol`` (invalid bytes), ``keyless here`` or ``keyless there`` (one side has no job key),
            ``key`` (the keys differ), ``proof`` (the listener has sent a wrong proof), ``address`` (the
            listener does not accept this address), ``elsewhere`` (the connecting side has connected to
            another address or port), ``user`` (another user of this host, who gets no answer), ``version``.
            All are claims unless the session is proved; only ``version`` is found after the proofs.
        version: The version of the other side; "" if it is unknown.
    """

    kind: str
    version: str = ""


# The frames of the handshake. The transcript has them as they were sent: another version may send more.


class _Challenge(NamedTuple):
    protocol: str
    version: str
    nonce: str
    keyed: bool

    def check(self) -> str:
        return _why_invalid(self.version, self.nonce)


class _About(NamedTuple):
    version: str
    nonce: str
    keyed: bool
    to: tuple[str, Port] | None = None
    output: str = ""

    def check(self) -> str:
        if len(self.output) > _LONGEST_TOKEN:
            return "output: this is too long for a token"
        return _why_invalid(self.version, self.nonce)


class _Answer(NamedTuple):
    about: _About
    proof: str


class _Proof(NamedTuple):
    proof: str


class _Refusal(NamedTuple):
    refused: str


def _why_invalid(version: str, nonce: str) -> str:
    is_version = version.isascii() and all(char.isalnum() or char in ".+-" for char in version)
    if not is_version or len(version) > _LONGEST_VERSION:
        return "version: this is not a version"
    return "" if len(bytes.fromhex(nonce)) == _NONCE else "nonce: it has another length"


class Session:
    """One side of a connection.

    Attributes:
        is_proved: Whether both sides have proved that they have the same key.
        outgoing: The bytes to send.
        output: The token of an agent, if this is its connection for the output of the ranks that are shown;
            see ``Join.output``. "" for a conversation.
        problem: Why the session has ended; ``None`` while it continues.
    """

    __slots__ = (
        "_dialled",
        "_inbox",
        "_is_here",
        "_key",
        "_largest",
        "_listens",
        "_peer",
        "_peer_version",
        "_receive_key",
        "_received",
        "_send_key",
        "_sent",
        "_transcript",
        "is_proved",
        "outgoing",
        "output",
        "problem",
    )

    def __init__(
        self,
        key: bytes | None,
        *,
        listens: bool,
        largest: int = messages.LARGEST,
        dialled: tuple[str, int] = ("", 0),
        output: str = "",
        is_here: Callable[[str, int], bool] = lambda _address, _port: True,
    ) -> None:
        """Begin a session.

        ``key`` is empty if the job has no key, ``None`` if the kernel identifies the peer. ``largest`` is the
        limit on a message from the peer, in bytes. ``dialled`` is the address and port to which a connecting
        side has connected; the listener's ``is_here`` tells whether they lead to it without a relay. The
        connecting side also sets ``output``.
        """
        self._dialled, self._is_here, self.output = dialled, is_here, output
        self._key, self._listens, self._largest = key, listens, largest
        self._inbox, self.outgoing = bytearray(), Outgoing()
        self._transcript, self._peer_version = b"", ""
        self._peer = states.Conversation(states.AGENT if listens else states.CONTROLLER)
        self._sent, self._received = 0, 0
        self._send_key, self._receive_key = b"", b""
        self.is_proved = key is None
        self.problem: Problem | None = None
        if key is not None and listens:
            challenge = plain(_Challenge(PROTOCOL, __version__, os.urandom(_NONCE).hex(), bool(key)))
            self._note(challenge)
            self._send_frame(_json(challenge))

    def send(self, message: Message) -> None:
        """Append a message to ``outgoing``; it is dropped once the session has ended."""
        self.send_payload(Payload.of(message))

    def send_payload(self, payload: Payload) -> None:
        """Append the content of a message; it is dropped once the session has ended."""
        if self.problem is not None or not self.is_proved:
            return
        mac = b"" if self._key is None else digests().mac(self._send_key, _numbered(self._sent, payload))
        self._sent += 1
        self._send_frame(payload.content, mac)

    def receive(self, data: bytes) -> list[Message]:
        """Return the messages that are complete with these bytes; an invalid byte ends the session."""
        if self.problem is not None:
            return []
        self._inbox += data
        found: list[Message] = []
        while self.problem is None and (content := self._next_frame()) is not None:
            try:
                if self.is_proved:
                    found.append(self._opened(content))
                else:
                    self._shake_hands(content)
            except _INVALID:  # noqa: PERF203
                self._end("protocol")
        return found

    def accept_up_to(self, largest: int) -> None:
        """Change the limit on a message from the peer, in bytes."""
        self._largest = largest

    def refuse(self, kind: str) -> None:
        """Tell the other side why it is refused, and end the session (listener, before the proof)."""
        self._send_frame(_json({"refused": kind}))
        self._end(kind)

    def _next_frame(self) -> bytes | None:
        if len(self._inbox) < _LENGTH:
            return None
        size = int.from_bytes(self._inbox[:_LENGTH], "big")
        if size > (self._largest + _MAC if self.is_proved else _LARGEST_HANDSHAKE):
            self._end("protocol")
            return None
        if len(self._inbox) < _LENGTH + size:
            return None
        content = bytes(self._inbox[_LENGTH : _LENGTH + size])
        del self._inbox[: _LENGTH + size]
        return content

    def _send_frame(self, content: bytes, mac: bytes = b"") -> None:
        size = len(mac) + len(content)
        self.outgoing.add(size.to_bytes(_LENGTH, "big") + mac, content)

    def _opened(self, content: bytes) -> Message:
        if self._key is not None:
            mac, content = content[:_MAC], content[_MAC:]
            expected = digests().mac(self._receive_key, _numbered(self._received, Payload(content)))
            if not digests().is_equal(expected, mac.hex()):
                raise ValueError(mac)
            self._received += 1
        message = messages.from_bytes(content, self._largest)
        self._peer.follow(message)
        return message

    def _shake_hands(self, content: bytes) -> None:
        frame = parse(content)
        if isinstance(frame, dict) and not self._listens and "refused" in frame:
            self._end(_MIRRORED.get(decode(_Refusal, frame, strict=False).refused, "protocol"))
        elif self._listens:
            answer = decode(_Answer, frame, strict=False)
            self._note(frame["about"])
            self._check_proof(answer.about, answer.proof)
        elif not self._transcript:
            self._answer(decode(_Challenge, frame, strict=False), frame)
        else:
            self._finish(decode(_Proof, frame, strict=False).proof)

    def _answer(self, challenge: _Challenge, frame: dict[str, Any]) -> None:
        """Answer the listener's first frame with this side's proof."""
        if challenge.protocol != PROTOCOL:
            self._end("version", challenge.version)
            return
        self._note(frame)
        nonce = os.urandom(_NONCE).hex()
        about = plain(_About(__version__, nonce, bool(self._key), self._dialled, self.output))
        self._note(about)
        self._send_frame(_json({"about": about, "proof": self._proof(b"connecting").hex()}))
        self._peer_version = challenge.version
        if challenge.keyed is not bool(self._key):
            self._end("keyless here" if challenge.keyed else "keyless there", challenge.version)

    def _check_proof(self, about: _About, proof: str) -> None:
        if about.keyed is not bool(self._key):
            self.refuse("keyless here" if about.keyed else "keyless there")
        elif not digests().is_equal(self._proof(b"connecting"), proof):
            self.refuse("key")
        elif about.to is not None and not self._is_here(*about.to):
            self.refuse("elsewhere")
        elif about.to is None and about.version == __version__:
            self.refuse("elsewhere")  # Versions that do not send it are named by their version.
        else:
            self._send_frame(_json({"proof": self._proof(b"listening").hex()}))
            self.output = about.output
            self._prove()
            if about.version != __version__:
                self._end("version", about.version)

    def _finish(self, proof: str) -> None:
        if not digests().is_equal(self._proof(b"listening"), proof):
            self._end("proof")
        else:
            self._prove()
            if self._peer_version != __version__:
                self._end("version", self._peer_version)

    def _prove(self) -> None:
        keys = [self._proof(name) for name in (b"from the listener", b"to the listener")]
        self._send_key, self._receive_key = keys if self._listens else reversed(keys)
        self.is_proved, self._transcript = True, b""

    def _note(self, frame: dict[str, Any]) -> None:
        """Add a frame to the transcript, on which the proofs and keys depend.

        A field that this version does not know may be a text, a number or a list of these: a deep value that
        could be parsed may be too deep to be written again.
        """
        parts = (part for value in frame.values() for part in (value if isinstance(value, list) else [value]))
        if any(isinstance(part, (dict, list)) for part in parts):
            raise DecodeError("this is nested too deeply")
        self._transcript += _json(frame) + b"\n"

    def _proof(self, purpose: bytes) -> bytes:
        return digests().mac(self._key or b"", purpose + b"\n" + self._transcript)

    def _end(self, kind: str, version: str = "") -> None:
        self.problem = Problem(kind, version)
        self._inbox.clear()


def _numbered(number: int, payload: Payload) -> bytes:
    """Return what a MAC covers."""
    return number.to_bytes(8, "big") + payload.digest


def _json(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, sort_keys=True).encode()
