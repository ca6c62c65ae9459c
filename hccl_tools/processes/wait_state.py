"""What a process does right now: its state and the system call in which it waits, from /proc.

If a process waits for its child, the description is that of the child. If another thread or a child is stuck,
it is that of this thread or child. Children of another user, such as setuid programs, can be left out.
"""

from __future__ import annotations

import os

from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple

#: The states of a process in /proc.
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting uninterruptibly in the kernel",
    "T": "stopped",
    "t": "held by a debugger",
}
#: The states of a process that another one has stopped.
STOPPED = frozenset({_STATES["T"], _STATES["t"]})
#: The system calls in which processes wait for long, by machine and number (the kernel's unistd.h).
_CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv",
        20: "writev", 23: "select", 34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto",
        45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync",
        75: "fdatasync", 128: "rt_sigtimedwait", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait",
        247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll", 82: "fsync",
        83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
        137: "rt_sigtimedwait", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom",
        211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4",
    },
}  # fmt: skip
#: The calls whose first argument is a descriptor that tells what the process waits for.
_ON_DESCRIPTOR = frozenset(
    {
        "read", "write", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg", "sendto", "sendmsg",
        "connect", "accept", "accept4", "flock", "fcntl", "ioctl", "fsync", "fdatasync",
    }
)  # fmt: skip
#: The calls that wait for a file, a pipe or a disk if they are not on a socket; not ``ioctl``, by which ranks
#: wait for their device. A FIFO is opened when its other end is.
_ON_FILE = frozenset(
    {
        "read", "pread64", "readv", "write", "pwrite64", "writev", "flock", "fcntl", "fsync", "fdatasync",
    }
)  # fmt: skip
_OPENING = frozenset({"open", "openat"})
_WAITING_FOR_CHILD = frozenset({"wait4", "waitid"})
#: Most threads of a process, and most generations of children, that are looked at.
_MOST_THREADS, _MOST_GENERATIONS = 1024, 8
_KINDS = {"pipe": "a pipe", "socket": "a socket"}
#: The signal mask of /proc/PID/status has a bit per signal, from 1.
_CAUGHT = "SigCgt"


class WaitState(NamedTuple):
    """What a process does.

    Attributes:
        state: The letter of the state in /proc.
        call: The system call in which the thread is, "" if unknown: the kernel may hide it.
        target: The file behind the descriptor of the call: ``a socket``, ``a pipe`` or a path; "" if unknown.
        channel: The kernel function in which the main thread sleeps, "" if unknown.
        pid: The process that is described: the one that was asked about, or a descendant.
    """

    state: str
    call: str = ""
    target: str = ""
    channel: str = ""
    pid: int = 0

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped the process."""
        return self.state in {"T", "t"}

    @property
    def waits_outside(self) -> bool:
        """Whether the process waits for something that is no other rank: a file, a pipe or a disk."""
        return self.is_stuck or (self.call in _ON_FILE and self.target == "a pipe")

    @property
    def is_stuck(self) -> bool:
        """Whether this is unusual for a helper thread or a worker process, which usually waits at a pipe."""
        is_on_file = self.call in _ON_FILE and self.target.startswith("/")
        return self.is_stopped or self.state == "D" or self.call in _OPENING or is_on_file

    @property
    def description(self) -> str:
        """``sleeping in recvfrom() on a socket``, ``sleeping in futex_do_wait``, ``stopped``."""
        text = _STATES.get(self.state, f"state {self.state}")
        if self.is_stopped:
            return text
        if self.call:
            return f"{text} in {self.call}()" + (f" on {self.target}" if self.target else "")
        return f"{text} in {self.channel}" if self.channel else text


def of(pid: int, owner: int | None = None) -> WaitState | None:
    """Return what a process does, ``None`` if it does not exist.

    With an ``owner``, the descendants that run as another user are not looked at: every user can start them.
    """
    return _of(pid, owner, _MOST_GENERATIONS)


def _of(pid: int, owner: int | None, generations: int) -> WaitState | None:
    main = _of_thread(pid, pid)
    if main is None or main.is_stopped or main.state == "R":
        return main
    children = procfs.children(pid) if generations else []
    if owner is not None:
        children = [child for child in children if procfs.user(child) == owner]
    if main.call in _WAITING_FOR_CHILD:
        states = [state for child in children if (state := _of(child, owner, generations - 1))]
        return max(states, key=_shows_cause, default=main)
    threads = (_of_thread(thread, pid) for thread in _other_threads(pid))
    helpers = (*threads, *(_of(child, owner, generations - 1) for child in children))
    return next((state for state in helpers if state and state.is_stuck), main)


def _shows_cause(state: WaitState) -> tuple[bool, bool]:
    return state.is_stopped, state.waits_outside


def _other_threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")[:_MOST_THREADS] if int(name) != pid]
    except OSError:
        return []


def _of_thread(thread: int, pid: int) -> WaitState | None:
    status = procfs.status(thread)
    if status is None:
        return None
    call, target = _call(thread)
    return WaitState(status.state, call, target, procfs.waits_in(thread), pid)


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    return bool(int(procfs.status_field(pid, _CAUGHT) or "0", 16) >> (number - 1) & 1)


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
