"""Run one of the Ascend tools and keep everything it says: both streams and the exit status.

``subprocess`` would take as long to load as the tools take to answer.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import DiscoveryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.discover.site import Site

#: Characters of a tool's words that are shown.
_SHOWN = 300
_SIGKILL = 9


class Answer(NamedTuple):
    """What a tool printed and how it ended; a negative status is the signal that ended it."""

    command: tuple[str, ...]
    stdout: str
    stderr: str
    status: int

    def words(self) -> str:
        """Return what the tool said on one line, errors first, with the exit status."""
        said = " / ".join(
            line.strip() for line in (self.stderr + "\n" + self.stdout).splitlines() if line.strip()
        )
        said = said if len(said) <= _SHOWN else said[: _SHOWN - 3] + "..."
        end = f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        return f'"{said}" ({end})' if said else f"nothing ({end})"


class ToolHangsError(DiscoveryError):
    """A tool did not end in the time it was given; it has been ended, with everything it started."""


def run(command: Sequence[str], site: Site) -> Answer:
    """Run a tool to its end.

    Args:
        command: The program's path and its arguments; no shell is involved.
        site: Its environment and the seconds it may take.

    Raises:
        ToolHangsError: It took longer.
        DiscoveryError: It cannot be started at all.
    """
    out, err = os.pipe(), os.pipe()
    deadline = time.monotonic() + site.tool_timeout
    try:
        pid = _start(command, site, out[1], err[1])
        try:
            told = _read({out[0]: [], err[0]: []}, deadline)
            status = _wait(pid, deadline) if told is not None else None
        except BaseException:
            _end(pid)
            raise
    finally:
        os.close(out[0])
        os.close(err[0])
    if told is None or status is None:
        _end(pid)
        shown = " ".join([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119
        raise ToolHangsError(
            f'"{shown}" did not end within {site.tool_timeout:g} s and was ended',
            hint="see whether the driver answers: `npu-smi info`; a longer time: --tool-timeout SECONDS",
        )
    stdout, stderr = (b"".join(told[side[0]]).decode("utf-8", "backslashreplace") for side in (out, err))
    return Answer(tuple(command), stdout, stderr, os.waitstatus_to_exitcode(status))


def _start(command: Sequence[str], site: Site, stdout: int, stderr: int) -> int:
    """Start a tool in a session of its own, with nothing to read; the pipes' writing ends are closed here."""
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    )
    environ = {**site.environ, "LC_ALL": "C"}
    try:
        return os.posix_spawn(command[0], list(command), environ, file_actions=streams, setsid=True)
    except OSError as error:
        raise DiscoveryError(
            f"cannot start {command[0]}: {error.strerror}", hint="check the file, or name another one"
        ) from error
    finally:
        os.close(stdout)
        os.close(stderr)


def _read(told: dict[int, list[bytes]], deadline: float) -> dict[int, list[bytes]] | None:
    """Read some pipes to their ends; None where that takes too long."""
    unfinished = set(told)
    while unfinished:
        ready = select.select(unfinished, (), (), max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            return None
        for pipe in ready:
            if part := os.read(pipe, 1 << 16):
                told[pipe].append(part)
            else:
                unfinished.remove(pipe)
    return told


def _wait(pid: int, deadline: float) -> int | None:
    """Wait for a tool that has closed its streams; None where it does not end."""
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
    """End a tool and its own children, which hold the same pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, _SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
