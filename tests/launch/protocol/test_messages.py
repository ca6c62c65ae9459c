"""The messages between controller and agents as bytes."""

from __future__ import annotations

import hashlib
import json
import socket
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.codec import DecodeError
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join, RankExit
from hccl_tools.launch.protocol.messages import (
    End,
    Ending,
    Heard,
    Kill,
    Leave,
    Message,
    Outgoing,
    Payload,
    Ready,
    Refused,
    Release,
    Start,
    Table,
    Waiting,
    Written,
    from_bytes,
    to_bytes,
)
from hccl_tools.runs.job_report import HungRank

TEXT = st.text(max_size=40)
NUMBER = st.integers(-1, (1 << 31) - 1)
INDEX = st.integers(0, (1 << 31) - 1)
REASON = st.sampled_from(["host", "daemon", "signal", "refused", "hang"])
SECONDS = st.floats(0, 1e9)
HUNG = st.builds(
    HungRank, INDEX, TEXT, TEXT, INDEX, st.booleans(), SECONDS, st.none() | SECONDS, TEXT, TEXT, TEXT,
    st.lists(TEXT, max_size=3), st.booleans(),
)  # fmt: skip
ALL_HUNG = st.lists(HUNG, max_size=3).map(tuple)
CAUSE = st.builds(
    Cause, TEXT, REASON, st.integers(0, 255), TEXT, st.integers(0, 64), st.none(),
    ALL_HUNG,
)  # fmt: skip
EXIT = RankExit(3, 1234, 9, 1.5, was_terminated=False, log="rank_3.log")
MESSAGES = st.one_of(
    st.builds(Table, st.binary(max_size=200) | st.binary(min_size=5000, max_size=5000)),
    st.builds(Join, NUMBER, INDEX, st.tuples(TEXT, INDEX), TEXT, TEXT, TEXT),
    st.builds(Ready, INDEX, st.dictionaries(TEXT, TEXT)),
    st.builds(Waiting, st.lists(TEXT).map(tuple), INDEX, SECONDS, st.lists(TEXT).map(tuple)),
    st.builds(Refused, TEXT, INDEX),
    st.builds(Start, INDEX, st.dictionaries(INDEX, TEXT)),
    st.builds(Ending, CAUSE, INDEX),
    st.just(EndedByEngine()),
    st.builds(Ended, st.lists(st.just(EXIT), max_size=3).map(tuple), st.none() | CAUSE, ALL_HUNG, INDEX),
    st.builds(End, CAUSE, NUMBER, INDEX),
    *(st.builds(kind, INDEX) for kind in (Kill, Heard, Release)),
    st.builds(Leave, TEXT),
)


@given(MESSAGES)
def test_every_message_is_read_as_it_was_written(message: Message) -> None:
    assert from_bytes(to_bytes(message)) == message


@given(st.binary(max_size=200))
def test_what_ranks_have_written_is_not_converted(data: bytes) -> None:
    content = to_bytes(Written(data))

    assert content[1:] == data
    assert from_bytes(content) == Written(data)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(MESSAGES, st.data())
def test_a_message_with_a_wrong_value_is_read_or_refused(message: Message, data: st.DataObject) -> None:
    content = to_bytes(message)
    fields = json.loads(content if content.startswith(b"{") else zlib.decompress(content))
    name = data.draw(st.sampled_from([*fields, "another"]))
    fields[name] = data.draw(_ANY)
    try:
        read = from_bytes(json.dumps(fields).encode())
    except DecodeError:
        return
    assert from_bytes(to_bytes(read)) == read


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b'{"type":"kill","restart":true}',
        b'{"type":"kill","restart":-2}',
        b'{"type":"kill","restart":99999999999}',
        b'{"type":"kill","restart":0,"more":1}',
        b'{"type":["kill"]}',
        b'{"type":"unknown"}',
        b'{"type":"waiting","hosts":"abc"}',
        b'{"type":"join","number":0,"pid":1,"parent":["h"]}',
        b'{"type":"table","data":7}',
        '{"type":"table","data":"\u4e00"}'.encode(),
    ],
)
def test_content_that_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(DecodeError):
        from_bytes(content)


def test_a_long_message_is_packed_and_arrives() -> None:
    start = Start(0, {number: f"/home/user/log/20261124-030000-{number:032x}" for number in range(1000)})
    content = to_bytes(start)

    assert len(content) < 30_000
    assert from_bytes(content) == start


def test_a_message_that_unpacks_to_more_than_the_limit_takes_bounded_memory() -> None:
    bomb = zlib.compress(bytes(64 << 20))
    tracemalloc.start()
    with pytest.raises(DecodeError, match="too large"):
        from_bytes(bomb, 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 << 20


def test_the_limit_of_a_packed_message_is_that_of_what_it_unpacks_to() -> None:
    message = Table(bytes(5000))
    size = len(zlib.decompress(to_bytes(message)))

    assert from_bytes(to_bytes(message), size) == message
    with pytest.raises(DecodeError, match="too large"):
        from_bytes(to_bytes(message), size - 1)


_PACKED = to_bytes(Table(bytes(range(256)) * 40))


@pytest.mark.parametrize("packed", [b"no message", _PACKED[:-4], _PACKED + b"more"])
def test_a_damaged_packed_message_is_refused(packed: bytes) -> None:
    with pytest.raises(DecodeError):
        from_bytes(packed)


def test_frames_arrive_whole_and_in_order_through_a_small_buffer() -> None:
    frames = [
        (bytes([number]) * 7, bytes([number]) * size) for number, size in enumerate((3, 300_000, 0, 5000))
    ]
    here, there = socket.socketpair()
    here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    here.setblocking(False)
    waiting, found, blocked = Outgoing(), b"", 0
    for head, content in frames:
        waiting.add(head, content)
    whole = bytes(waiting)
    while waiting:
        with suppress(BlockingIOError):
            waiting.send(here)
            break
        blocked += 1
        found += there.recv(1000)
    here.close()
    while part := there.recv(1 << 16):
        found += part
    there.close()

    assert found == whole == b"".join(head + content for head, content in frames)
    assert blocked > 10


def test_connections_share_the_bytes_of_a_long_message() -> None:
    payload = Payload(bytes(1 << 20))
    waiting = [Outgoing() for _ in range(100)]
    for one in waiting:
        one.add(b"head", payload.content)

    assert {id(one._parts[1]) for one in waiting} == {id(payload.content)}


def test_the_digest_is_that_of_the_content() -> None:
    payload = Payload.of(Table(b"{}"))
    assert payload.digest == hashlib.sha256(payload.content).digest()
    assert payload.digest is payload.digest
