"""The few Linux calls that Python has no name for: prctl(2) and signalfd(2).

The keeper and the launcher are built on them: a subreaper inherits orphaned descendants, a parent-death
signal ends a process with its parent, and a signal descriptor lets one poll() wait for signals, processes and
output.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # That of typing, which a shim does without; see records.
if TYPE_CHECKING:
    from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_SFD_NONBLOCK = os.O_NONBLOCK
_SFD_CLOEXEC = os.O_CLOEXEC
_SIGSET_BYTES = 128
_SIGINFO_BYTES = 128
_SIGINFO_HEAD = struct.Struct("=IiiI")  # ssi_signo, ssi_errno, ssi_code, ssi_pid

_SIG_SETMASK = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


class Received(NamedTuple):
    """One signal: its number, whether a process sent it (not the kernel, as for Ctrl-C), and which."""

    number: int
    from_process: bool
    sender: int


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"prctl({option})")


def become_subreaper(wanted: bool = True) -> None:
    """Let orphaned descendants become children of this process instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(wanted))


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the parent ends; the caller then checks that the parent was still there."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


class ChildSetup:
    """What a forked child does before it turns into its program.

    All that can be made ready is made ready in the parent: each object that a child makes or counts is a page
    to copy, and the common way to call these two touched three times as many.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._prctl, self._sigprocmask = library.prctl, library.sigprocmask
        nothing = ctypes.c_ulong(0)
        signal_number = ctypes.c_ulong(signal.SIGKILL)
        self._death = (ctypes.c_int(_PR_SET_PDEATHSIG), signal_number, nothing, nothing, nothing)
        self._no_signals = ctypes.create_string_buffer(_SIGSET_BYTES)
        address = ctypes.c_void_p(ctypes.addressof(self._no_signals))
        self._mask = (ctypes.c_int(_SIG_SETMASK), address, ctypes.c_void_p(None))

    def die_with_parent(self) -> None:
        """Ask to be killed when the parent ends; the caller then checks that it was still there."""
        self._prctl(*self._death)

    def unblock_all_signals(self) -> None:
        """Take signals as they come."""
        self._sigprocmask(*self._mask)


def name_process(name: str) -> None:
    """Set the name that ``ps -o comm`` and ``top`` show; at most 15 bytes."""
    text = ctypes.create_string_buffer(name.encode()[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(text))


def signal_descriptor(signals: Iterable[int]) -> int:
    """A descriptor that becomes readable when one of the (blocked) signals is pending."""
    wanted = ctypes.create_string_buffer(_SIGSET_BYTES)
    _libc.sigemptyset(wanted)
    for number in signals:
        _libc.sigaddset(wanted, number)
    descriptor: int = _libc.signalfd(-1, wanted, _SFD_NONBLOCK | _SFD_CLOEXEC)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "signalfd")
    return descriptor


def read_signals(descriptor: int) -> list[Received]:
    """All signals that are pending on a descriptor of ``signal_descriptor``, which does not block."""
    received: list[Received] = []
    while True:
        try:
            data = os.read(descriptor, 16 * _SIGINFO_BYTES)
        except BlockingIOError:
            return received
        for offset in range(0, len(data), _SIGINFO_BYTES):
            number, _, code, sender = _SIGINFO_HEAD.unpack_from(data, offset)
            received.append(Received(number, code <= 0, sender))
