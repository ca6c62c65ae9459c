"""How a job on several hosts is ended: its ranks by their supervisors, then these, and then the engine.

The engines would not leave the ranks their grace time: srun kills at once, mpirun of Open MPI 4 after 1 s.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster import verdict

if TYPE_CHECKING:
    from hccl_tools.launch.cluster.agents import Agents
    from hccl_tools.launch.supervise.attempt import Attempt

#: Seconds beyond the grace time for supervisors to report the ends of their ranks.
SLACK = 5.0
#: Seconds for supervisors that are being started to connect, once the job ends for what another one says.
_COMING = 5.0
#: Seconds for the engine to end once all agents have reported, and then until it is killed.
_ENGINE = 3.0


class EngineEnd:
    """The end of one start of a job."""

    def __init__(self, attempt: Attempt, agents: Agents) -> None:
        self._attempt, self._agents = attempt, agents
        self._given_up = False
        attempt.on_kill.append(lambda: agents.say("kill"))
        attempt.terminate = self._terminate
        attempt.state.extra_grace = SLACK

    def say_end(self) -> None:
        """Tell supervisors why their ranks have to end: each host's report gives the same reason."""
        self._agents.say("end", cause=verdict.reason_to_end(self._attempt.outcome()).as_dict())

    def join(self) -> None:
        """A supervisor has connected; it may be too late for this job."""
        if self._attempt.state.is_ending:
            self.say_end()

    def let_go(self) -> None:
        """Once no host has ranks any more, let all supervisors go, and the engine.

        One that has lost a process of its own, or a host, would wait for it: srun does so for ever.
        """
        attempt, agents = self._attempt, self._agents
        if not agents.all_done or (attempt.state.is_ending and agents.missing and not self._given_up):
            return
        agents.say("go")
        if attempt.state.is_ending:
            attempt.call_later("engine", _ENGINE, partial(attempt.keeper.signal, signal.SIGTERM))
            attempt.call_later("kill", 2 * _ENGINE, attempt.kill)
        elif agents.have_all_reported:
            attempt.call_later("engine", _ENGINE, self._end_engine)

    def _terminate(self, number: int) -> None:
        """Have the supervisors terminate their ranks."""
        attempt = self._attempt
        if self._agents.missing:
            # Hosts out of reach must not delay an interrupt; else some may be about to start.
            wait = _COMING if attempt.state.remote_cause else 0.0
            attempt.call_later("missing", wait, partial(self._give_up, number))
        self.say_end()
        self.let_go()

    def _give_up(self, number: int) -> None:
        """Wait no longer for agents that have not connected."""
        if self._agents.missing:
            self._given_up = True
            self._attempt.keeper.signal(number)
            self.let_go()

    def _end_engine(self) -> None:
        """All ranks have ended, and the engine has not."""
        attempt = self._attempt
        if not attempt.state.is_ending:
            name = next(end for end in attempt.state.ends if end.process.rank >= 0).process.name
            attempt.say(f"{name} did not end within {_ENGINE:g} s after all ranks: ending it")
            attempt.end("ended")
            attempt.call_later("kill", _ENGINE, attempt.kill)
