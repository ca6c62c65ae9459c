"""A supervisor's wire to the launcher that has had it started by mpirun or srun.

The engine's own connection does not do: output on its way into a cable that was cut keeps it open for a
quarter of an hour, and srun's is never asked about. By this one a supervisor knows within seconds that its
launcher was killed or its host is cut off, and ends its ranks. Where it does not come about, what is to be
said goes through the engine's output instead, or into the run directory beside the launcher.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import end_messages, host_ends, rank_ends
from hccl_tools.launch import wire as wires
from hccl_tools.launch.other_hosts import LAUNCHER_VARIABLE
from hccl_tools.launch.run_directory import HOLDER
from hccl_tools.launch.signals import ENDING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from hccl_tools.errors import HcclToolsError
    from hccl_tools.launch.attempt import Attempt
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan
    from hccl_tools.launch.wire import Wire

#: Where Slurm's srun is reached from the nodes of its step.
_SRUN_ADDRESS = "SLURM_SRUN_COMM_HOST"
#: Seconds to reach an address, for the launcher's answer, for a reader of standard output, and beyond the
#: grace time for all other hosts to have ended their ranks.
_REACH, _ANSWER, _READER, _OTHERS = 2.0, 5.0, 1.0, 10.0
#: What any pipe takes at once (PIPE_BUF).
_SAFE = 4096


class EngineWire:
    """Where a supervisor says how it goes on its host, and hears when it has to end."""

    def __init__(self, run_dir: str, environ: MutableMapping[str, str]) -> None:
        """Take out of the environment, for no rank to see it, where the launcher is."""
        self._run_dir = run_dir
        self._token, _, self._place = environ.pop(LAUNCHER_VARIABLE, "").partition("@")
        self._srun = environ.get(_SRUN_ADDRESS, "")
        self._wire: Wire | None = None
        self._patience = 0.0
        self._plan: Plan | None = None

    def begin(self, plan: Plan) -> None:
        """Reach the launcher and say that this host begins its part."""
        self._plan = plan
        port, _, addresses = self._place.partition("@")
        if port:
            others = (self._srun, *addresses.split(","), "127.0.0.1")
            hello = {"hello": self._token, "server": host_ends.server_of(plan)}
            self._wire = _reached(int(port), [address for address in dict.fromkeys(others) if address], hello)
        self._tell(host_ends.began(plan))

    def refuse(self, error: HcclToolsError) -> None:
        """Say that this host does not start its part."""
        self._tell(host_ends.refused(error))

    def watch(self, attempt: Attempt) -> None:
        """Say when the end begins here, and begin it when the launcher says so or is lost."""
        self._patience = attempt.grace + _OTHERS
        attempt.on_ending.append(self._tell_ending)
        if self._wire is not None:
            attempt.on_readable(self._wire.fileno(), lambda: self._hear(attempt))

    def end(self, outcome: Outcome) -> None:
        """Say how this host's part ended, and hang up."""
        if outcome.reason == "ended" and self._plan is not None:
            self._tell(host_ends.ended(self._plan))
        if outcome.reason == "failed" and outcome.first is not None:
            self._tell(rank_ends.failed(outcome.first))
        if self._wire is not None:
            if outcome.reason != "ended" and not self._wire.closed:
                # To an engine the first that goes is the cause; Open MPI 4 then leaves the others 2 s.
                self._wire.send({"hccl_tools": host_ends.DONE})
                select.select([self._wire], [], [], self._patience)
            self._wire.close()

    def _tell_ending(self) -> None:
        if self._plan is not None:
            self._tell(host_ends.ending(self._plan))

    def _tell(self, facts: dict[str, Any]) -> None:
        facts = {**facts, "time": facts.get("time", time.time())}
        if self._wire is not None:
            self._wire.send(facts)
            return
        data = (json.dumps(facts, ensure_ascii=False) + "\n").encode()
        with contextlib.suppress(OSError):  # Nobody may be there any more to hear it.
            if not _is_launchers_host(self._run_dir):
                _write_patiently(end_messages.mark(self._token).encode() + data)
                return
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(os.path.join(self._run_dir, host_ends.ENDS_FILE), flags, 0o644)
            os.write(descriptor, data)
            os.close(descriptor)

    def _hear(self, attempt: Attempt) -> None:
        wire = self._wire
        if wire is None:
            return
        for word in wire.words():
            if word.get("word") == "kill":
                attempt.kill()
            elif word.get("word") == "end":
                number = word.get("signal", signal.SIGTERM)
                attempt.end("host", str(word.get("why")), number if number in ENDING else signal.SIGTERM)
        if wire.closed:
            attempt.on_readable(wire.fileno(), None)
            attempt.console.abandon()  # What the engine does not take any more must not hold us.
            attempt.end("host", "the launcher was killed, or its host is down or cut off")


def _reached(port: int, addresses: list[str], hello: dict[str, Any]) -> Wire | None:
    """Return a wire on which the launcher has answered; somebody else may have an address of its, too."""
    for address in addresses:
        wire = wires.connect((address, port), _REACH)
        if wire is None:
            continue
        wire.send(hello)
        if _is_welcome(wire):
            return wire
        wire.close()
    return None


def _is_welcome(wire: Wire) -> bool:
    deadline = time.monotonic() + _ANSWER
    while not wire.closed and (left := deadline - time.monotonic()) > 0:
        select.select([wire], [], [], left)
        for said in wire.words():
            return said.get("word") == "welcome"
    return False


def _is_launchers_host(run_dir: str) -> bool:
    """Whether the launcher that has started the supervisors runs on this host."""
    try:
        with open(os.path.join(run_dir, HOLDER), encoding="utf-8") as file:
            pid, host = file.read().split("\n")[:2]
    except (OSError, ValueError):
        return False
    return host == os.uname().nodename and pid != str(os.getpid())


def _write_patiently(data: bytes) -> None:
    """Write to standard output; a reader that takes nothing for a second is none."""
    poller = select.poll()
    poller.register(1, select.POLLOUT)
    while data and poller.poll(_READER * 1000):
        data = data[os.write(1, data[:_SAFE]) :]
