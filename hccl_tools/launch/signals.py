"""The signals that a launcher receives, as a descriptor in its one poll() instead of handlers in between.

What was ignored when the launcher started is the caller's wish: nohup ignores SIGHUP, and the shell of a
script ignores SIGINT and SIGQUIT for its background jobs. SIGHUP then stays ignored. SIGINT and SIGQUIT do so
when the terminal sends them to the whole group; ``kill -INT`` is meant for us and is obeyed.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hccl_tools.launch import kernel

if TYPE_CHECKING:
    from types import TracebackType

#: The signals that ask the job to end; they are passed on first.
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP})
#: The signals that mean something to the ranks' program only.
PASSED_ON = frozenset({signal.SIGUSR1, signal.SIGUSR2})
_JOB_CONTROL = frozenset({signal.SIGTSTP, signal.SIGCONT})
#: Blocked and not looked at: a background job may write to its terminal (SIGTTOU) even under ``stty tostop``.
_UNWANTED = frozenset({signal.SIGTTOU})


class Signals:
    """While entered, the signals above wait to be read instead of taking effect."""

    def __init__(self) -> None:
        handled = ENDING | PASSED_ON | _JOB_CONTROL
        self._ignored = {number for number in handled if signal.getsignal(number) is signal.SIG_IGN}
        self._handled = handled - (self._ignored & {signal.SIGHUP})
        self._mask: set[int] = set()
        self._descriptor = -1

    def __enter__(self) -> Signals:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._handled | _UNWANTED)
        self._descriptor = kernel.signal_descriptor(self._handled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kernel.read_signals(self._descriptor)  # What came too late must not take effect now.
        os.close(self._descriptor)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def fileno(self) -> int:
        """Readable when ``read`` has something to give."""
        return self._descriptor

    def read(self) -> list[int]:
        """The signals that have come since the last call; does not block."""
        return [
            number
            for number, from_process, _ in kernel.read_signals(self._descriptor)
            if from_process or number not in self._ignored
        ]


def stop_self() -> None:
    """Stop this process, as Ctrl-Z would, until somebody sends SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def run_unblocked() -> tuple[set[int], set[int]]:
    """The signal mask and the signals to reset for a program that the launcher starts itself."""
    return set(), {signal.SIGPIPE, signal.SIGXFSZ}
