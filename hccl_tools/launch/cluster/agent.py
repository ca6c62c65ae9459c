"""A supervisor's connection to the launcher that has had it started by mpirun or srun.

The engine's own connection does not do: output on its way into a cable that was cut keeps it open for a
quarter of an hour, and srun's is never asked about. By this one a supervisor knows within seconds that its
launcher was killed or its host is cut off, and ends its ranks. It also watches the engine's process that has
started it.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import rank_status, verdict
from hccl_tools.launch.cluster import transport as wires
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.processes.parent import Parent
from hccl_tools.launch.report import oom, report
from hccl_tools.launch.runs import node_names

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.cluster.transport import Wire
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.supervise.attempt import Attempt

#: Where Slurm's srun is reached from the nodes of its step.
_SRUN_ADDRESS = "SLURM_SRUN_COMM_HOST"
#: Seconds to reach an address, and for the launcher's answer.
_REACH, _ANSWER = 2.0, 5.0
#: Seconds beyond the grace time for all other hosts to have ended their ranks.
_OTHERS = 10.0


class EngineWire:
    """Where a supervisor reports how it goes on its host, and hears when it has to end."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Reach the launcher; where it is, is taken out of the environment, for no rank to see it.

        Raises:
            LaunchError: It cannot be reached.
        """
        self._parent = Parent()
        self._oom_kills = oom.kills()
        self._srun = environ.get(_SRUN_ADDRESS, "")
        self._wire = _connected(environ.pop(LAUNCHER_VARIABLE, ""), self._srun)
        self._host = node_names.own_node_name()
        self._patience, self._told_to_end = 0.0, False
        self._attempt: Attempt | None = None

    def begin(self, plan: Plan) -> None:
        """Report that this host begins its part, and what Slurm calls it."""
        first = plan.local[0]
        self._host = first.host
        node, parent = node_names.own_node_name(), [os.uname().nodename, self._parent.pid]
        self._wire.send({"agent": first.server_index, "node": node, "pid": os.getpid(), "parent": parent})

    def refuse(self, error: HcclToolsError) -> None:
        """Report that this host does not start its part."""
        self._wire.send({"cause": verdict.refusal(self._host, error.message).as_dict()})

    def watch(self, attempt: Attempt) -> None:
        """Hear the launcher, watch the engine, and report why this part ends before its time."""
        self._attempt, self._patience = attempt, attempt.state.grace + _OTHERS
        attempt.on_ending.append(self._report_ending)
        attempt.on_readable(self._wire.fileno(), lambda: self._hear(attempt))
        self._parent.watch(attempt.reactor, lambda: self._lose_parent(attempt))

    def report_end(self, outcome: Outcome) -> None:
        """Report how the ranks of this host have ended; none of their processes is left."""
        ends = [rank_status.as_dict(end) for end in outcome.ends if end.process.rank >= 0]
        cause = self._cause(outcome) if outcome.reason != "ended" and not self._told_to_end else None
        self._wire.send({"ranks": ends} if cause is None else {"cause": cause.as_dict(), "ranks": ends})

    def end(self, outcome: Outcome) -> int:
        """Hang up, after a failure not before all hosts have ended their ranks; return the exit code.

        To mpirun a bad exit code is a reason to kill the others, which takes Open MPI 4 up to 9 s. The
        launcher knows how the ranks have ended, so mpirun gets 0. Slurm keeps the code in its records.
        """
        deadline, let_go = time.monotonic() + self._patience, False
        if outcome.reason != "ended":
            while not let_go and not self._wire.closed and (left := deadline - time.monotonic()) > 0:
                select.select([self._wire], [], [], left)
                let_go = any(word.get("word") == "go" for word in self._wire.words())
        self._wire.close()
        return 0 if let_go and not self._srun else outcome.exit_code

    def _report_ending(self) -> None:
        attempt = self._attempt
        if attempt is None:
            return
        if attempt.state.signal and not self._srun:
            # An mpirun that ends its job says why. (Slurm's signals are those of scancel and time limits.)
            self._told_to_end |= attempt.signals.senders.get(attempt.state.signal) == self._parent.pid
            if self._told_to_end:
                self._wire.send({"ended_by_engine": True})
        if attempt.state.reason != "ended" and not self._told_to_end:
            self._wire.send({"cause": self._cause(attempt.outcome()).as_dict()})

    def _cause(self, outcome: Outcome) -> Cause:
        first = None
        if outcome.first is not None:
            killed = oom.kills().since(self._oom_kills)
            first = report.first_failure(outcome.first, killed_by_oom=killed)
        return Cause(self._host, outcome.reason, outcome.exit_code, outcome.detail, outcome.signal, first)

    def _lose_parent(self, attempt: Attempt) -> None:
        parent = self._parent
        what = f"{parent.name} (pid {parent.pid}) on {self._host} was killed, or has ended before its ranks"
        attempt.console.abandon()  # Its pipe from us may be full.
        attempt.end("daemon", what)

    def _hear(self, attempt: Attempt) -> None:
        wire = self._wire
        for word in wire.words():
            if word.get("word") == "kill":
                self._told_to_end = True
                attempt.kill()
            elif word.get("word") == "end":
                self._told_to_end = self._told_to_end or not attempt.state.is_ending
                attempt.end_for(Cause.parse(word.get("cause"), self._host))
        if wire.closed:
            self._told_to_end = True
            attempt.on_readable(wire.fileno(), None)
            attempt.console.abandon()  # What the engine does not take any more must not hold us.
            attempt.end("host", "the launcher was killed, or its host is down or cut off")


def _connected(told: str, srun: str) -> Wire:
    """Return a connection on which the launcher has answered; another host may have one of its addresses."""
    token, _, rest = told.partition("@")
    port, _, listed = rest.partition("@")
    addresses = [address for address in dict.fromkeys((srun, *listed.split(","), "127.0.0.1")) if address]
    for address in addresses if port else ():
        wire = wires.connect((address, int(port)), _REACH)
        if wire is None:
            continue
        wire.send({"hello": token})
        if _is_welcome(wire):
            return wire
        wire.close()
    where = f"at {', '.join(addresses)}, port {port}" if port else f"{LAUNCHER_VARIABLE} is not set"
    raise LaunchError(
        f"{node_names.own_node_name()} cannot reach the launcher that has started it: {where}",
        hint="allow TCP connections from the job's hosts to the host where the job is started",
    )


def _is_welcome(wire: Wire) -> bool:
    deadline = time.monotonic() + _ANSWER
    while not wire.closed and (left := deadline - time.monotonic()) > 0:
        select.select([wire], [], [], left)
        for said in wire.words():
            return said.get("word") == "welcome"
    return False
