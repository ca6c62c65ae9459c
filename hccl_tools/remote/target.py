"""Run an archive at the other end of a connection, and remove it in every case.

The text of this module is sent to the target and executed there: it needs nothing but Python 3.8.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds from SIGTERM to SIGKILL of the archive's process.
_GRACE_SECONDS = 2.0
_PR_SET_CHILD_SUBREAPER = 36
#: The archive sees neither packages of the target nor its user's settings for Python.
_PYTHON_OPTIONS = ("-I", "-S", "-B")


def main(job: Mapping[str, Any]) -> int:
    """Read an archive from standard input, run it, and return its exit code.

    The archive's process ends with the connection, at the time limit, and on SIGTERM, SIGINT and SIGHUP. Then
    the private folder with the archive is removed.

    Args:
        job: ``size`` and ``sha256`` of the archive, its arguments ``argv``, and the time limit ``seconds``.
    """
    until = time.monotonic() + job["seconds"]
    archive = sys.stdin.buffer.read(job["size"])
    if hashlib.sha256(archive).hexdigest() != job["sha256"]:
        return _failed("the program that was sent has another SHA-256 here: it is incomplete or changed")
    woken = _wake_on_signals()
    try:
        folder = tempfile.mkdtemp(prefix="hccl-tools-")  # mode 0700
    except OSError as error:
        return _failed(f"no temporary directory can be made: {error}")
    try:
        return _run(archive, Path(folder, "hccl-tools.pyz"), job["argv"], woken, until)
    except OSError as error:
        return _failed(f"{error.filename or folder}: {error.strerror}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failed(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 1


def _wake_on_signals() -> int:
    """Return a pipe that gets the number of each signal; none ends the process."""
    woken, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.alarm(0)  # from here on, the time limit ends the archive's process only
    return woken


def _run(archive: bytes, path: Path, argv: list[str], woken: int, until: float) -> int:
    path.write_bytes(archive)
    _adopt_orphans()
    command = [sys.executable, *_PYTHON_OPTIONS, str(path), *argv]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True)
    try:
        _wait(child, woken, until)
    finally:
        _end(child)
        for left in _children(os.getpid()):
            _kill_tree(left)
    return child.wait()


def _adopt_orphans() -> None:
    """Become the parent of what the archive leaves behind, such as a tool that it started while it ended."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait(child: subprocess.Popen[bytes], woken: int, until: float) -> None:
    """Return when the child, the connection or the time ends, or a signal arrives."""
    while child.poll() is None:
        ready, _, _ = select.select([0, woken], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        if woken in ready and set(os.read(woken, 512)) != {signal.SIGCHLD}:
            return
        if 0 in ready and not os.read(0, 512):
            return


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and its processes; at SIGTERM, it kills the tool that it runs."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _kill_tree(child.pid)


def _kill_tree(pid: int) -> None:
    """Kill a process and all below it, in any session. It is stopped first, so that it starts no more."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return
    for child in _children(pid):
        _kill_tree(child)
    os.kill(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        if int(fields[1]) == parent:
            found.append(int(folder.name))
    return found
