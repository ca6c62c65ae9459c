"""The output of an agent whose host has ranks that are shown: it goes to the launcher over a connection.

mpirun and srun merge the output of all hosts, in parts of any size, so that nothing in it shows which host a
part is from. The connection is another one than that for messages: a launcher that is stopped or busy does
not read, and then the ranks' output waits, but a message must not.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.logs.terminal import Stream
from hccl_tools.launch.protocol.messages import Written

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.connection import Connection

#: In bytes: a usual message, and the largest one, which a long line needs.
_PART, _LARGEST_PART = 1 << 16, 1 << 19
_TOKEN_BYTES = 16


def token_of(plan: Plan) -> str:
    """Return a new token if ranks of this host are shown, else ""."""
    is_shown = plan.shown == "all" or any(process.rank in plan.shown for process in plan.local)
    return os.urandom(_TOKEN_BYTES).hex() if is_shown else ""


class SentOutput(Stream):
    """A stream that leads to the launcher."""

    def __init__(self, connection: Connection, plan: Plan) -> None:
        super().__init__(connection.fileno())
        connection.wait_for_reader()
        self._connection = connection
        # The launcher decides what it shows of an incomplete line, unless several hosts could share the line.
        self.is_live = plan.shown != "all" and len(plan.shown) == 1
        self.takes_files = False

    @property
    def waiting(self) -> bool:
        """Whether data is queued."""
        return bool(self._waiting) or self._connection.waiting

    def pump(self) -> None:
        """Send as much of the queued data as the kernel accepts now: whole lines, if possible."""
        if self.closed:
            self._waiting.clear()
            return
        self._connection.flush()
        while self._waiting and not self._connection.waiting:
            size = self._waiting.rfind(b"\n", 0, _PART) + 1 or self._waiting.find(b"\n", 0, _LARGEST_PART) + 1
            part = bytes(self._waiting[: size or _LARGEST_PART])
            del self._waiting[: len(part)]
            self._connection.send(Written(part))

    def close(self) -> None:
        """Disconnect; the kernel still sends what it has accepted."""
        self.closed = True
        self._connection.close()
