"""What a process does right now: its state and the system call in which it waits, from /proc."""

from __future__ import annotations

import os

from hccl_tools.launch.processes import procfs
from hccl_tools.records import NamedTuple

#: The states of a process in /proc.
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting uninterruptibly in the kernel",
    "T": "stopped",
    "t": "held by a debugger",
}
#: The system calls in which processes wait for long, by machine and number (the kernel's unistd.h).
_CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 19: "readv", 23: "select", 34: "pause",
        35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 128: "rt_sigtimedwait",
        202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat",
        270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv", 67: "pread64", 72: "pselect6", 73: "ppoll", 82: "fsync", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep", 137: "rt_sigtimedwait", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4",
    },
}  # fmt: skip
#: The calls whose first argument is a descriptor that tells what the process waits for.
_ON_DESCRIPTOR = frozenset(
    {
        "read", "write", "pread64", "readv", "recvfrom", "recvmsg", "sendto", "sendmsg",
        "connect", "accept", "accept4", "flock", "fcntl", "ioctl", "fsync",
    }
)  # fmt: skip
_READING = frozenset({"read", "pread64", "readv"})
_KINDS = {"pipe": "a pipe", "socket": "a socket"}
#: The signal mask of /proc/PID/status has a bit per signal, from 1.
_CAUGHT = "SigCgt:"


class WaitState(NamedTuple):
    """What a process does.

    Attributes:
        state: The letter of the state in /proc.
        call: The system call in which the main thread is, "" if unknown: the kernel may hide it.
        target: The file behind the descriptor of the call: ``a socket``, ``a pipe`` or a path; "" if unknown.
        channel: The kernel function in which the main thread sleeps, "" if unknown.
    """

    state: str
    call: str = ""
    target: str = ""
    channel: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped the process."""
        return self.state in {"T", "t"}

    @property
    def waits_outside(self) -> bool:
        """Whether the process waits for something that is no other rank: a file, a pipe or a disk."""
        return self.state == "D" or (self.call in _READING and self.target not in {"", "a socket"})

    @property
    def description(self) -> str:
        """``sleeping in recvfrom() on a socket``, ``sleeping in futex_do_wait``, ``stopped``."""
        text = _STATES.get(self.state, f"state {self.state}")
        if self.is_stopped:
            return text
        if self.call:
            return f"{text} in {self.call}()" + (f" on {self.target}" if self.target else "")
        return f"{text} in {self.channel}" if self.channel else text


def of(pid: int) -> WaitState | None:
    """Return what a process does, ``None`` if it does not exist."""
    status = procfs.status(pid)
    if status is None:
        return None
    call, target = _call(pid)
    return WaitState(status.state, call, target, procfs.waits_in(pid))


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    for line in procfs.read(f"/proc/{pid}/status").splitlines():
        if line.startswith(_CAUGHT):
            return bool(int(line.removeprefix(_CAUGHT), 16) >> (number - 1) & 1)
    return False


def _call(pid: int) -> tuple[str, str]:
    """Return the system call of a process's main thread, and the file that it is about."""
    words = procfs.read(f"/proc/{pid}/syscall").split()
    if len(words) < 2 or not words[0].isdecimal():
        return "", ""
    call = _CALLS.get(os.uname().machine, {}).get(int(words[0]), "")
    if call not in _ON_DESCRIPTOR:
        return call, ""
    try:
        target = os.readlink(f"/proc/{pid}/fd/{int(words[1], 16)}")
    except (OSError, ValueError):
        return call, ""
    shown = "".join(character if character.isprintable() else "?" for character in target)
    return call, _KINDS.get(target.partition(":")[0], shown)
