"""Find and run the tools of a host, such as hccn_tool and npu-smi.

This module does not import ``subprocess``, because the import takes as long as running the tools.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.programs.environment import without_key
from hccl_tools.programs.lookup import is_program, on_path
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.host.site_defaults import Site

#: Bytes of each stream of a tool that are kept; the longest answers have some 10,000.
_MOST_KEPT = 1 << 20
#: Characters of a tool's output that are shown.
_SHOWN = 300
_SIGKILL = 9


class ToolOutput(NamedTuple):
    """What a tool printed, up to 1 MiB of each stream, and its exit status.

    A negative status is the signal that killed it.
    """

    command: tuple[str, ...]
    stdout: str
    stderr: str
    status: int

    def summary(self) -> str:
        """Return what the tool printed as one line, stderr first, with the exit status."""
        printed = " / ".join(
            line.strip() for line in (self.stderr + "\n" + self.stdout).splitlines() if line.strip()
        )
        printed = printed if len(printed) <= _SHOWN else printed[: _SHOWN - 3] + "..."
        end = f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        return f'"{printed}" ({end})' if printed else f"nothing ({end})"


class ToolStoppedError(DiscoveryError):
    """The answer of a tool is not needed any more; the tool and its child processes were killed."""


class ToolHangsError(DiscoveryError):
    """A tool exceeded its time limit; it and its child processes were killed."""


def find_tool(site: Site, name: str, *elsewhere: str) -> str | None:
    """Return the path of a tool of the host: on PATH, else the first of the default places, else None."""
    there = on_path(name, site.environ)
    return there or next((place for place in map(site.path, elsewhere) if is_program(place)), None)


def run_tool(command: Sequence[str], site: Site) -> ToolOutput:
    """Run a tool until it exits.

    Args:
        command: The program's path and its arguments; no shell is involved.

    Raises:
        ToolHangsError: The tool exceeded the time limit.
        ToolStoppedError: The descriptor ``stop`` of the site was readable.
        DiscoveryError: The tool cannot be started.
    """
    wait(0.0, site)
    out, err = os.pipe(), os.pipe()
    deadline = time.monotonic() + site.tool_timeout
    try:
        pid = _start(command, site, out[1], err[1])
        try:
            printed = _read((out[0], err[0]), deadline, site)
            status = _wait(pid, deadline) if printed is not None else None
        except BaseException:
            _end(pid)
            raise
    finally:
        os.close(out[0])
        os.close(err[0])
    if printed is None or status is None:
        _end(pid)
        shown = " ".join([os.path.basename(command[0]), *command[1:]])
        raise ToolHangsError(
            f'"{shown}" did not exit within {site.tool_timeout:g} s and was killed',
            hint="check that the driver responds: `npu-smi info`; a longer limit: --tool-timeout SECONDS",
        )
    stdout, stderr = (printed[side[0]].decode("utf-8", "backslashreplace") for side in (out, err))
    # os.waitstatus_to_exitcode needs Python 3.9.
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    return ToolOutput(tuple(command), stdout, stderr, code)


def wait(seconds: float, site: Site) -> None:
    """Wait before the next call of a tool.

    Raises:
        ToolStoppedError: The descriptor ``stop`` of the site is readable.
    """
    if site.stop < 0:
        if seconds:
            time.sleep(seconds)
        return
    waiting = select.poll()
    waiting.register(site.stop, select.POLLIN)
    if waiting.poll(seconds * 1000.0):
        raise ToolStoppedError("the answer is not needed any more")


def _start(command: Sequence[str], site: Site, stdout: int, stderr: int) -> int:
    """Start a tool in its own session with empty standard input; close the write ends of the pipes here."""
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    )
    environ = {**without_key(site.environ), "LC_ALL": "C"}
    try:
        return os.posix_spawn(command[0], list(command), environ, file_actions=streams, setsid=True)
    except OSError as error:
        raise DiscoveryError(
            f"cannot start {command[0]}: {error.strerror}", hint="check the file, or specify another one"
        ) from error
    finally:
        os.close(stdout)
        os.close(stderr)


def _read(pipes: Sequence[int], deadline: float, site: Site) -> dict[int, bytearray] | None:
    """Return the beginning of what a tool prints, by pipe; None at the deadline."""
    printed = {pipe: bytearray() for pipe in pipes}
    # Not select.select: a launcher of many ranks has descriptors above its limit of 1,023.
    waiting = select.poll()
    for pipe in pipes if site.stop < 0 else (*pipes, site.stop):
        waiting.register(pipe, select.POLLIN)
    unfinished = len(pipes)
    while unfinished:
        left = deadline - time.monotonic()
        ready = waiting.poll(left * 1000.0) if left > 0 else []
        if not ready:
            return None
        for pipe, _ in ready:
            if pipe == site.stop:
                raise ToolStoppedError("the answer is not needed any more")
            if part := os.read(pipe, 1 << 16):
                printed[pipe] += part[: _MOST_KEPT - len(printed[pipe])]
            else:
                waiting.unregister(pipe)
                unfinished -= 1
    return printed


def _wait(pid: int, deadline: float) -> int | None:
    """Wait for a tool that has closed its streams; return None at the deadline."""
    pause = 0.0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause + 0.0001, 0.05)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, _SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
