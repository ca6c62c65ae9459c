"""A launcher in the background of a terminal."""

from __future__ import annotations

import os
import pty
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from pathlib import Path

LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--no-table", "-n", "1")
COMMAND = (*LAUNCH, "--no-python", "sh", "-c", "echo up")


def run_in_background(command: tuple[str, ...]) -> None:
    """In a session of its own, with a terminal whose background jobs stop when they write (stty tostop)."""
    settings = termios.tcgetattr(0)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(0, termios.TCSANOW, settings)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.execv(command[0], command)  # noqa: S606  (no shell)
    with suppress(PermissionError):  # The child has done it, and has started the program.
        os.setpgid(job, job)
    _, status = os.waitpid(job, os.WUNTRACED)
    os._exit(99 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status))


def test_a_background_job_may_write_to_a_terminal_under_tostop(tmp_path: Path) -> None:
    session, terminal = pty.fork()
    if session == 0:
        run_in_background(COMMAND)
    written = bytearray()

    def ended() -> bool:
        try:
            written.extend(os.read(terminal, 65536))
        except OSError:  # So a terminal says that nobody has it open any more.
            return True
        return False

    assert eventually(ended, LONG)
    _, status = os.waitpid(session, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"up\r\n" in written
    assert b"1 rank" in written
