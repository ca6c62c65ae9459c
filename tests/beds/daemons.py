"""Start the daemons of a test bed and end them by their process id."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import ExitStack

#: How long a daemon may take to come up or to go. A busy machine with two cores stays far below it.
PATIENCE_S = 60.0


def missing(programs: Iterable[str]) -> str:
    """Return what a bed with these programs lacks here, "" for nothing."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [program for program in programs if shutil.which(program, path=search_path()) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def need(bed: str, programs: Iterable[str]) -> None:
    """Leave the test out, with the name of its bed, unless this is root and has the programs."""
    if why := missing(programs):
        pytest.skip(f"bed {bed}: {why}")


def search_path() -> str:
    """PATH with the folders of system programs, which an ordinary login often lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def program(name: str) -> str:
    """The full path of a program that ``need`` has found (sshd insists on being started by it)."""
    found = shutil.which(name, path=search_path())
    assert found is not None, name
    return found


def wait_until(condition: Callable[[], bool], what: str, *, log: Path | None = None) -> None:
    """Wait for a condition; name what did not happen, with the end of ``log``, if it stays away."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            said = log.read_text(errors="replace")[-2000:] if log and log.exists() else ""
            pytest.fail(f"not within {PATIENCE_S:.0f} s: {what}\n{said}")
        time.sleep(0.05)


#: Runs a program and waits for all that this leaves behind, as the init of a host does: Slurm takes a node
#: with zombies out of service. SIGTERM is passed on.
_INIT = """
import ctypes, os, signal, sys
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
daemon = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
signal.signal(signal.SIGTERM, lambda *_: os.kill(daemon, signal.SIGTERM))
while True:
    ended, status = os.wait()
    if ended == daemon:
        sys.exit(os.waitstatus_to_exitcode(status))
"""


class Daemon:
    """One process that stays in the foreground, under an init, in a process group of its own."""

    def __init__(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _INIT, *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if env is None else dict(env),
                start_new_session=True,
            )

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process: politely, then not."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def start_helper(stack: ExitStack, argv: Sequence[str]) -> subprocess.Popen[str]:
    """Start a program of a bed, which prints ``ready`` when it is; the stack ends it."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.enter_context(process)
    stack.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", f"not ready: {' '.join(argv)}"
    return process


def end_processes(pids: Callable[[], Sequence[int]]) -> None:
    """Kill every process that ``pids`` lists until it lists none."""

    def none_left() -> bool:
        for pid in (left := pids()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_until(none_left, "the end of the bed's processes")


def pids_with_environment(entry: str) -> list[int]:
    """The processes whose environment holds ``entry``, zombies left out."""
    wanted = entry.encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            held = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in held:
            found.append(int(folder.name))
    return found
