"""The connection to the launcher from an agent: the supervisor that mpirun or srun starts on a host.

The engine's own connection is not enough: unsent output keeps it open for 15 minutes after a cable was cut,
and srun never probes its connection. Over this connection a supervisor detects within seconds that its
launcher was killed or is unreachable, and ends its ranks. It also watches its parent, an engine process.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster.credentials import UnprovedAnswers
from hccl_tools.launch.cluster.sent_output import SentOutput, token_of
from hccl_tools.launch.model.outcome import MOST_HUNG_RANKS, Cause
from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join, RankExit
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE, STDOUT
from hccl_tools.launch.protocol.connection import connect, proved
from hccl_tools.launch.protocol.messages import (
    LARGEST_FROM_CONTROLLER,
    End,
    Ending,
    EvidenceTaken,
    Hung,
    Kill,
    Look,
    Quiet,
    Release,
    Table,
)
from hccl_tools.launch.report import hints, report
from hccl_tools.notation.printable import tell
from hccl_tools.processes import timing
from hccl_tools.processes.parent import Parent
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.records import NamedTuple
from hccl_tools.runs import hosts
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.logs.terminal import Stream
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.launch.supervise.attempt import Attempt

#: The address of Slurm's srun for the nodes of its step.
_SRUN_ADDRESS = "SLURM_SRUN_COMM_HOST"


class Timing(NamedTuple):
    """Timeouts of an agent in its protocol with the launcher, in seconds.

    Attributes:
        connect: To connect to one address.
        answer: For the launcher's proof that it has the key of the job.
        retry: Between two attempts, if something else has answered.
        table: For the rank table.
        other_hosts: Added to the grace time, for all other hosts to end their ranks.
        parent: For the exit of an engine process that is exiting when the ranks of this host have ended.
    """

    connect: float = 2.0
    answer: float = 5.0
    retry: float = 0.5
    table: float = 60.0
    other_hosts: float = 10.0
    parent: float = 2.0


TIMING = timing.from_environment("agent", Timing())


class AgentLink:
    """Reports the state of this host's part of the job, and receives requests to end it."""

    def __init__(self, environ: MutableMapping[str, str], silence: float, join_timeout: float) -> None:
        """Connect to the launcher, and remove its address and the key from the environment of the ranks.

        ``silence`` is in seconds; see ``connection``. As long as something else answers in place of the
        launcher, this host tries again, for at most ``join_timeout`` seconds.

        Raises:
            LaunchError: The launcher cannot be reached.
        """
        self._parent = Parent()
        self._oom_kills = hints.kills()
        self._srun = environ.get(_SRUN_ADDRESS, "")
        try:
            search = _Search(environ.pop(LAUNCHER_VARIABLE, ""), self._srun, silence)
            self._connection, self._early = search.connect(join_timeout)
            self._search = search
        except LaunchError:
            self._parent.end_waiting_daemon()
            raise
        self._host = hosts.own_node_name()
        #: Where the output of the ranks goes that are shown; ``None``: to standard output.
        self.stream: Stream | None = None
        self._release_timeout = 0.0
        #: Whether this part ends on request, and therefore reports no cause.
        self._end_requested = False
        #: The loss of the engine's process on this host, if the launcher knew only that the engine had ended.
        self._daemon_lost: Cause | None = None
        self._attempt: Attempt | None = None
        #: Ends the ranks, once the evidence of all hosts is taken.
        self._end_ranks: Callable[[], None] = lambda: None

    def table(self) -> bytes:
        """Wait for the rank table.

        Raises:
            LaunchError: The launcher has exited, or has not sent a table.
        """
        deadline = time.monotonic() + TIMING.table
        while not self._early and not self._connection.closed and (left := deadline - time.monotonic()) > 0:
            wait_readable(left, self._connection)
            self._early += self._connection.messages()
        if self._early and isinstance(first := self._early.pop(0), Table):
            return first.data
        raise LaunchError(f"{self._host} has not received the table from the launcher")

    def begin(self, plan: Plan) -> None:
        """Report that this host has begun its part, and open the way for the output that is shown."""
        token = token_of(plan) if self._search.sends_output else ""
        self._join(plan, token)
        if not token:
            return
        if connection := self._search.connect_output(token):
            self.stream = SentOutput(connection, plan)
        else:
            tell(f"hccl-tools: {self._host}: no second connection to the launcher, which is for the output")

    def _join(self, plan: Plan, token: str = "") -> None:
        """Report that this host takes part, with its node name in Slurm."""
        first = plan.local[0]
        self._host = first.host
        parent = (os.uname().nodename, self._parent.pid)
        self._connection.send(
            Join(first.server_index, os.getpid(), parent, hosts.own_node_name(), plan.run_dir, token)
        )

    def refuse(self, error: HcclToolsError, plan: Plan | None) -> None:
        """Report the error that prevents this host from starting its part; ``plan`` identifies the host."""
        if plan is not None:
            self._join(plan)
        self._connection.send(Ending(Cause.lost(self._host, "refused", error.message)))

    def watch(self, attempt: Attempt) -> None:
        """Read the launcher's messages, watch the engine, and report the cause of an early end."""
        self._attempt, self._release_timeout = attempt, attempt.state.longest_end + TIMING.other_hosts
        attempt.on_ending.append(self._report_ending)
        attempt.on_readable(self._connection.fileno(), lambda: self._read(attempt))
        attempt.share_evidence = self._share_evidence
        attempt.report_quiet = lambda idle: self._connection.send(Quiet(round(idle, 3)))
        self._parent.watch(attempt.reactor, lambda: self._parent_ended(attempt))

    def _share_evidence(self, proceed: Callable[[], None]) -> None:
        self._end_ranks = proceed
        if self._connection.closed:
            proceed()
        else:
            self._connection.send(EvidenceTaken())

    def report_end(self, outcome: Outcome) -> None:
        """Report how the ranks of this host exited; all their processes have exited."""
        ends = tuple(RankExit.of(end) for end in outcome.ends if end.process.rank >= 0)
        attempt = self._attempt
        if attempt and self._daemon_lost is None and self._may_lack_parent(attempt):
            # The engine's process may be exiting since before this host's part ended.
            self._daemon_lost = self._parent_loss() if self._parent.exits_within(TIMING.parent) else None
        cause = self._cause(outcome) if outcome.reason != "ended" and not self._end_requested else None
        hung, evidence = tuple(outcome.hung[:MOST_HUNG_RANKS]), tuple(outcome.evidence)
        self._connection.send(Ended(ends, self._daemon_lost or cause, hung, evidence=evidence))

    def end(self, outcome: Outcome) -> int:
        """Disconnect and return the exit code; after a failure, first wait until all ranks have exited.

        After a nonzero exit code, mpirun kills the other hosts' ranks; Open MPI 4 needs up to 9 s for that.
        The launcher knows the ranks' exit codes, so mpirun gets 0. Slurm gets the exit code, for its records.
        """
        deadline, is_released = time.monotonic() + self._release_timeout, False
        if outcome.reason != "ended":
            while not is_released and not self._connection.closed:
                if (left := deadline - time.monotonic()) <= 0:
                    break
                wait_readable(left, self._connection)
                is_released = any(isinstance(message, Release) for message in self._connection.messages())
            if self._connection.closed and not is_released:
                self._parent.end_waiting_daemon()
        self._connection.close()
        return 0 if is_released and not self._srun else outcome.exit_code

    def _report_ending(self) -> None:
        attempt = self._attempt
        if attempt is None:
            return
        if attempt.state.signal and not self._srun:
            # mpirun reports why it ends its job. (Slurm's signals come from scancel and time limits.)
            self._end_requested |= attempt.signals.senders.get(attempt.state.signal) == self._parent.pid
            if self._end_requested:
                self._connection.send(EndedByEngine())
        if attempt.state.reason != "ended" and not self._end_requested:
            self._connection.send(Ending(self._cause(attempt.outcome())))

    def _cause(self, outcome: Outcome) -> Cause:
        first = None
        if outcome.first_failure is not None:
            killed = hints.kills().since(self._oom_kills)
            first = report.first_failure(outcome.first_failure, killed_by_oom=killed)
        return outcome.cause(self._host, first)

    def _parent_ended(self, attempt: Attempt) -> None:
        loss = self._parent_loss()
        attempt.console.abandon()  # The pipe to the parent may be full.
        if self._may_lack_parent(attempt):
            self._daemon_lost = loss
        attempt.end("daemon", loss.detail)

    def _parent_loss(self) -> Cause:
        parent = self._parent
        what = f"{parent.name} (pid {parent.pid}) was killed, or exited before its ranks"
        return Cause.lost(self._host, "daemon", what)

    def _may_lack_parent(self, attempt: Attempt) -> bool:
        """Return whether the loss of the parent may explain the end of the job.

        mpirun may detect the loss, and end the job, before this process runs again.
        """
        remote = attempt.state.remote_cause
        return remote is not None and remote.reason == "daemon" and not self._has_signalled(attempt)

    def _has_signalled(self, attempt: Attempt) -> bool:
        """Return whether the parent has sent a signal: an engine signals its processes before it exits.

        SIGCONT is the kernel's, at the end of the parent.
        """
        senders = attempt.signals.senders.items()
        return any(sender == self._parent.pid and number != signal.SIGCONT for number, sender in senders)

    def _read(self, attempt: Attempt) -> None:
        connection = self._connection
        early, self._early = self._early, []
        for message in (*early, *connection.messages()):
            if isinstance(message, Kill):
                self._end_requested = True
                attempt.kill()
            elif isinstance(message, End):
                self._end_requested = self._end_requested or not attempt.state.is_ending
                attempt.end_for(message.cause)
            elif isinstance(message, Look) and attempt.describe_ranks is not None:
                attempt.describe_ranks(
                    lambda found: self._connection.send(Hung(tuple(found[:MOST_HUNG_RANKS])))
                )
            elif isinstance(message, EvidenceTaken):
                self._end_ranks()
        if connection.closed:
            self._end_ranks()
            self._end_requested = True
            attempt.on_readable(connection.fileno(), None)
            attempt.console.abandon()  # The engine may no longer read this output.
            attempt.end("host", "the launcher was killed, or its host is down or unreachable")


class _Search:
    """The search for the launcher: another host, or another program, may have one of its addresses.

    ``variable`` contains key, port and addresses, the last of which is ``STDOUT`` if output goes to standard
    output; ``srun`` is Slurm's address of the launcher's host.
    """

    def __init__(self, variable: str, srun: str, silence: float) -> None:
        self._key, _, rest = variable.partition("@")
        self._port, _, rest = rest.partition("@")
        listed = rest.split(",")
        self.sends_output = STDOUT not in listed
        candidates = dict.fromkeys((srun, *listed, "127.0.0.1"))
        self._addresses = (
            [address for address in candidates if address not in {"", STDOUT}] if self._port else []
        )
        self._silence, self._host = silence, hosts.own_node_name()
        self._answers = UnprovedAnswers("")
        #: The number of connections that were accepted.
        self._answered = 0
        #: The address that has led to the launcher.
        self._found = ""

    def connect(self, seconds: float) -> tuple[Connection, list[Message]]:
        """Return a connection to the launcher, and the first messages.

        Raises:
            LaunchError: No address answers, something else has answered for so many seconds, or the launcher
                has another version.
        """
        deadline = time.monotonic() + seconds
        while True:
            before = self._answered
            for address in self._addresses:
                if found := self._try(address):
                    return found
            if self._answered == before or time.monotonic() >= deadline:
                raise self._unreachable()
            time.sleep(TIMING.retry)

    def connect_output(self, token: str) -> Connection | None:
        """Return another connection to the launcher, for output; ``None`` on failure."""
        connected = self._open(self._found, token)
        if connected is None or proved(connected, TIMING.answer) is not None:
            return connected
        connected.close()
        return None

    def _open(self, address: str, output: str = "") -> Connection | None:
        return connect(
            (address, int(self._port)),
            bytes.fromhex(self._key),
            silence=self._silence,
            seconds=TIMING.connect,
            largest=LARGEST_FROM_CONTROLLER,
            output=output,
        )

    def _try(self, address: str) -> tuple[Connection, list[Message]] | None:
        connected = self._open(address)
        if connected is None:
            return None
        self._answered += 1
        messages = proved(connected, TIMING.answer)
        if messages is not None:
            self._found = address
            return connected, messages
        line = self._answers.note(connected, int(self._port))
        connected.close()
        if connected.is_proved and connected.problem is not None and connected.problem.version:
            raise LaunchError(
                f"{self._host} cannot reach the launcher of the job: it has hccl-tools "
                f"{connected.problem.version}, and this host has {__version__}",
                hint="install the same version of hccl-tools on all hosts",
            )
        if line:
            tell(f"hccl-tools: {self._host}: {line}")
        return None

    def _unreachable(self) -> LaunchError:
        where = f"{LAUNCHER_VARIABLE} is not set"
        if self._port:
            where = f"no answer at {', '.join(self._addresses)}, port {self._port}"
        if heard := self._answers.summary():
            where += f"; {heard}"
        return LaunchError(
            f"{self._host} cannot reach the launcher of the job: {where}",
            hint="allow TCP connections from the job's hosts to the host where the job is started",
        )
