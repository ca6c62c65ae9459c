"""Ask a host of a job, through its engine, to run a command."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.launch import engines
from hccl_tools.processes.signals import spawn
from hccl_tools.programs.lookup import find_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.processes.signals import Helper

#: The most bytes of output: of all, as a host may print without end, and of what is shown.
_MOST_OUTPUT, _MOST_SAID = 1 << 16, 1 << 12


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
