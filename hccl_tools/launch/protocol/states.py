"""The state table of a conversation: which message may follow which, for each sender.

docs/en/explanation/how_hosts_communicate.md has the same tables with their explanation. A message that its
sender may not send in its state ends the session, as invalid bytes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join
from hccl_tools.launch.protocol.messages import (
    End,
    Ending,
    EvidenceTaken,
    Heard,
    Hung,
    Kill,
    Leave,
    Look,
    Quiet,
    Ready,
    Refused,
    Release,
    Start,
    Table,
    Waiting,
    Written,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.protocol.messages import Message

#: The state of both senders after the handshake.
FIRST = "connected"

#: The messages of an agent: by its state, each with its next state.
AGENT: Mapping[str, Mapping[type, str]] = {
    FIRST: {Join: "joined", Ending: "left", Written: "writing"},
    "joined": {
        Ready: "running",
        Refused: "left",
        Ending: "ending",
        EndedByEngine: "ending",
        Ended: "ended",
        Quiet: "joined",
        Hung: "joined",
        EvidenceTaken: "joined",
    },
    "running": {
        Ending: "ending",
        Ended: "ended",
        Kill: "running",
        Heard: "running",
        Ready: "running",
        Quiet: "running",
        Hung: "running",
        EvidenceTaken: "running",
    },
    "ending": {
        Ending: "ending",
        Ended: "ended",
        Kill: "ending",
        Heard: "ending",
        Ready: "running",
        Quiet: "ending",
        Hung: "ending",
        EvidenceTaken: "ending",
    },
    "ended": {
        Ending: "ending",
        Kill: "ended",
        Heard: "ended",
        Ready: "running",
        EvidenceTaken: "ended",
    },
    "left": {},
    "writing": {Written: "writing"},
}

#: The messages of the controller: by its state towards this agent, each with its next state.
CONTROLLER: Mapping[str, Mapping[type, str]] = {
    FIRST: {
        Table: "running",
        Waiting: "waiting",
        Refused: "left",
        Leave: "left",
        End: "ending",
        Kill: "ending",
        Release: "released",
    },
    "waiting": {Waiting: "waiting", Start: "running", Refused: "left"},
    "running": {
        End: "ending",
        Kill: "ending",
        Ended: "running",
        Heard: "running",
        Release: "released",
        Start: "running",
        Look: "running",
        EvidenceTaken: "running",
    },
    "ending": {
        End: "ending",
        Kill: "ending",
        Ended: "ending",
        Heard: "ending",
        Release: "released",
        Start: "running",
        Look: "ending",
        EvidenceTaken: "ending",
    },
    "released": {End: "released", Kill: "released", Heard: "released", Release: "released"},
    "left": {},
}


class Conversation:
    """The state of one sender."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Mapping[str, Mapping[type, str]]) -> None:
        self._table, self.state = table, FIRST

    def follow(self, message: Message) -> None:
        """Enter the state that follows a message.

        Raises:
            ValueError: The sender may not send this message now.
        """
        following = self._table[self.state].get(type(message))
        if following is None:
            raise ValueError(message)
        self.state = following
