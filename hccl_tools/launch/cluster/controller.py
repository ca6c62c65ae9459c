"""Controller: the launcher's connections to the agents that mpirun or srun has started for it.

An agent is a supervisor on each host, or a shim for each rank on this host. It identifies itself, and reports
why its part ends early and how its ranks exited. An agent is lost if its connection closes before it has
reported: Slurm would notice after 5 minutes, Open MPI after 15 minutes if output was in transit. The first
agent that ends early ends the job: all others terminate their ranks within the grace time of the launch.
"""

from __future__ import annotations

import os
import select
import time
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.host.local_addresses import addresses_towards
from hccl_tools.launch import engines
from hccl_tools.launch.cluster import missing_hosts, verdict
from hccl_tools.launch.cluster.agents import Agent, Agents
from hccl_tools.launch.cluster.engine_end import TIMING, EngineEnd
from hccl_tools.launch.cluster.evidence_round import EvidenceRound
from hccl_tools.launch.cluster.hang_decision import HangDecision
from hccl_tools.launch.cluster.job_addresses import bindings
from hccl_tools.launch.cluster.merged_output import MergedOutput
from hccl_tools.launch.cluster.own_part import JobParts
from hccl_tools.launch.cluster.verdict import Finding, Reports, Unreported
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE, STDOUT
from hccl_tools.launch.protocol.listener import Listener
from hccl_tools.launch.protocol.messages import (
    Ending,
    EvidenceTaken,
    Hung,
    Kill,
    Look,
    Payload,
    Quiet,
    Table,
)
from hccl_tools.launch.supervise.options import RankCount
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.printable import one_line_each
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.processes.signals import ENDING
from hccl_tools.runs import hosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.listener import Guest
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.runs.job_report import HungRank

_KEY_BYTES = 32
#: The hosts that a message names.
_MOST_NAMED = 4


class Controller:
    """Listens for the agents of a job, over all its restarts."""

    def __init__(
        self,
        plan: Plan,
        table: bytes | None,
        *,
        spares: Sequence[str] = (),
        hang_timeout: float | None = None,
        evidence_timeout: float = 0.0,
    ) -> None:
        """Start listening; supervisors receive the table. ``spares`` are hosts that may connect later.

        Raises:
            OSError: No port is free.
        """
        hosts = (*plan.hosts, *spares)
        self._has_supervisors = bool(plan.supervisor)
        self._addresses = addresses_towards(hosts) if self._has_supervisors else []
        self._key, self._port = os.urandom(_KEY_BYTES), 0
        self._name = f"hccl-tools-{os.urandom(_KEY_BYTES).hex()}"
        # The shims are on this host: the kernel identifies their user.
        key = self._key if self._has_supervisors else None
        self._listener = Listener(key, silence=plan.host_timeout, hosts=len(hosts))
        if self._has_supervisors:
            self._port = self._listener.listen(bindings(hosts, self._addresses))
        else:
            self._listener.listen_locally(self._name)
        self.unreported = Unreported()
        self._hang_timeout, self._evidence_timeout = hang_timeout, evidence_timeout
        self.follow(plan, table)
        #: epoll lists ready descriptors in order of time: the first of two losses is the cause.
        self._order = select.epoll()
        self._reset()

    def follow(self, plan: Plan, table: bytes | None) -> None:
        """Follow a plan from the next start on."""
        self._plan = plan
        self._table = Payload.of(Table(table)) if self._has_supervisors and table is not None else None

    def _reset(self) -> None:
        self._agents, self._parts = Agents(self._plan), JobParts(self._plan)
        self._ending: EngineEnd | None = None
        self._engine_has_ended = False
        self._reports = Reports()
        self._attempt: Attempt | None = None
        self._hangs: HangDecision | None = None
        self._output: MergedOutput | None = None
        self._evidence = EvidenceRound(self._running, lambda: self._agents.broadcast(EvidenceTaken()))

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which agents find the controller."""
        if not self._has_supervisors:
            return {LAUNCHER_VARIABLE: self._name}
        addresses = [*self._addresses, *([] if engines.of(self._plan).merges_output else [STDOUT])]
        return {LAUNCHER_VARIABLE: f"{self._key.hex()}@{self._port}@{','.join(addresses)}"}

    def watch(self, attempt: Attempt) -> None:
        """Accept agents, and end the attempt when one ends early or is lost."""
        self._disconnect()
        self._listener.other_versions.clear()  # That host may have been replaced.
        self._attempt = attempt
        attempt.on_readable(self._listener.fileno(), self._accept)
        attempt.on_readable(self._order.fileno(), self._read_ready)
        attempt.on_end.append(self._engine_ended)
        if not self._has_supervisors:
            return  # Shims and ranks are on this host: the keeper signals them itself.
        self._ending = EngineEnd(attempt, self._agents, self._evidence_timeout)
        if engines.of(self._plan).merges_output:
            self._output = MergedOutput(attempt, self._plan)
            attempt.on_over.append(self._finish_output)
        missing_hosts.MissingHosts(attempt, self._agents, self._plan, self._hosts_missing)
        if self._hang_timeout is not None:
            self._hangs = HangDecision(
                lambda: self._agents.numbers - self._agents.done,
                partial(self._ask_hung, attempt),
                self._end_hung,
                limit=self._hang_timeout,
            )
        if engines.of(self._plan).waits_for_lost_hosts:
            missing_hosts.watch(
                attempt, self._unconnected_hosts, self._plan.run_dir, self._engine_process_lost
            )

    def count_ranks(self) -> RankCount:
        """Count the ranks of the job: those of an agent run until it has reported their ends."""
        agents, number, running = self._agents, self._plan.world_size, self._running()
        if self._has_supervisors:
            return RankCount(sum(len(agents.ranks[one]) for one in running), number)
        return RankCount(len(running), number)

    def _running(self) -> set[int]:
        """Return the numbers of the agents that are connected and have not reported."""
        agents = self._agents
        return agents.numbers - agents.missing - agents.done - agents.gone.keys()

    def explain(self, outcome: Outcome) -> None:
        """Determine how this start of the job ended, and disconnect.

        ``unreported`` then has the servers of which this is not known.
        """
        self._wait_for_reports()
        self.unreported = self._reports.unreported(self._agents)
        if self._ending is not None:
            self._reports.has_signalled = self._ending.has_signalled
        verdict.decide(self._plan, outcome, self._reports, self.unreported)
        self._warn_of_silent(outcome)
        if strangers := self._listener.strangers():
            outcome.notes.append(strangers)
        self._disconnect()

    def _warn_of_silent(self, outcome: Outcome) -> None:
        """Name the hosts that have joined and not reported their ranks, unless such a host is the cause."""
        if not self._has_supervisors or self._attempt is None:
            return
        agents, cause = self._agents, outcome.remote_cause
        silent = agents.numbers - agents.missing - agents.done - set(self.unreported.refused)
        hosts = [agents.hosts[number] for number in sorted(silent)]
        if names := [host for host in hosts if cause is None or host != cause.host]:
            listed = and_more(names, _MOST_NAMED)
            self._attempt.say(f"no report from {listed}: stopped or unreachable; ranks may still run there")

    def close(self) -> None:
        """Close all connections; running supervisors then end their ranks."""
        self._disconnect()
        self._order.close()
        self._listener.close()

    def _finish_output(self) -> None:
        if self._output is not None:
            self._read_all()
            self._output.finish(without=self._agents.gone.keys() - self._agents.done)

    def _disconnect(self) -> None:
        if self._output is not None:
            self._output.close()
        for agent in self._agents.connected:
            self._order.unregister(agent.descriptor)
            agent.connection.close()
        self._reset()

    def _wait_for_reports(self) -> None:
        attempt = self._attempt
        if attempt is None:
            return
        if self._ending is not None:
            self._ending.announce()
        left_running = any(agent.number >= 0 and not agent.done for agent in self._agents.connected)
        seconds = (
            attempt.state.grace + attempt.state.extra_grace
            if left_running and self._has_supervisors
            else TIMING.drain
        )
        deadline = time.monotonic() + seconds
        while not self._agents.is_empty and (left := deadline - time.monotonic()) > 0:
            wait_readable(left, attempt.signals, self._order)
            if ENDING & set(attempt.signals.read()):
                self._agents.broadcast(Kill())
            self._read_ready()

    def _ask_hung(self, attempt: Attempt) -> None:
        if self._hangs is not None and not attempt.state.is_ending:
            self._agents.broadcast(Look())
            attempt.call_later("hung hosts", self._hangs.seconds_left, self._hangs.check)

    def _end_hung(self, hung: list[HungRank], cause: Cause) -> None:
        self._reports.hung = hung
        if self._attempt is not None and not self._attempt.state.is_ending:
            seconds = self._attempt.state.grace + self._evidence_timeout
            self._attempt.say(
                f"the job hangs: its ranks write their Python stacks, then are ended (at most {seconds:g} s)"
            )
        self._end_for(cause)

    def _hosts_missing(self, servers: Sequence[int], why: str) -> None:
        """End the start for hosts that have not connected; the first is the cause and names the others."""
        self._read_all()
        missing = [server for server in servers if server in self._agents.missing]
        others = [self._agents.hosts[server] for server in missing[1:]]
        also = f"; the same for {and_more(others, _MOST_NAMED)}" if others else ""
        for server in missing:
            detail = why + (also if server == missing[0] else "")
            self._reports.add(Finding(server, Cause.lost(self._agents.hosts[server], "refused", detail)))
        if missing and self._attempt is not None:
            self._attempt.end_for(self._reports.findings[0].cause)

    def _unconnected_hosts(self) -> tuple[list[str], int]:
        """Read all; return the hosts without a supervisor, and the number of disconnected supervisors."""
        self._read_all()
        missing = sorted(self._agents.missing)
        return [self._agents.hosts[number] for number in missing], len(self._agents.gone)

    def _engine_ended(self, end: RankEnd) -> None:
        """End the rest of the job if mpirun exits before its ranks; Open MPI 5's mpirun may exit with 0."""
        self._read_all()
        if end.process.rank < 0 or self._attempt is None:
            return
        self._engine_has_ended = True
        if not self._agents.have_all_reported:
            what = f"{end.process.name} exited before its ranks: {end.description}"
            self._attempt.end_for(Cause.lost(os.uname().nodename, "daemon", what))

    def _engine_process_lost(self, what: str) -> None:
        self._end_for(Cause.lost(os.uname().nodename, "daemon", what))

    def _end_for(self, cause: Cause, agent: int = -1) -> None:
        self._reports.add(Finding(agent, cause))
        if self._attempt is not None:
            self._attempt.end_for(cause)

    def _accept(self) -> None:
        for guest in self._listener.guests():
            if guest.connection.output:
                self._take_output(guest)
                continue
            agent = Agent(guest.connection)
            if self._table is not None:
                agent.connection.send_payload(self._table)
            self._agents.add(agent)
            unsent = select.EPOLLOUT if agent.connection.waiting else 0  # A table of a thousand hosts.
            self._order.register(agent.descriptor, select.EPOLLIN | unsent)
            self._handle_all(agent, guest.messages)
        for server, cause in verdict.other_versions(self._plan, self._listener.other_versions):
            self._end_for(cause, server)
        if self._attempt is not None and (wait := self._listener.wait) is not None:
            self._attempt.call_later("listener", wait, self._accept)

    def _take_output(self, guest: Guest) -> None:
        if self._output is None:
            guest.connection.close()
        else:
            self._output.shown.add(guest.connection, guest.messages)

    def _read_all(self) -> None:
        """Read all that agents have sent: an event that follows from the end of one may be handled first."""
        self._accept()
        self._read_ready()
        if self._output is not None:
            self._output.read_all()

    def _read_ready(self) -> None:
        for descriptor, events in self._order.poll(0):
            if (agent := self._agents.of(descriptor)) is None:
                continue
            if events & select.EPOLLOUT:
                agent.connection.flush()
                if not agent.connection.waiting:
                    self._order.modify(descriptor, select.EPOLLIN)
            self._handle_all(agent, agent.connection.messages())
            if agent.connection.closed:
                self._agent_lost(agent)

    def _handle_all(self, agent: Agent, messages: Sequence[Message]) -> None:
        try:
            for message in messages:
                if isinstance(message, Ending) and agent.number < 0:
                    self._recognise(agent)
                part = self._parts.of(agent.number, agent.connection.address)
                # Text of another host must not begin a line of this one.
                self._handle(agent, part.checked(one_line_each(message)))
        except ValueError:
            agent.connection.closed = True  # Not an agent of this job.

    def _handle(self, agent: Agent, message: Message) -> None:
        if isinstance(message, Join):
            self._identify(agent, message)
        elif isinstance(message, EndedByEngine):
            agent.ended_by_engine = True
        elif isinstance(message, Ending):
            self._record(agent, message.cause)
        elif isinstance(message, Quiet | Hung) and self._hangs is not None:
            if isinstance(message, Quiet):
                self._hangs.report(agent.number, message.idle)
            else:
                self._hangs.answer(agent.number, message.ranks)
        elif isinstance(message, EvidenceTaken):
            self._evidence.add(agent.number)
        elif isinstance(message, Ended):
            if message.cause is not None:
                self._record(agent, message.cause)
            if not agent.done:
                self._reports.hung += message.hung
                self._reports.evidence += message.evidence
            self._record_ends(agent, [verdict.rank_end(self._plan, one) for one in message.ranks])

    def _identify(self, agent: Agent, message: Join) -> None:
        join = self._agents.join if self._has_supervisors else self._agents.identify
        join(agent, message.number)
        agent.pid, agent.parent = message.pid, message.parent
        if self._has_supervisors:
            hosts.record_node(self._plan.run_dir, self._agents.hosts[agent.number], message.node)
            if self._output is not None:
                self._output.shown.expect(message.number, message.output)
            if self._ending is not None:
                self._ending.agent_connected(agent)

    def _recognise(self, agent: Agent) -> None:
        """Identify an agent that has no plan, and therefore refuses its part, by its address."""
        index = verdict.server_at(self._plan, agent.connection.address)
        if index >= 0 and self._has_supervisors:
            self._agents.identify(agent, index)

    def _record_ends(self, agent: Agent, ends: list[RankEnd]) -> None:
        self._agents.report(agent)
        self._reports.ranks |= {end.process.rank: end for end in ends}
        if not self._has_supervisors:
            for end in ends:
                if end.status and not agent.ended_by_engine:
                    self._record(agent, Cause(end.process.host, "failed", end.code or 1), end)
        if self._hangs is not None:
            self._hangs.host_ended()
        self._evidence.check()
        if self._ending is not None:
            self._ending.release()

    def _record(self, agent: Agent, cause: Cause, end: RankEnd | None = None, *, lost: bool = False) -> None:
        if end is not None and self._reports.has(agent.number):
            return  # The agent has reported more than the failure of its rank.
        if cause.reason == "daemon" and not lost and self._is_engine(agent.parent):
            agent.ended_by_engine = True
        attempt = self._attempt
        if attempt is None or agent.ended_by_engine or (lost and self._engine_has_ended):
            return  # The keeper reports how the engine itself ended.
        self._reports.add(Finding(agent.number, cause, end, lost))
        # Wait, because a killed mpiexec (MPICH), which kills its processes, may be reaped after them.
        attempt.call_later(
            f"found {agent.number}", TIMING.loss_delay if lost else 0.0, partial(attempt.end_for, cause)
        )

    def _loss(self, agent: Agent) -> Cause:
        if not self._has_supervisors:
            return verdict.shim_loss(agent.number, agent.pid)
        return verdict.supervisor_loss(self._agents.hosts[agent.number], self._agents.ranks[agent.number])

    def _is_engine(self, parent: tuple[str, int]) -> bool:
        ends = self._attempt.state.ends if self._attempt is not None else []
        return parent in [(os.uname().nodename, end.pid) for end in ends if end.process.rank >= 0]

    def _agent_lost(self, agent: Agent) -> None:
        if agent.number < 0:
            self._recognise(agent)  # It was lost before it had identified itself.
        self._agents.remove(agent)
        self._order.unregister(agent.descriptor)
        if agent.number >= 0 and not agent.done:
            self._record(agent, self._loss(agent), lost=True)
        self._evidence.check()
        agent.connection.close()
        if self._ending is not None:
            self._ending.release()
