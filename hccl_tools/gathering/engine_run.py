"""Run ``mpirun`` or ``srun`` for a stated time and keep everything that comes out of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import DiscoveryError
from hccl_tools.gathering.stdout_framing import EngineOutput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: An engine that was told to end gets this long to take its processes on the other hosts with it.
_GRACE_S = 3.0
#: What Open MPI and Slurm set for the processes they start; another engine under us must not see it.
_OTHERS_PLACE = ("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PMIX_", "PMI_", "PRTE_", "SLURM_STEP")
_SETTINGS = ("PMIX_MCA_", "PRTE_MCA_")


class EngineRun(NamedTuple):
    """How one run of an engine ended: what was output, its exit status, None where its time was up."""

    output: EngineOutput
    status: int | None

    def last_words(self, count: int = 8) -> list[str]:
        """Return the last lines that say something."""
        lines = [line.strip() for line in self.output.other]
        return [line for line in lines if line.strip("-* ")][-count:]


def run(command: Sequence[str], seconds: float, environ: Mapping[str, str]) -> EngineRun:
    """Run an engine until it ends or its time is up; then it and its processes are ended.

    Raises:
        DiscoveryError: It cannot be started.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace", env=environment(environ), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise DiscoveryError(f"cannot start {command[0]}: {error.strerror}") from error
    output = EngineOutput()
    reader = threading.Thread(target=_read, args=(child, output), daemon=True)
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
    """Return the environment of an engine: the user's, without the place another engine has given us."""
    kept = {
        name: value
        for name, value in environ.items()
        if name.startswith(_SETTINGS) or not name.startswith(_OTHERS_PLACE)
    }
    # A step of an allocation that is in use already shares its cores (Slurm 20.11 and later).
    return {**kept, "SLURM_OVERLAP": "1", "LC_ALL": "C.UTF-8"}


def _read(child: subprocess.Popen[str], output: EngineOutput) -> None:
    with contextlib.suppress(ValueError):  # closed under us when a grandchild keeps it open
        for line in child.stdout or ():
            output.take(line)


def _end(child: subprocess.Popen[str]) -> None:
    """End what still runs: politely, as only mpirun and srun can end their processes elsewhere; then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
