"""The output of the ranks that are shown, as their agents send it: it is appended to the engine's log.

Each agent with such a rank has told a random token on its own connection, and sends the output over another
connection that names this token: no other host can write in its place.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.protocol.messages import Written
from hccl_tools.processes.reactor import wait_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.processes.reactor import Reactor

#: Seconds for the rest of the output, after the agents have ended: without any, and in all.
_QUIET_SECONDS, _REST_SECONDS = 2.0, 20.0
#: The connections whose token no agent has told, beside one for each agent.
_MOST_UNKNOWN = 64


class ShownOutput:
    """The connections for output of one start of a job.

    ``write`` is called with the number of a server and what its ranks have written.
    """

    def __init__(self, plan: Plan, reactor: Reactor, write: Callable[[int, bytes], None]) -> None:
        self._reactor, self._write = reactor, write
        shown = None if plan.shown == "all" else frozenset(plan.shown)
        self._servers = {one.server_index for one in plan.ranks if shown is None or one.rank in shown}
        #: The server of each token.
        self._numbers: dict[str, int] = {}
        self._most = len(self._servers) + _MOST_UNKNOWN
        #: Connections by token, and their first messages. One that comes before its agent has told the token
        #: is not read until then.
        self._connections: dict[str, Connection] = {}
        self._early: dict[str, Sequence[Message]] = {}

    def expect(self, number: int, token: str) -> None:
        """Take the token of a server's agent: the first one, of a server with a rank that is shown."""
        if token and number in self._servers and token not in self._numbers:
            self._servers.discard(number)
            self._numbers[token] = number
            self._begin(token)

    def add(self, connection: Connection, messages: Sequence[Message]) -> None:
        """Take a connection for output, and its first messages."""
        token = connection.output
        if token in self._connections or len(self._connections) >= self._most:
            connection.close()
            return
        self._connections[token], self._early[token] = connection, messages
        self._begin(token)

    def wait_for_rest(self, without: Container[int]) -> None:
        """Read the rest of the output of agents that have ended, but not that of lost servers."""
        began = heard = time.monotonic()
        while waited := [
            self._connections[token]
            for token, number in self._numbers.items()
            if token in self._connections and number not in without
        ]:
            left = min(heard + _QUIET_SECONDS, began + _REST_SECONDS) - time.monotonic()
            if left <= 0:
                return
            wait_readable(left, *waited)
            if self.read_all():
                heard = time.monotonic()

    def read_all(self) -> bool:
        """Read what has arrived; return whether there was anything."""
        found = [self._read(token) for token in [*self._connections] if token in self._numbers]
        return any(found)

    def close(self) -> None:
        """Close all connections."""
        for token in [*self._connections]:
            self._end(token)

    def _begin(self, token: str) -> None:
        if token in self._numbers and (connection := self._connections.get(token)):
            self._take(token, self._early.pop(token))
            self._reactor.on_readable(connection.fileno(), partial(self._serve, token))

    def _serve(self, token: str) -> None:
        self._read(token)

    def _read(self, token: str) -> bool:
        connection = self._connections.get(token)
        if connection is None:
            return False
        messages = connection.messages()
        self._take(token, messages)
        if connection.closed:
            self._end(token)
        return bool(messages) or connection.closed

    def _take(self, token: str, messages: Sequence[Message]) -> None:
        data = b"".join(message.data for message in messages if isinstance(message, Written))
        if data:
            self._write(self._numbers[token], data)

    def _end(self, token: str) -> None:
        connection = self._connections.pop(token)
        self._reactor.on_readable(connection.fileno(), None)
        connection.close()
