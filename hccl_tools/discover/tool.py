"""Run one of the Ascend tools and keep everything it says: both streams and the exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import DiscoveryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.discover.site import Site

#: Characters of a tool's words that are shown.
_SHOWN = 300


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
    shown = " ".join([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**site.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise DiscoveryError(
            f"cannot start {command[0]}: {error.strerror}", hint="check the file, or name another one"
        ) from error
    try:
        stdout, stderr = child.communicate(timeout=site.tool_timeout)
    except subprocess.TimeoutExpired:
        _end(child)
        raise ToolHangsError(
            f'"{shown}" did not end within {site.tool_timeout:g} s and was ended',
            hint="see whether the driver answers: `npu-smi info`; a longer time: --tool-timeout SECONDS",
        ) from None
    except BaseException:
        _end(child)
        raise
    return Answer(tuple(command), _text(stdout), _text(stderr), child.returncode)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a tool and its own children, which hold the same pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
