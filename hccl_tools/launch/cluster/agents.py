"""The expected agents of a job that an engine starts, and the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.protocol.messages import Release

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.messages import Message


class Agent:
    """A connected agent.

    Attributes:
        number: The server index of a supervisor or the rank of a shim; -1 until it is known.
        parent: Host and process id of the agent's parent.
        done: Whether the agent has reported how its ranks exited.
        ended_by_engine: Whether the agent ended its ranks at the request of the engine.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection, self.descriptor = connection, connection.fileno()
        self.done, self.ended_by_engine = False, False
        self.number, self.pid = -1, 0
        self.parent = ("", 0)


class Agents:
    """The agents of one start of the job: a supervisor for each server, or a shim for each rank."""

    def __init__(self, plan: Plan) -> None:
        ranks = plan.ranks
        self.numbers = {process.server_index if plan.supervisor else process.rank for process in ranks}
        self.connected: list[Agent] = []
        #: The numbers of agents that have reported, and of agents whose connection has closed.
        self.done: set[int] = set()
        self.gone: set[int] = set()

    @property
    def missing(self) -> set[int]:
        """The numbers of agents that have not connected yet."""
        return self.numbers - {agent.number for agent in self.connected} - self.gone

    @property
    def have_all_reported(self) -> bool:
        """Whether every expected agent has reported."""
        return self.numbers <= self.done

    @property
    def all_done(self) -> bool:
        """Whether every connected agent has reported."""
        return all(agent.done for agent in self.connected)

    def broadcast(self, message: Message) -> None:
        """Send ``Release`` to all agents, any other message to the agents that have not reported."""
        for agent in self.connected:
            if agent.number >= 0 and (isinstance(message, Release) or not agent.done):
                agent.connection.send(message)
