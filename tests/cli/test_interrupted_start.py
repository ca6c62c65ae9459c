"""Ctrl-C that arrives where Python cannot raise it, such as in a callback at the end of an import."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.jobs import LONG

#: A callback of the garbage collector gets the signal; then the process waits, as the test says.
PROGRAM = """\
import os, signal, sys, weakref
from hccl_tools.__main__ import prepare
prepare()
class Lock: pass
lock = Lock()
reference = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
del lock
"""
WAITS = {
    "by Python": "import time; time.sleep(300)",
    "by the launcher": "only = {signal.SIGINT}; signal.pthread_sigmask(signal.SIG_BLOCK, only)\n"
    "signal.sigwait(only); sys.exit(77)",
}


@pytest.mark.parametrize(("waits", "code"), [("by Python", -signal.SIGINT), ("by the launcher", 77)])
def test_an_interrupt_in_a_callback_is_not_lost(waits: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + WAITS[waits]],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )

    assert done.returncode == code, done.stderr
