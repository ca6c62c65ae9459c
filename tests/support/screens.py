"""Run the command line on a terminal of a stated size, and return what a user sees, line by line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from functools import cache

from hccl_tools.notation.screen import cells

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Shown:
    """What a command has left on the screen, and its exit code."""

    raw: str
    code: int

    @property
    def lines(self) -> list[str]:
        """The lines without colours, each in its last state."""
        return [_STYLE.sub("", line).rpartition("\r")[2] for line in self.raw.split("\n") if line]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def joined(self) -> str:
        """The text with its lines joined as they were before they were broken."""
        return re.sub(r"\s+", " ", self.text)

    def wider_than(self, columns: int) -> list[str]:
        """The lines that could have been broken: their last words are no long paths."""
        return [
            line for line in self.lines if cells(line) > columns and cells(line.split()[-1]) < columns - 24
        ]


@cache
def _own_processes() -> tuple[str, ...]:
    """Return what runs a command in a PID namespace of its own; empty if this user may not make one."""
    unshare = ("unshare", "--pid", "--fork", "--mount-proc")
    may = shutil.which("unshare") and not subprocess.run([*unshare, "true"], check=False).returncode
    return unshare if may else ()


def on_terminal(
    *args: str,
    columns: int = 80,
    rows: int = 24,
    ctrl_c_after: str = "",
    alone: bool = False,
    **variables: str,
) -> Shown:
    """Run ``hccl-tools`` as the foreground process of a terminal; type Ctrl-C when a text is shown.

    Args:
        alone: Let it see no processes but its own, as far as this user may; runs of other tests are others.
    """
    awaited = ctrl_c_after.encode()
    argv = [*(_own_processes() if alone else ()), sys.executable, "-m", "hccl_tools", *args]
    pid, descriptor = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environ = {**os.environ, "TERM": "xterm-256color", **variables}
        os.execvpe(argv[0], argv, environ)  # noqa: S606
    data = b""
    while True:
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:  # The last process has closed the terminal.
            break
        if not part:
            break
        data += part
        if awaited and awaited in data:
            os.write(descriptor, b"\x03")
            awaited = b""
    _, status = os.waitpid(pid, 0)
    os.close(descriptor)
    return Shown(data.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(status))
