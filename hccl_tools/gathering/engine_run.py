"""Run ``mpirun`` or ``srun`` with a time limit and capture its output."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.gathering.failures import Failure
from hccl_tools.gathering.stdout_framing import LONGEST_LINE, TOO_MUCH, EngineOutput
from hccl_tools.notation.printable import escaped
from hccl_tools.programs.without_key import without_key
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.gathering.messages import SurveyAnswer

#: Linux refuses longer arguments (MAX_ARG_STRLEN: 128 KiB).
LONGEST_ARGUMENT = 130_000
#: Seconds after SIGTERM in which an engine can stop its processes on the other hosts.
_GRACE_S = 3.0
#: Variables that Open MPI and Slurm set for the processes they start; another engine must not inherit them.
_LAUNCHER_VARIABLES = ("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PMIX_", "PMI_", "PRTE_", "SLURM_STEP")
_SETTINGS = ("PMIX_MCA_", "PRTE_MCA_")


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
    output = output or EngineOutput()
    reader = threading.Thread(target=_read, args=(child.stdout, output), daemon=True)
    reader.start()
    try:
        status: int | None = child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        _end(child)
        reader.join(_GRACE_S)
    return EngineRun(output, status)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an engine: the user's, without variables of an enclosing engine."""
    kept = {
        name: value
        for name, value in without_key(environ).items()
        if name.startswith(_SETTINGS) or not name.startswith(_LAUNCHER_VARIABLES)
    }
    # Let the step share cores that other steps use (Slurm 20.11 and later).
    return {**kept, "SLURM_OVERLAP": "1", "LC_ALL": "C.UTF-8"}


def _read(printed: IO[bytes], output: EngineOutput) -> None:
    # As bytes: a line of text would also end at a carriage return, after which srun writes no label.
    with printed:
        while line := printed.readline(LONGEST_LINE):
            output.add_line(line.decode("utf-8", "replace"))


def _end(child: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM: only the engine can stop its processes on other hosts. Kill it after the grace time."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)


def misbehaving(hosts: Sequence[str], ended: EngineRun) -> list[Failure]:
    """Return the failure of each host that sent too much, or wrote the name of another host."""
    output = ended.output
    return [Failure(host, TOO_MUCH) for host in hosts if host in output.flooded] + [
        Failure(host, f'it answered in the name of "{escaped(output.impostors[host])}"')
        for host in hosts
        if host in output.impostors and host not in output.flooded
    ]


def hanging(
    silent: Sequence[str], causes: Sequence[Failure], ended: EngineRun, seconds: float
) -> list[Failure]:
    """Return the failure of each silent host without a known cause: it did not answer in time."""
    known = {cause.host for cause in causes}
    found = []
    for host in (host for host in silent if host not in known):
        began = host in ended.output.began
        what = "its process started but did not answer" if began else "no process started there"
        hint = "allow more time: --gather-timeout SECONDS" if began else None
        found.append(Failure(host, f"{what} within {seconds:g} s", hint))
    return found


def indented(ended: EngineRun) -> list[str]:
    """Return the last lines of an engine for a message."""
    return [f"  | {line}" for line in ended.last_lines()] or ["  without a message"]
