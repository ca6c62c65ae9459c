"""Watch the hosts whose supervisor has not connected: they are lost, or slow.

An engine may wait forever for a host that is lost while the job starts. Until every supervisor has connected,
the launcher probes each missing host in rounds. A host is lost if it neither runs a command of the engine nor
answers on the port of ssh. Both are needed: a site may forbid ssh to its nodes, and a firewall may drop
packets. A host that answers may be slow, for example because of its file system or its login: the launcher
names it, and ends the job only after ``--join-timeout``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.launch import engines
from hccl_tools.launch.cluster.job_addresses import resolved
from hccl_tools.launch.cluster.verdict import ranks_text
from hccl_tools.launch.logs import excerpt
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes import parent, procfs, timing
from hccl_tools.processes.signals import spawn
from hccl_tools.programs.lookup import find_program
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.cluster.agents import Agents
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.procfs import Status
    from hccl_tools.processes.signals import Helper

#: The maximum number of hosts that are probed in one round.
_MOST_ASKED = 64
#: The hosts that a message names.
_MOST_NAMED = 4
_SSH_PORT = 22

#: Seconds between two checks.
_CHECK_SECONDS = 0.5

#: The most bytes of output: of all, as a host may print without end, and of what is shown.
_MOST_OUTPUT, _MOST_SAID = 1 << 16, 1 << 12


class Timing(NamedTuple):
    """Times of a start, in seconds.

    Attributes:
        notice: From the start until a message names the hosts that have not connected.
    """

    notice: float = 20.0


TIMING = timing.from_environment("start", Timing())


class MissingHosts:
    """Watches one start of a job.

    ``lost`` is called with the servers that are lost, and why.
    """

    def __init__(
        self, attempt: Attempt, agents: Agents, plan: Plan, lost: Callable[[Sequence[int], str], None]
    ) -> None:
        self._attempt, self._agents, self._plan, self._lost = attempt, agents, plan, lost
        #: A host that is lost right after a round is noticed at the end of the next one.
        self._round_seconds = plan.host_timeout / 2
        self._asked: dict[int, _Question] = {}
        self._has_told = False
        attempt.on_ending.append(self._stop)
        attempt.call_later("missing hosts", self._round_seconds, self._next_round)
        attempt.call_later("join timeout", plan.join_timeout, self._end_late_start)

    @property
    def _missing(self) -> list[int]:
        return [] if self._attempt.state.is_ending else sorted(self._agents.missing)

    def _next_round(self) -> None:
        missing = self._missing
        silent = [
            number for number, asked in self._asked.items() if number in missing and not asked.answered()
        ]
        before = list(self._asked)
        self._stop()
        if not missing:
            return
        if silent:
            self._lost(silent, "it does not answer")
            return
        if not self._has_told and self._attempt.age >= TIMING.notice:
            self._has_told = True
            self._attempt.say(
                f"still waiting for {self._named(missing)} to start; "
                f"the job ends after {self._plan.join_timeout:g} s (--join-timeout)"
            )
        hosts = self._agents.hosts
        # Those that were not asked in the last round come first.
        missing.sort(key=before.__contains__)
        others = (number for number in missing if not is_this_host(self._plan.way_to(hosts[number])))
        self._asked = {number: _Question(self._plan, hosts[number]) for number in islice(others, _MOST_ASKED)}
        self._attempt.call_later("missing hosts", self._round_seconds, self._next_round)

    def _end_late_start(self) -> None:
        if missing := self._missing:
            limit = f"{self._plan.join_timeout:g} s"
            self._lost(missing, f"it was not ready within {limit} (--join-timeout)")

    def _named(self, servers: Sequence[int]) -> str:
        names = [f"{self._agents.hosts[one]} ({ranks_text(self._agents.ranks[one])})" for one in servers]
        return and_more(names, _MOST_NAMED)

    def _stop(self) -> None:
        for asked in self._asked.values():
            asked.close()
        self._asked = {}


class _Question:
    """Asks a host for a sign of life, without waiting for it."""

    def __init__(self, plan: Plan, host: str) -> None:
        self._socket: socket.socket | None = None
        self._error = errno.EINPROGRESS
        self._command = HostProbe(plan, host)
        for address in sorted(resolved([plan.way_to(host)]))[:1]:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with suppress(OSError):
                self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                self._error = self._socket.connect_ex((address, _SSH_PORT))

    def answered(self) -> bool:
        """Return whether the host has run the command, or has accepted or refused the connection.

        Without a way to run a command, a firewall cannot be told from a lost host: the host may be there.
        """
        if self._command.has_succeeded or not self._command.has_started:
            return True
        if self._socket is not None and self._error == errno.EINPROGRESS:
            poller = select.poll()
            poller.register(self._socket, select.POLLOUT)
            if poller.poll(0):
                self._error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return self._error in {0, errno.ECONNREFUSED}

    def close(self) -> None:
        """End the command and the connection."""
        self._command.close()
        if self._socket is not None:
            self._socket.close()


def watch(
    attempt: Attempt, hosts: Callable[[], tuple[list[str], int]], run_dir: str, lost: Callable[[str], None]
) -> None:
    """End the job when a process that mpiexec needs to reach a host has exited.

    ``hosts`` reads what the supervisors have sent, and returns the hosts whose supervisor has not connected,
    and the number of disconnected hosts.
    ``lost`` is called with a description of a process lost after all hosts had connected.
    """

    def check() -> None:
        ended_children = len(_ended(attempt))  # First: a host disconnects before its ssh exits.
        missing, gone = hosts()
        if not missing:
            for child in _children(attempt):
                parent.on_end_of(child.pid, attempt.reactor, partial(ended, child))
        elif ended_children <= gone:
            attempt.call_later("unreached", _CHECK_SECONDS, check)
        else:
            errors = excerpt.last_lines(excerpt.log_end(os.path.join(run_dir, names.ENGINE_ERRORS)), 1)
            why = f"{', '.join(missing)} cannot be reached" + "".join(f": {line}" for line in errors)
            attempt.end("refused", why)

    def ended(child: Status) -> None:
        name = procfs.read(f"/proc/{child.pid}/comm").strip()
        what = f"{name} (pid {child.pid}) was killed, or exited before its ranks"
        attempt.call_later(f"ended {child.pid}", _CHECK_SECONDS, partial(check_loss, what))

    def check_loss(what: str) -> None:
        if len(_ended(attempt)) > hosts()[1]:
            lost(what)

    check()


def _children(attempt: Attempt) -> list[Status]:
    engine = next(end for end in attempt.state.ends if end.process.rank >= 0)
    return [process for process in procfs.processes().values() if engine.pid and process.parent == engine.pid]


def _ended(attempt: Attempt) -> list[Status]:
    return [process for process in _children(attempt) if process.state in procfs.ENDED_STATES]


class HostProbe:
    """A command that runs on a host; by default it only shows that the host runs commands."""

    def __init__(self, plan: Plan, host: str, command: Sequence[str] = ("true",)) -> None:
        self._output = _bounded_file()
        self._process: Helper | None = None
        with suppress(OSError, HcclToolsError):
            argv = engines.of(plan).probe(plan, host, command)
            program = find_program(argv[0], os.environ.get("PATH", os.defpath))
            self._process = spawn([program, *argv[1:]], stdout=self._output, stderr=self._output)

    @property
    def has_started(self) -> bool:
        """Whether the engine has a way to run the command: without an ssh there is none."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended, or could not be started."""
        return self._process is None or self._process.ended()

    @property
    def has_succeeded(self) -> bool:
        """Whether the command has ended with exit code 0."""
        return self._process is not None and self._process.ended() and self._process.code == 0

    @property
    def said(self) -> str:
        """The end of what the command has written so far, to stdout and stderr."""
        written = os.pread(self._output, _MOST_OUTPUT, 0).rstrip(b"\0")
        return written[-_MOST_SAID:].decode(errors="replace")

    def close(self) -> None:
        """Kill the command if it still runs."""
        if self._process is not None:
            self._process.end()
        os.close(self._output)


def _bounded_file() -> int:
    """Return a file in memory that cannot grow: a write past its end fails."""
    file = os.memfd_create("probe", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, _MOST_OUTPUT)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return file
