"""Read the parents, states and times of processes from /proc; signal descendants."""

from __future__ import annotations

import errno
import os
import sys
import time

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

#: PF_EXITING and PF_KTHREAD of the kernel's flags.
_EXITING, _OF_THE_KERNEL = 4, 0x200000
#: The kernel's thread that starts the others.
_KTHREADD = 2
#: States of a process that has ended and waits to be reaped.
ENDED_STATES = frozenset("ZX")

#: The vector that the kernel gives to a program: its bytes, those of a word, and entries of it.
_AUXV_BYTES, _WORD_BYTES = 4096, 8 if sys.maxsize > 1 << 32 else 4
_AT_UID, _AT_EUID = 11, 12

#: Set for every process of a job; identifies processes left over from an older run.
RUN_VARIABLE = "HCCL_TOOLS_RUN_DIR"


class Status(NamedTuple):
    """A line of /proc/PID/stat: ``cpu`` and ``start`` in clock ticks, ``start`` since the machine's boot."""

    pid: int
    parent: int
    state: str
    cpu: int
    start: int
    session: int = 0


def read(path: str) -> str:
    """Return a small file of /proc or /sys, "" if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 65536).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on; too few if the process does not exist."""
    line = read(f"/proc/{pid}/stat")
    # The second field is the program's name in brackets, which may contain blanks and brackets itself.
    return line[line.rfind(")") + 2 :].split()


def status(pid: int) -> Status | None:
    """Return the status of a process, ``None`` if the process does not exist."""
    fields = _stat(pid)
    if len(fields) < 20:
        return None
    cpu = int(fields[11]) + int(fields[12])
    return Status(pid, int(fields[1]), fields[0], cpu, int(fields[19]), int(fields[3]))


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process; none on a kernel without such lists."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return found


def kernel_threads() -> list[int]:
    """Return the threads of the kernel, some ten for each core; none in a container."""
    fields = _stat(_KTHREADD)
    if len(fields) < 20 or not int(fields[6]) & _OF_THE_KERNEL:
        return []
    return [_KTHREADD, *children(_KTHREADD)]


def disk_bytes(pid: int) -> int:
    """Return the bytes that a process has read from disks and written to files, 0 if that is not known."""
    words = read(f"/proc/{pid}/io").split()
    found = dict(zip(words[::2], words[1::2], strict=False))
    return int(found.get("read_bytes:", 0)) + int(found.get("write_bytes:", 0))


def started(process: Status) -> float:
    """Return when a process started, in seconds since the epoch."""
    return time.time() - float(read("/proc/uptime").split()[0]) + process.start / CLOCK_TICKS


def user(pid: int) -> int:
    """Return the effective user id of a process, -1 if there is no such process."""
    ids = _user_ids(pid)
    return ids[1] if ids else -1


def highest_user(pid: int) -> int:
    """Return the highest of the user ids of a process, -1 if there is no such process.

    /proc shows one that is not dumpable as root's. A setuid program of root has the user who started it.
    """
    return max(_user_ids(pid), default=-1)


def is_of_one_user(pid: int) -> bool:
    """Return whether a process has one user id, and its program was started with one: it is not setuid.

    Another user has chosen the environment of a setuid program, and ``sudo`` sets its real user id as well.
    """
    return len(set(_user_ids(pid))) == 1 and not _is_setuid_program(pid)


def _user_ids(pid: int) -> list[int]:
    """Return the real, effective, saved and file system user ids of a process; none if it does not exist."""
    return [int(number) for number in status_field(pid, "Uid").split()]


def status_field(pid: int, name: str) -> str:
    """Return a field of /proc/PID/status, "" without one.

    The name of the process, which its user chooses, is in the first line. The kernel escapes line feeds in
    it, and nothing else at which ``splitlines`` begins a line: a carriage return would forge a field.
    """
    for line in read(f"/proc/{pid}/status").split("\n"):
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return ""


def _is_setuid_program(pid: int) -> bool:
    """Return whether a program was started with another effective than real user id; False if unknown."""
    try:
        with open(f"/proc/{pid}/auxv", "rb") as file:
            data = file.read(_AUXV_BYTES)
    except OSError:
        return False
    words = [
        int.from_bytes(data[at : at + _WORD_BYTES], sys.byteorder) for at in range(0, len(data), _WORD_BYTES)
    ]
    found = dict(zip(words[::2], words[1::2], strict=False))
    return found.get(_AT_UID) != found.get(_AT_EUID)


def ends_with(pid: int) -> int:
    """Return the wait status of a process that is exiting with a failure, 0 for any other process.

    The kernel closes the connections of an exiting process early, but may need long to release memory and
    devices: other processes may fail and exit before the exit of this process is complete.
    """
    fields = _stat(pid)
    if len(fields) < 50 or fields[0] in ENDED_STATES or not int(fields[6]) & _EXITING:
        return 0
    return int(fields[49])


def is_exiting(pid: int) -> bool:
    """Return whether a process, or its first thread, has begun to exit; see :func:`ends_with`."""
    fields = _stat(pid)
    return len(fields) >= 20 and bool(int(fields[6]) & _EXITING)


def processes() -> dict[int, Status]:
    """Return every process of this machine (this PID namespace) by process id."""
    found = (status(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def _by_parent(found: dict[int, Status]) -> dict[int, list[Status]]:
    children: dict[int, list[Status]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process)
    return children


def descendants(ancestor: int, *, since: int = 0, but: int = 0) -> list[Status]:
    """Return the living descendants of a process, parents before children.

    Children that started before ``since`` are excluded with their descendants, the process ``but`` alone.
    """
    children = _by_parent(processes())
    found = []
    waiting = [child for child in children.get(ancestor, ()) if child.start >= since]
    while waiting:
        process = waiting.pop()
        if process.state not in ENDED_STATES and process.pid != but:
            found.append(process)
        waiting += children.get(process.pid, ())
    return found


def of_session(session: int) -> list[Status]:
    """Return the living processes of a session, and their descendants in other sessions."""
    found, everything = dict[int, Status](), processes()
    children = _by_parent(everything)
    waiting = [process for process in everything.values() if process.session == session]
    while waiting:
        process = waiting.pop()
        if process.pid not in found:
            found[process.pid] = process
            waiting += children.get(process.pid, ())
    return [process for process in found.values() if process.state not in ENDED_STATES]


def command(pid: int) -> str:
    """Return the command line of a process, at most 120 characters of it."""
    words = read(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " ").replace("\n", " ")
    return words if len(words) <= 120 else words[:117] + "..."


def environment(pid: int) -> dict[str, str]:
    """Return the variables with which a process was started; empty if they may not be read."""
    settings = (setting.partition("=") for setting in read(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, equals, value in settings if equals}


def waits_in(pid: int) -> str:
    """Return the kernel function in which a process sleeps, "" if it runs or the function is unknown."""
    channel = read(f"/proc/{pid}/wchan").strip()
    return "" if channel == "0" else channel


def send(pid: int, number: int, is_expected: Callable[[int], bool]) -> None:
    """Signal a process if it is the expected process: another process may have its process id.

    Raises:
        ProcessLookupError: The process has exited, or another one has its id.
        PermissionError: This user may not signal it.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EPERM}:
            raise ProcessLookupError from error
        if is_expected(pid):  # Before Linux 5.3, the process can change after the check.
            os.kill(pid, number)
        return
    try:
        if not is_expected(pid):
            raise ProcessLookupError
        signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def signal_all(ancestor: int, *numbers: int, since: int = 0, but: int = 0) -> int:
    """Send signals to every living descendant; return the number of descendants."""
    found = descendants(ancestor, since=since, but=but)
    for process in found:
        # The process may have exited, or run as another user now (sudo).
        _send(process.pid, numbers)
    return len(found)


def _send(pid: int, numbers: Iterable[int]) -> None:
    try:
        for number in numbers:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def kill_until_gone(
    kill: Callable[[], object],
    *,
    timeout: float = float("inf"),
    longest_pause: float = 0.1,
    wait: Callable[[float], object] = time.sleep,
) -> bool:
    """Send SIGKILL in rounds, since a killed process may have started others; return whether all are gone.

    Args:
        kill: Sends SIGKILL to the processes that are left, and returns a false value if no process is left.
        timeout: Seconds after which the processes that are left count as stuck in the kernel.
        longest_pause: The maximum pause between two rounds in seconds; pauses double from 1 ms.
    """
    deadline, pause = time.monotonic() + timeout, 0.001
    while kill():
        if time.monotonic() > deadline:
            return False
        wait(pause)
        pause = min(2 * pause, longest_pause)
    return True
