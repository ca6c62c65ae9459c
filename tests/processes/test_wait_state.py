"""What a process waits for, seen on real processes: files and pipes, in a child, in a thread."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import wait_state
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hccl_tools.processes.wait_state import WaitState

#: In Python, on a folder with a FIFO and a file that is locked by another process.
FLOCK = "import fcntl; fcntl.flock(open('file'), fcntl.LOCK_EX)"
PROGRAMS = {
    "openat": "open('fifo')",
    "flock": FLOCK,
    "write": "import os; [os.write(os.pipe()[1], bytes(1 << 20)) for _ in range(2)]",
    "read": "import os; os.read(os.pipe()[0], 1)",
}
RECEIVE = "import socket; one, other = socket.socketpair(); one.recv(1)"
IN_A_THREAD = f"import threading; t = threading.Thread(target=lambda: exec({FLOCK!r})); t.start(); t.join()"
IN_A_WORKER = f"import os, time; os.fork() or exec({FLOCK!r}); time.sleep(1000)"
STOPPED_CHILD = "import os, signal; os.fork() or os.kill(os.getpid(), signal.SIGSTOP); os.wait()"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> Iterator[None]:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    holder = subprocess.Popen(["flock", "file", "sh", "-c", "echo held; read line"], cwd=tmp_path, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    yield
    holder.communicate()


@contextmanager
def running(folder: Path, *command: str) -> Iterator[int]:
    process = subprocess.Popen(command, cwd=folder, start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def python(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program]


def found(pid: int, call: str) -> WaitState:
    """Return the state once it is in a call, or stopped if the call is empty."""
    states: list[WaitState] = []

    def is_reached() -> bool:
        state = wait_state.of(pid)
        if state is None or (state.call != call if call else not state.is_stopped):
            return False
        states.append(state)
        return True

    assert eventually(is_reached), wait_state.of(pid)
    return states[0]


@pytest.mark.parametrize("call", PROGRAMS)
def test_a_process_that_waits_for_a_file_or_a_pipe_waits_for_no_other_rank(tmp_path: Path, call: str) -> None:
    with running(tmp_path, *python(PROGRAMS[call])) as pid:
        assert found(pid, call).waits_outside


def test_a_process_that_receives_from_another_may_wait_for_a_rank(tmp_path: Path) -> None:
    with running(tmp_path, *python(RECEIVE)) as pid:
        state = found(pid, "recvfrom")

    assert not state.waits_outside
    assert state.description == "sleeping in recvfrom() on a socket"


def test_the_child_of_a_shell_is_described_and_not_the_shell(tmp_path: Path) -> None:
    with running(tmp_path, "sh", "-c", '"$@"; exit $?', "sh", *python(FLOCK)) as pid:
        state = found(pid, "flock")

    assert state.pid != pid
    assert state.description == f"sleeping in flock() on {tmp_path}/file"


def test_a_stopped_child_is_described(tmp_path: Path) -> None:
    with running(tmp_path, *python(STOPPED_CHILD)) as pid:
        assert found(pid, "").pid != pid


@pytest.mark.parametrize("program", [IN_A_THREAD, IN_A_WORKER], ids=["thread", "worker"])
def test_a_stuck_thread_or_worker_is_described(tmp_path: Path, program: str) -> None:
    with running(tmp_path, *python(program)) as pid:
        assert found(pid, "flock").waits_outside


def test_threads_and_workers_that_wait_for_work_at_a_pipe_are_not_described(tmp_path: Path) -> None:
    idle = "import os; os.read(os.pipe()[0], 1)"
    program = (
        f"import os, threading; threading.Thread(target=lambda: exec({idle!r})).start(); "
        f"os.fork() or exec({idle!r}); {RECEIVE}"
    )
    with running(tmp_path, *python(program)) as pid:
        assert found(pid, "recvfrom").pid == pid
