"""The launcher's connections to the agents that mpirun or srun has started for it.

An agent is a supervisor on each host, or a shim for each rank on this host. It says who it is, why its part
ends before its time, and how its ranks have ended. One whose connection closes before that is lost: Slurm
would notice after 5 minutes, Open MPI after a quarter of an hour if output was on its way. The first that
ends before its time ends the job: all others are asked to end their ranks, which have the grace time that
was asked for, not the engine's.
"""

from __future__ import annotations

import os
import select
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.discover.local_addresses import addresses_towards
from hccl_tools.launch.cluster import host_status, rank_status, transport, verdict
from hccl_tools.launch.cluster.agents import Agent, Agents
from hccl_tools.launch.cluster.engine_end import SLACK, EngineEnd
from hccl_tools.launch.cluster.verdict import Finding, Reports
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.processes.file_limit import FileLimit
from hccl_tools.launch.processes.signals import ENDING
from hccl_tools.launch.runs import node_names

if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.supervise.attempt import Attempt

#: Seconds that agents which have ended get to be read, once the engine has ended.
_LAST_WORDS = 2.0
#: Seconds from the loss of an agent until the job ends for it: that of the engine may show by then.
_COLLECT = 0.1


class EngineDoor:
    """Where the agents of a job connect to; open for all its restarts."""

    def __init__(self, plan: Plan) -> None:
        """Open it.

        Raises:
            OSError: No port is free.
        """
        self._plan = plan
        self._has_supervisors = bool(plan.supervisor)
        self._addresses = addresses_towards(plan.hosts) if self._has_supervisors else []
        any_6 = next((address for address in self._addresses if ":" in address), "")
        self._listener = transport.door(any_6, 0) if self._has_supervisors else transport.door("127.0.0.1", 0)
        self._token = os.urandom(16).hex()
        self._limit = FileLimit()
        #: Its list of ready descriptors is in order of time: of two losses the first is the cause.
        self._order = select.epoll()
        self._forget()

    def _forget(self) -> None:
        self._agents = Agents(self._plan)
        self._ending: EngineEnd | None = None
        self._engine_has_ended = False
        self._reports = Reports()
        self._attempt: Attempt | None = None

    @property
    def environment(self) -> dict[str, str]:
        """By what agents find it."""
        port = self._listener.getsockname()[1]
        return {LAUNCHER_VARIABLE: f"{self._token}@{port}@{','.join(self._addresses)}"}

    def watch(self, attempt: Attempt) -> None:
        """Let agents connect, and end this start of the job when one of them ends before its time."""
        self._hang_up()
        self._attempt = attempt
        attempt.on_readable(self._listener.fileno(), self._come)
        attempt.on_readable(self._order.fileno(), self._hear_ready)
        attempt.on_end.append(self._engine_ended)
        if not self._has_supervisors:
            return  # Shims and ranks are on this host, and the keeper signals them itself.
        self._ending = EngineEnd(attempt, self._agents)
        if self._plan.engine_flavour.startswith("mpich"):
            from hccl_tools.launch.cluster import unreachable_hosts  # noqa: PLC0415  (MPICH only)

            unreachable_hosts.watch(attempt, self._came, self._plan.run_dir, self._lose_way)

    def explain(self, outcome: Outcome) -> None:
        """Decide how this start ended."""
        self._wait_for_reports()
        verdict.decide(self._plan, outcome, self._reports)
        self._hang_up()

    def close(self) -> None:
        """Close it; supervisors that are left end their ranks."""
        self._hang_up()
        self._order.close()
        self._listener.close()

    def _hang_up(self) -> None:
        for agent in self._agents.connected:
            self._order.unregister(agent.descriptor)
            agent.wire.close()
        self._forget()

    def _wait_for_reports(self) -> None:
        """The engine has ended: let agents that are left end, and wait for their reports."""
        attempt = self._attempt
        if attempt is None:
            return
        if self._ending is not None:
            self._ending.say_end()
        left_running = any(agent.number >= 0 and not agent.done for agent in self._agents.connected)
        seconds = attempt.state.grace + SLACK if left_running and self._has_supervisors else _LAST_WORDS
        deadline = time.monotonic() + seconds
        while self._agents.connected and (left := deadline - time.monotonic()) > 0:
            poller = select.poll()
            poller.register(attempt.signals.fileno(), select.POLLIN)
            poller.register(self._order.fileno(), select.POLLIN)
            poller.poll(left * 1000)
            if ENDING & set(attempt.signals.read()):
                self._agents.say("kill")
            self._hear_ready()

    def _came(self) -> tuple[list[str], int]:
        """Return the hosts that no supervisor has come from, and how many have come and gone."""
        missing = sorted(self._agents.missing)
        return [host_status.name(self._plan, number) for number in missing], len(self._agents.gone)

    def _engine_ended(self, end: RankEnd) -> None:
        """End what mpirun has left of a job; that of Open MPI 5 may exit with 0."""
        self._hear_ready()
        if end.process.rank < 0 or self._attempt is None:
            return
        self._engine_has_ended = True
        if not self._agents.have_all_reported:
            what = f"{end.process.name} has ended before its ranks: {end.description}"
            self._attempt.end_for(verdict.lost_process(os.uname().nodename, what))

    def _lose_way(self, what: str) -> None:
        cause = verdict.lost_process(os.uname().nodename, what)
        self._reports.add(Finding(-1, cause))
        if self._attempt is not None:
            self._attempt.end_for(cause)

    def _come(self) -> None:
        while (connection := transport.accept(self._listener)) is not None:
            self._limit.allows(connection.fileno())
            agent = Agent(connection)
            self._agents.connected.append(agent)
            self._order.register(agent.descriptor, select.EPOLLIN)

    def _hear_ready(self) -> None:
        agents = {agent.descriptor: agent for agent in self._agents.connected}
        for descriptor, _ in self._order.poll(0):
            if descriptor in agents:
                self._hear(agents[descriptor])

    def _hear(self, agent: Agent) -> None:
        try:
            for word in agent.wire.words():
                self._take(agent, word)
        except (KeyError, TypeError, ValueError):
            agent.wire.closed = True  # Nothing that an agent of this version says.
        if agent.wire.closed:
            self._lose(agent)

    def _take(self, agent: Agent, word: dict[str, Any]) -> None:
        """Act on one message.

        Raises:
            KeyError, TypeError, ValueError: It is not one of ours.
        """
        if not agent.is_ours:
            if word["hello"] != self._token:
                raise ValueError(word)
            agent.is_ours = True
            agent.wire.send({"word": "welcome"})
        if "agent" in word:
            self._begin(agent, word)
        if "ended_by_engine" in word:
            agent.ended_by_engine = True
        if "cause" in word:
            self._add(agent, Cause.parse(word["cause"], str(word["cause"]["host"])))
        if "ranks" in word:
            self._end(agent, [rank_status.parse(self._plan, facts) for facts in word["ranks"]])

    def _begin(self, agent: Agent, word: dict[str, Any]) -> None:
        if word["agent"] not in self._agents.numbers:
            raise ValueError(word)
        agent.number, agent.pid, agent.parent = int(word["agent"]), int(word["pid"]), word["parent"]
        if self._has_supervisors:
            host = host_status.name(self._plan, agent.number)
            node_names.record_node(self._plan.run_dir, host, str(word["node"]))
            if self._ending is not None:
                self._ending.join()

    def _end(self, agent: Agent, ends: list[RankEnd]) -> None:
        agent.done = True
        self._agents.done.add(agent.number)
        self._reports.ranks |= {end.process.rank: end for end in ends}
        if not self._has_supervisors:
            for end in ends:
                if end.status and not agent.ended_by_engine:
                    self._add(agent, Cause(end.process.host, "failed", end.code or 1), end)
        if self._ending is not None:
            self._ending.let_go()

    def _add(self, agent: Agent, cause: Cause, end: RankEnd | None = None, *, lost: bool = False) -> None:
        """Note why an agent's part ends before its time, and end the job."""
        if end is not None and any(finding.agent == agent.number for finding in self._reports.findings):
            return  # It has said more than that its rank has failed.
        if cause.reason == "daemon" and not lost and self._is_engine(agent.parent):
            agent.ended_by_engine = True
        attempt = self._attempt
        if attempt is None or agent.ended_by_engine or (lost and self._engine_has_ended):
            return  # How the engine itself has ended, the keeper tells.
        self._reports.add(Finding(agent.number, cause, end, lost))
        # MPICH kills what it has started when it is killed, and may be collected after that.
        wait = _COLLECT if lost else 0.0
        attempt.call_later(f"found {agent.number}", wait, partial(attempt.end_for, cause))

    def _is_engine(self, parent: list[str | int]) -> bool:
        ends = self._attempt.state.ends if self._attempt is not None else []
        return parent in [[os.uname().nodename, end.pid] for end in ends if end.process.rank >= 0]

    def _lose(self, agent: Agent) -> None:
        self._agents.connected.remove(agent)
        self._order.unregister(agent.descriptor)
        if agent.number >= 0:
            self._agents.gone.add(agent.number)
            if not agent.done:
                self._add(agent, host_status.loss(self._plan, agent.number, agent.pid), lost=True)
        agent.wire.close()
        if self._ending is not None:
            self._ending.let_go()
