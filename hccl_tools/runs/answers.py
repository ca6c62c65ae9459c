"""Read the answers of several hosts at the same time: one that hangs or floods does not delay the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.runs.remote import RemoteLogs

#: The maximum size of an answer in bytes; 20,000 events of ``explain`` have about 10 MB.
LARGEST = 1 << 26
#: Seconds between two looks at the answers.
_PAUSE = 0.02


class Answer(NamedTuple):
    """What a host has sent; ``problem`` is a clause that says why that is not all, "" if it is."""

    data: bytes
    problem: str = ""
    hint: str = ""


def read(connections: Mapping[str, RemoteLogs], seconds: float) -> dict[str, Answer]:
    """Return the answers by host; after ``seconds`` those that are not complete have a problem."""
    sent = {host: bytearray() for host in connections}
    deadline = time.monotonic() + seconds
    waiting = list(connections)
    while waiting and time.monotonic() < deadline:
        before = sum(connections[host].received for host in waiting)
        for host in waiting:
            sent[host] += connections[host].read(last=False)
        is_idle = sum(connections[host].received for host in waiting) == before
        # A host that sends too much is no longer read: its pipe fills.
        waiting = [host for host in waiting if not connections[host].ended and len(sent[host]) <= LARGEST]
        if is_idle:
            time.sleep(_PAUSE)
    return {host: _answer(host, connection, sent[host], seconds) for host, connection in connections.items()}


def _answer(host: str, connection: RemoteLogs, sent: bytearray, seconds: float) -> Answer:
    if len(sent) > LARGEST:
        return Answer(b"", f"{host} has sent more than {LARGEST >> 20} MiB: its answer was not read")
    if not connection.ended:
        return Answer(b"", f"{host} has not answered within {seconds:g} s")
    if connection.error is not None:
        return Answer(b"", connection.error.message, connection.error.hint or "")
    return Answer(bytes(sent))
