"""The agents of a job that an engine starts: which there have to be, and what has become of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hccl_tools.launch.cluster.transport import Wire
    from hccl_tools.launch.model.plan import Plan


class Agent:
    """A connection.

    ``is_ours`` once it has shown the job's token, ``number`` is the index of a server, or a rank, once it has
    said which, ``parent`` host and process id of what has started it, ``done`` once it has reported the ends
    of its ranks. ``ended_by_engine`` says that the engine has made it end them.
    """

    def __init__(self, connection: Wire) -> None:
        self.wire, self.descriptor = connection, connection.fileno()
        self.is_ours, self.done, self.ended_by_engine = False, False, False
        self.number, self.pid = -1, 0
        self.parent: list[str | int] = []


class Agents:
    """Those of one start of the job: a supervisor for each server, or a shim for each rank."""

    def __init__(self, plan: Plan) -> None:
        ranks = plan.ranks
        self.numbers = {process.server_index if plan.supervisor else process.rank for process in ranks}
        self.connected: list[Agent] = []
        #: The numbers of those that have reported, and of those whose connection has closed.
        self.done: set[int] = set()
        self.gone: set[int] = set()

    @property
    def missing(self) -> set[int]:
        """The numbers of those that have not connected yet."""
        return self.numbers - {agent.number for agent in self.connected} - self.gone

    @property
    def have_all_reported(self) -> bool:
        """Whether nothing is to come from any of them."""
        return self.numbers <= self.done

    @property
    def all_done(self) -> bool:
        """Whether all that are connected have reported."""
        return all(agent.done for agent in self.connected)

    def say(self, word: str, **more: Any) -> None:
        """Send a message: ``go`` to all, others to those that have not reported."""
        for agent in self.connected:
            if agent.number >= 0 and (word == "go" or not agent.done):
                agent.wire.send({"word": word, **more})
