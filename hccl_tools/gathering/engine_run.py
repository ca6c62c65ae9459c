"""Run ``mpirun`` or ``srun`` with a time limit and capture its output."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.gathering.failures import Failure
from hccl_tools.gathering.stdout_framing import (
    LONGEST_LINE,
    MOST_OF_HOST,
    TOO_MUCH,
    TWO_ANSWERS,
    EngineOutput,
)
from hccl_tools.notation.printable import escaped
from hccl_tools.processes import procfs
from hccl_tools.programs.environment import without_key
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.gathering.messages import SurveyAnswer

#: Linux refuses longer arguments (MAX_ARG_STRLEN: 128 KiB).
LONGEST_ARGUMENT = 130_000
#: Seconds after SIGTERM in which an engine can stop its processes on the other hosts.
_GRACE_S = 3.0
#: The bytes that are read at once, and the seconds between two looks whether the engine has exited.
_CHUNK, _PAUSE_S = 1 << 16, 0.05
#: Variables that Open MPI and Slurm set for the processes they start; another engine must not inherit them.
_LAUNCHER_VARIABLES = ("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PMIX_", "PMI_", "PRTE_", "SLURM_STEP")
_SETTINGS = ("PMIX_MCA_", "PRTE_MCA_")
_FLOOD = f"the engine was ended: it printed more than {MOST_OF_HOST >> 20} MiB that are not an answer"


class EngineRun(NamedTuple):
    """The result of one run of an engine: its output, and its exit status or None after the time limit."""

    output: EngineOutput
    status: int | None

    def last_lines(self, count: int = 8, about: str | None = None) -> list[str]:
        """Return the last lines except blank and ruling lines; ``about`` leaves out those of other hosts."""
        others = self.output.other
        lines = [line.strip() for sender, line in others if not about or sender in {None, about}]
        return [line for line in lines if line.strip("-* ")][-count:]


class EngineOutcome(NamedTuple):
    """The result of one run of an engine, by host; ``output`` for a failure without a known host."""

    answers: dict[str, SurveyAnswer]
    causes: list[Failure]
    output: Sequence[str] = ()


def run(
    command: Sequence[str],
    seconds: float,
    environ: Mapping[str, str],
    output: EngineOutput | None = None,
) -> EngineRun:
    """Run an engine until it exits; kill it and its processes after the time limit.

    ``output`` gets what it prints.

    Raises:
        DiscoveryError: The engine cannot be started.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment(environ), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        hint = "specify --engine ssh, which has no such limit" if error.errno == errno.E2BIG else None
        raise DiscoveryError(f"cannot start {command[0]}: {error.strerror}", hint=hint) from error
    running = _Running(child, output or EngineOutput())
    has_exited = False
    try:
        has_exited = running.wait(seconds)
    finally:
        running.end()
    return EngineRun(running.output, child.returncode if has_exited else None)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an engine: the user's, without variables of an enclosing engine."""
    kept = {
        name: value
        for name, value in without_key(environ).items()
        if name.startswith(_SETTINGS) or not name.startswith(_LAUNCHER_VARIABLES)
    }
    # Let the step share cores that other steps use (Slurm 20.11 and later).
    return {**kept, "SLURM_OVERLAP": "1", "LC_ALL": "C.UTF-8"}


class _Running:
    """A running engine, and the reader of its output.

    Open MPI starts each ssh in a process group of its own, which the signals to the engine do not reach. Such
    a process can hold the pipe and print for as long as the other host likes. Its output is therefore read
    here and not in a thread, which would outlive the engine, and the whole session is ended.
    """

    def __init__(self, child: subprocess.Popen[bytes], output: EngineOutput) -> None:
        assert child.stdout is not None  # noqa: S101  (for mypy)
        self.output = output
        self._child, self._pipe = child, child.stdout
        self._begun = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._pipe, selectors.EVENT_READ)

    def wait(self, seconds: float) -> bool:
        """Read until the engine has exited; return whether it has within the time.

        It is not waited for any longer once its own output is too much.
        """
        was_flooded, until = self.output.is_flooded, time.monotonic() + seconds
        while not self._has_exited():
            if (left := until - time.monotonic()) <= 0 or (self.output.is_flooded and not was_flooded):
                return False
            self._read(min(left, _PAUSE_S))
        return True

    def end(self) -> None:
        """End the engine and the processes that it has left, and read the rest of the output."""
        try:
            if not self._has_exited():
                # Only the engine can stop its processes on other hosts.
                os.killpg(self._child.pid, signal.SIGTERM)
                self.wait(_GRACE_S)
            else:
                self._read_rest()
            # The child is reaped later: until then, no other session has its number.
            procfs.kill_until_gone(self._kill, timeout=_GRACE_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_GRACE_S)
            self._read_rest()
            self._add(b"", is_end=True)
        finally:
            self._selector.close()
            self._pipe.close()

    def _has_exited(self) -> bool:
        return os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _kill(self) -> int:
        found = procfs.of_session(self._child.pid)
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        return len(found)

    def _read_rest(self) -> None:
        """Read to the end of the output; a process of another session may hold it, but not for ever."""
        until = time.monotonic() + _GRACE_S
        while self._selector.get_map() and (left := until - time.monotonic()) > 0:
            self._read(left)

    def _read(self, seconds: float) -> None:
        """Read what is there, or wait for it, or for the time if the output has ended."""
        for _ in self._selector.select(seconds):
            data = os.read(self._pipe.fileno(), _CHUNK)
            if not data:
                self._selector.unregister(self._pipe)
            self._add(data)

    def _add(self, data: bytes, *, is_end: bool = False) -> None:
        # As bytes: a line of text would also end at a carriage return, after which srun writes no label.
        lines, self._begun = io.BytesIO(self._begun + data), b""
        while line := lines.readline(LONGEST_LINE):
            if not is_end and len(line) < LONGEST_LINE and not line.endswith(b"\n"):
                self._begun = line
                return
            self.output.add_line(line.decode("utf-8", "replace"))


def misbehaving(hosts: Sequence[str], ended: EngineRun) -> list[Failure]:
    """Return the failure of each host that sent too much, wrote another name, or has two answers."""
    output = ended.output
    found = [Failure(host, TOO_MUCH) for host in hosts if host in output.flooded]
    found += [
        Failure(host, f'it answered in the name of "{escaped(output.impostors[host])}"')
        for host in hosts
        if host in output.impostors and host not in output.flooded
    ]
    named = output.flooded | output.impostors.keys()
    return found + [Failure(host, TWO_ANSWERS) for host in hosts if host in output.contradicted - named]


def hanging(
    silent: Sequence[str], causes: Sequence[Failure], ended: EngineRun, seconds: float,
    *, unstarted: str | None = None,
) -> list[Failure]:  # fmt: skip
    """Return the failure of each silent host without a known cause: it did not answer in time.

    ``unstarted`` is the hint on a host on which no process began.
    """
    known = {cause.host for cause in causes}
    found = []
    for host in (host for host in silent if host not in known):
        began = host in ended.output.began
        if ended.output.is_flooded:
            found.append(Failure(host, f"it did not answer, and {_FLOOD}"))
            continue
        what = "its process started but did not answer" if began else "no process started there"
        hint = "allow more time: --gather-timeout SECONDS" if began else unstarted
        found.append(Failure(host, f"{what} within {seconds:g} s", hint))
    return found


def indented(ended: EngineRun) -> list[str]:
    """Return the last lines of an engine for a message."""
    return [f"  | {line}" for line in ended.last_lines()] or ["  without a message"]
