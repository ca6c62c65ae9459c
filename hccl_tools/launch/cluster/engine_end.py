"""End a job on several hosts in order: ranks by their supervisors, then the supervisors, then the engine.

The engines would not give the ranks their grace time: srun kills at once, mpirun of Open MPI 4 after 1 s.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster import verdict
from hccl_tools.launch.protocol.messages import End, Kill
from hccl_tools.processes import timing
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.launch.cluster.agents import Agent, Agents
    from hccl_tools.launch.supervise.attempt import Attempt


class Timing(NamedTuple):
    """Timeouts of the launcher in its protocol with the agents, in seconds.

    Attributes:
        report: Added to the grace time, for supervisors to report how their ranks exited.
        connect: For starting supervisors to connect when another host ends the job.
        end: For the engine to exit after all agents have reported, and again before it is killed.
        drain: To read the agents' messages after the engine has exited.
        loss_delay: From the loss of an agent to the end of the job; an engine's loss may be detected by then.
    """

    report: float = 5.0
    connect: float = 5.0
    end: float = 3.0
    drain: float = 2.0
    loss_delay: float = 0.1


TIMING = timing.from_environment("engine", Timing())


class EngineEnd:
    """Ends one start of a job."""

    def __init__(self, attempt: Attempt, agents: Agents, evidence_timeout: float) -> None:
        """``evidence_timeout`` is the time in which the agents take evidence before they end their ranks."""
        self._attempt, self._agents = attempt, agents
        self._given_up = False
        #: Whether this launcher has sent the engine a signal.
        self.has_signalled = False
        attempt.state.extra_grace = TIMING.report + evidence_timeout
        attempt.on_kill.append(lambda: agents.broadcast(Kill()))
        attempt.terminate = self._terminate

    def announce(self) -> None:
        """Send the cause of the end to all supervisors, for the reports of their hosts."""
        self._agents.broadcast(self._end())

    def agent_connected(self, agent: Agent) -> None:
        """Handle a new supervisor, which may have connected while the job is ending; the others know."""
        if self._attempt.state.is_ending:
            agent.connection.send(self._end())

    def _end(self) -> End:
        return End(verdict.reason_to_end(self._attempt.outcome()))

    def release(self) -> None:
        """Release all supervisors and the engine once no host has ranks left.

        An engine that has lost a process or a host would wait for it; srun would wait forever.
        """
        attempt, agents = self._attempt, self._agents
        if not agents.all_done or (attempt.state.is_ending and agents.missing and not self._given_up):
            return
        agents.release()
        if attempt.state.is_ending:
            attempt.call_later("engine", TIMING.end, partial(self._signal, signal.SIGTERM))
            attempt.call_later("kill", 2 * TIMING.end, attempt.kill)
        elif agents.have_all_reported:
            attempt.call_later("engine", TIMING.end, self._end_engine)

    def _terminate(self, number: int) -> None:
        attempt = self._attempt
        if self._agents.missing:
            # Unreachable hosts must not delay an interrupt; otherwise supervisors may be about to start.
            wait = TIMING.connect if attempt.state.remote_cause else 0.0
            attempt.call_later("missing", wait, partial(self._give_up, number))
        self.announce()
        self.release()

    def _give_up(self, number: int) -> None:
        if self._agents.missing:
            self._given_up = True
            self._signal(number)
            self.release()

    def _signal(self, number: int) -> None:
        self.has_signalled = True
        self._attempt.keeper.signal(number)

    def _end_engine(self) -> None:
        attempt = self._attempt
        if not attempt.state.is_ending:
            name = next(end for end in attempt.state.ends if end.process.rank >= 0).process.name
            attempt.say(f"{name} did not exit within {TIMING.end:g} s after all ranks: ending it")
            attempt.end("ended")
            attempt.call_later("kill", TIMING.end, attempt.kill)
