"""The signals that a launcher receives, as a descriptor in its poll() instead of handlers.

Signals that were ignored when the launcher started stay ignored: nohup ignores SIGHUP, a script's shell
ignores SIGINT and SIGQUIT for background jobs. The launcher ignores the latter two only if the terminal sends
them to the whole group; ``kill -INT`` ends the job.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hccl_tools.processes import linux
from hccl_tools.programs.environment import without_key

if TYPE_CHECKING:
    from types import TracebackType

#: The signals that end the job; the launcher first forwards them to the ranks.
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP})
#: The signals that are for the ranks' program only.
FORWARDED = frozenset({signal.SIGUSR1, signal.SIGUSR2})
_JOB_CONTROL = frozenset({signal.SIGTSTP, signal.SIGCONT})

_NAMELESS = "signal "


def allow_background_output() -> None:
    """Allow a background job to write to its terminal under ``stty tostop``, which would stop it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})


class Signals:
    """A context in which the job's signals are queued to be read instead of taking effect."""

    def __init__(self) -> None:
        handled = ENDING | FORWARDED | _JOB_CONTROL
        self._ignored = {number for number in handled if signal.getsignal(number) is signal.SIG_IGN}
        self._handled = handled - (self._ignored & {signal.SIGHUP})
        self._mask: set[int] = set()
        #: The process that has last sent a signal, by signal number.
        self.senders: dict[int, int] = {}
        self._descriptor = -1

    def __enter__(self) -> Signals:  # noqa: PYI034  (Self needs Python 3.11)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._handled)
        allow_background_output()
        self._descriptor = linux.signal_descriptor(self._handled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        linux.read_signals(self._descriptor)  # A late signal must not take effect now.
        os.close(self._descriptor)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def fileno(self) -> int:
        """Return a descriptor that is readable when a signal has arrived."""
        return self._descriptor

    def read(self) -> list[int]:
        """Return the signals since the last call; does not block."""
        received = linux.read_signals(self._descriptor)
        self.senders |= {number: sender for number, _, sender in received}
        return [number for number, from_process, _ in received if from_process or number not in self._ignored]


def stop_self() -> None:
    """Stop this process, as Ctrl-Z would, until SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


class Helper:
    """A program that the launcher runs for itself (py-spy, ``--notify``), not a part of the job.

    ``code`` is the exit code once the program has exited, -n for signal n.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def ended(self) -> bool:
        """Return whether the program has exited; does not wait."""
        return self.code is not None or self._reap(os.WNOHANG)

    def end(self) -> None:
        """Kill the process group of the helper if the helper is still running."""
        if not self.ended():
            os.killpg(self.pid, signal.SIGKILL)
            self._reap(0)

    def _reap(self, options: int) -> bool:
        pid, status = os.waitpid(self.pid, options)
        if pid == self.pid:
            self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None


def spawn(argv: list[str], *, stdin: int = -1, stdout: int = 2, stderr: int = 2, **variables: str) -> Helper:
    """Start a helper program with default signals in its own process group.

    ``argv`` begins with a path. Without ``stdin`` the program reads /dev/null. The program does not inherit
    the job key.
    """
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    source = null if stdin < 0 else stdin
    pid = os.posix_spawn(
        argv[0],
        argv,
        {**without_key(os.environ), **variables},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, source, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
        setpgroup=0,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )
    os.close(null)
    return Helper(pid)


def signal_name(number: int) -> str:
    """Return ``SIGKILL`` for 9, ``signal 35`` for a number without a name in Python."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"{_NAMELESS}{number}"


def signal_number(name: str) -> int:
    """Return the number for a result of ``signal_name``.

    Raises:
        ValueError: ``name`` is not the name of a signal.
    """
    if name.startswith(_NAMELESS):
        return int(name.removeprefix(_NAMELESS))
    if name not in signal.Signals.__members__:
        raise ValueError(f"not the name of a signal: {name}")
    return signal.Signals[name].value
