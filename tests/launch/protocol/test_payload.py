"""What a connection has still to send."""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress

from hccl_tools.launch.protocol.messages import Table
from hccl_tools.launch.protocol.payload import Outgoing, Payload


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
