"""Linux calls that Python lacks, prctl(2) and signalfd(2), and exec in a child that uses them.

The keeper and the launcher are built on them: a subreaper inherits orphaned descendants, a parent-death
signal ends a process with its parent, and a signal descriptor lets one poll() wait for signals, processes and
output.
"""

from __future__ import annotations

import os
import struct

# Without the rest of ctypes, 0.8 ms of a launch and of its keeper.
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    CFuncPtr,
    _SimpleCData,
    addressof,
    dlopen,
    get_errno,
)

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable
    from typing import Any
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_SIGSET_BYTES = 128
_SIGINFO_BYTES = 128
_SIGINFO_HEAD = struct.Struct("=IiiI")  # ssi_signo, ssi_errno, ssi_code, ssi_pid

_SIG_SETMASK = 2

#: Dispositions that Python, nohup or a shell's ``&`` may have changed; a rank gets the default.
_CHANGED_SIGNALS = (
    signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM,
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU,
)  # fmt: skip


class _Int(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class _Long(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "L"


class _Char(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "c"


class _Library:
    """The C library of this process."""

    _handle = dlopen(None, 0)  # type: ignore[arg-type]


class _Function(CFuncPtr):
    """A function of the C library that returns an int; Python keeps its errno."""

    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


def _function(name: str) -> _Function:
    return _Function((name, _Library))  # type: ignore[arg-type]


_prctl, _signalfd, _sigprocmask, _sigemptyset, _sigaddset = (
    _function(name) for name in ("prctl", "signalfd", "sigprocmask", "sigemptyset", "sigaddset")
)
_NOTHING = _Long(0)


class Received(NamedTuple):
    """One signal: its number, whether a process sent it (not the kernel, as for Ctrl-C), and its sender."""

    number: int
    from_process: bool
    sender: int


def _control(option: int, value: int) -> None:
    if _prctl(option, _Long(value), _NOTHING, _NOTHING, _NOTHING) != 0:
        raise _error(f"prctl({option})")


def _error(call: str) -> OSError:
    error = get_errno()
    return OSError(error, os.strerror(error), call)


def _buffer(size: int) -> Any:
    return (_Char * size)()


def signal_main_thread(pid: int, number: int) -> None:
    """Send a signal to the main thread of a process: to the process alone, any thread may get it.

    ``faulthandler`` dumps the stack of the thread that gets the signal, and a thread of a library has none.

    Raises:
        ProcessLookupError: There is no such process.
        PermissionError: The process belongs to another user.
    """
    try:
        tgkill = _function("tgkill")
    except AttributeError:  # glibc before 2.30
        os.kill(pid, number)
        return
    if tgkill(pid, pid, number) != 0:
        raise _error(f"tgkill({pid})")


def become_subreaper(wanted: bool = True) -> None:
    """Make orphaned descendants children of this process instead of init."""
    _control(_PR_SET_CHILD_SUBREAPER, int(wanted))


def die_with_parent(signal_number: int) -> None:
    """Request a signal for when the parent exits; the caller then checks that the parent still runs."""
    _control(_PR_SET_PDEATHSIG, signal_number)


def reset_signals() -> None:
    """Restore the default disposition of the signals that a parent may have ignored or handled."""
    for number in _CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class ChildSetup:
    """Turns a forked child into a program in its own session.

    The parent prepares as much as possible: an object that a child creates, or
    whose reference count changes, makes the kernel copy a page of memory.
    """

    def __init__(self) -> None:
        self._death = (_Int(_PR_SET_PDEATHSIG), _Long(signal.SIGKILL), _NOTHING, _NOTHING, _NOTHING)
        self._no_signals = _buffer(_SIGSET_BYTES)
        self._mask = (_Int(_SIG_SETMASK), self._no_signals, _NOTHING)

    def exec(
        self,
        execute: Callable[[], object],
        *,
        parent: int,
        stdin: int,
        log: int,
        errors: int = -1,
        cpus: Collection[int] = (),
    ) -> None:
        """Execute a program that is killed when its parent exits; return only if the parent has exited.

        ``execute`` calls one of Python's exec functions; ``stdin``, ``log`` (for stdout) and ``errors`` (for
        stderr; by default the log) are descriptors. The program may use the cores ``cpus``, by default the
        cores of its parent.

        Raises:
            OSError: The program cannot be run.
        """
        os.setsid()
        _prctl(*self._death)
        if os.getppid() != parent:
            return
        os.dup2(stdin, 0)
        os.dup2(log, 1)
        os.dup2(log if errors < 0 else errors, 2)
        if cpus:
            os.sched_setaffinity(0, cpus)
        _sigprocmask(*self._mask)
        execute()


def name_process(name: str) -> None:
    """Set the name that ``ps -o comm`` and ``top`` show; at most 15 bytes."""
    text = _buffer(16)
    text.value = name.encode()[:15]
    _control(_PR_SET_NAME, addressof(text))


def signal_descriptor(signals: Iterable[int]) -> int:
    """Return a descriptor that is readable when one of the (blocked) signals is pending."""
    wanted = _buffer(_SIGSET_BYTES)
    _sigemptyset(wanted)
    for number in signals:
        _sigaddset(wanted, number)
    descriptor: int = _signalfd(-1, wanted, os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise _error("signalfd")
    return descriptor


def read_signals(descriptor: int) -> list[Received]:
    """Return all signals that are pending on a descriptor of ``signal_descriptor``; does not block."""
    received: list[Received] = []
    while True:
        try:
            data = os.read(descriptor, 16 * _SIGINFO_BYTES)
        except BlockingIOError:
            return received
        for offset in range(0, len(data), _SIGINFO_BYTES):
            number, _, code, sender = _SIGINFO_HEAD.unpack_from(data, offset)
            received.append(Received(number, code <= 0, sender))
