"""How a child learns that its parent has exited, also while the kernel has not completed the exit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

#: exit(2), which ends one thread, by the machine.
_EXIT = {"x86_64": 60, "aarch64": 93}

#: The child answers each line with whether its parent has exited, and exits within so many seconds.
CHILD = """\
import sys, time
from hccl_tools.processes.parent import Parent
parent = Parent()
print(parent.pid, flush=True)
for line in sys.stdin:
    has_ended, began = parent.has_ended, time.monotonic()
    print(has_ended, parent.exits_within(float(line)), time.monotonic() - began, flush=True)
"""
#: The parent's first thread exits after the first line on its input; the other thread exits after the next.
PARENT = """\
import ctypes, os, subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=int(sys.argv[2]))
def exit_later():
    begin.wait()
    os.read(0, 1)
    os._exit(0)
begin = threading.Event()
threading.Thread(target=exit_later).start()
os.read(0, 1)
begin.set()
ctypes.CDLL(None).syscall(int(sys.argv[3]), 0)
"""


class Family:
    """A parent, and its child that is asked about it."""

    def __init__(self) -> None:
        child_input, self.asked = os.pipe()
        argv = [sys.executable, "-c", PARENT, CHILD, str(child_input), str(_EXIT[platform.machine()])]
        self.parent = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[child_input], bufsize=0
        )
        os.close(child_input)
        self.pid = int(self.answer())

    def answer(self) -> str:
        assert self.parent.stdout is not None
        return self.parent.stdout.readline().decode()

    def ask(self, seconds: float) -> None:
        os.write(self.asked, f"{seconds}\n".encode())

    def go_on(self) -> None:
        assert self.parent.stdin is not None
        self.parent.stdin.write(b".")

    def close(self) -> None:
        os.close(self.asked)
        self.parent.kill()
        self.parent.communicate()


@pytest.fixture
def family() -> Iterator[Family]:
    if platform.machine() not in _EXIT:
        pytest.skip("the number of exit(2) is not known here")
    made = Family()
    yield made
    made.close()


def test_a_running_parent_is_not_waited_for(family: Family) -> None:
    family.ask(LONG)
    has_ended, exits, seconds = family.answer().split()

    assert (has_ended, exits) == ("False", "False")
    assert float(seconds) < LONG / 2


def test_an_exiting_parent_is_waited_for(family: Family) -> None:
    family.go_on()
    assert eventually(lambda: Path(f"/proc/{family.pid}/stat").read_text().split(") ")[1][0] == "Z")
    family.ask(0.01)
    assert family.answer().split()[:2] == ["False", "False"]

    family.ask(LONG)
    family.go_on()

    assert family.answer().split()[1] == "True"


def test_a_parent_that_has_exited_has_exited(family: Family) -> None:
    family.go_on()
    family.go_on()
    family.parent.wait()

    family.ask(0.0)

    assert family.answer().split()[:2] == ["True", "True"]
