"""The expected agents of a job that an engine starts, and the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.protocol.connection import broadcast
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
    """The agents of one start of the job: a supervisor for each server, or a shim for each rank.

    Each agent connects, reports and disconnects once, so none of these may take time for each other agent.

    Attributes:
        hosts: The host of each expected supervisor, by its number.
        ranks: The ranks of each host, by the number of its supervisor.
        numbers: The numbers of the expected agents.
        missing: The numbers of agents that have not connected yet.
        done: The numbers of agents that have reported.
        gone: The numbers of agents whose connection has closed, in order of time.
    """

    def __init__(self, plan: Plan) -> None:
        ranks = plan.ranks
        self.hosts = {process.server_index: process.host for process in ranks}
        self.ranks: dict[int, list[int]] = {}
        for process in ranks:
            self.ranks.setdefault(process.server_index, []).append(process.rank)
        self.numbers = set(self.ranks) if plan.supervisor else {process.rank for process in ranks}
        self.missing = set(self.numbers)
        #: The agents that have joined: none takes the place of another.
        self._joined: set[int] = set()
        self.done: set[int] = set()
        self.gone: dict[int, None] = {}
        self._connected: dict[int, Agent] = {}
        #: Of these, by descriptor, the agents that have not reported, and those that have no Release yet.
        self._running: dict[int, Agent] = {}
        self._unreleased: dict[int, Agent] = {}

    @property
    def connected(self) -> list[Agent]:
        """The connected agents, in order of their connections."""
        return list(self._connected.values())

    @property
    def is_empty(self) -> bool:
        """Whether no agent is connected."""
        return not self._connected

    def of(self, descriptor: int) -> Agent | None:
        """Return the connected agent with a descriptor."""
        return self._connected.get(descriptor)

    def add(self, agent: Agent) -> None:
        """Add an agent that has connected."""
        for agents in (self._connected, self._running, self._unreleased):
            agents[agent.descriptor] = agent

    def identify(self, agent: Agent, number: int) -> None:
        """Record which agent this is.

        Raises:
            ValueError: The job has no such agent.
        """
        if number not in self.numbers:
            raise ValueError(number)
        agent.number = number
        self.missing.discard(number)

    def join(self, agent: Agent, number: int) -> None:
        """Record that an agent has joined as this one.

        Raises:
            ValueError: The job has no such agent, or another one has joined in its place.
        """
        if number in self._joined:
            raise ValueError(number)
        self.identify(agent, number)
        self._joined.add(number)

    def report(self, agent: Agent) -> None:
        """Record that an agent has reported how its ranks exited."""
        agent.done = True
        self.done.add(agent.number)
        self._running.pop(agent.descriptor, None)

    def remove(self, agent: Agent) -> None:
        """Remove an agent whose connection has closed."""
        for agents in (self._connected, self._running, self._unreleased):
            agents.pop(agent.descriptor, None)
        if agent.number >= 0:
            self.gone[agent.number] = None

    @property
    def have_all_reported(self) -> bool:
        """Whether every expected agent has reported."""
        return len(self.done) == len(self.numbers)

    @property
    def all_done(self) -> bool:
        """Whether every connected agent has reported."""
        return not self._running

    def broadcast(self, message: Message) -> None:
        """Send a message to the agents that have not reported."""
        broadcast([agent.connection for agent in self._running.values() if agent.number >= 0], message)

    def release(self) -> None:
        """Send Release to each agent that has not received it."""
        broadcast([agent.connection for agent in self._unreleased.values() if agent.number >= 0], Release())
        self._unreleased.clear()
