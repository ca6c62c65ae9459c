"""The limits of this process on open files and on processes."""

from __future__ import annotations

import errno
import os
import resource

#: Descriptors that stay free for files that are open for a short time: /proc, logs of new ranks, reports.
_KEPT_FREE = 6


def why_not_started(number: int) -> str:
    """Return the meaning of the errno of a failed fork, including the process limit if it was reached."""
    reason = os.strerror(number)
    if number != errno.EAGAIN:
        return reason
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    shown = "unlimited" if limit == resource.RLIM_INFINITY else limit
    return f"no more processes can be started (`ulimit -u` is {shown}; a container's pids limit also applies)"


class FileLimit:
    """The limit on this process's open files (``ulimit -n``), raised when it is nearly reached."""

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None

    def allows(self, descriptor: int) -> bool:
        """Return whether a file may stay open; the kernel assigns the lowest free descriptor first."""
        if descriptor < file_limit() - _KEPT_FREE:
            return True
        if self._before is None:
            self._before = resource.getrlimit(resource.RLIMIT_NOFILE)
            try:  # noqa: SIM105  (the keeper does not import contextlib)
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._before[1], self._before[1]))
            except (OSError, ValueError):
                pass
        return descriptor < file_limit() - _KEPT_FREE

    def restore(self) -> None:
        """Restore the limit for a new program: select() does not accept high descriptors."""
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._before)


def file_limit() -> int:
    """Return the soft limit on open files."""
    return os.sysconf("SC_OPEN_MAX")


def leave_callers_files(keep: set[int]) -> int:
    """Close every inherited file except ``keep``: the readers of pipes must not wait for the keeper.

    Returns:
        The launcher's stdin under a new number (the ranks do not inherit it), -1 if there is none.
    """
    null = os.open(os.devnull, os.O_RDWR)
    try:
        stdin = os.dup(0)
    except OSError:
        stdin = -1
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor > 2 and descriptor not in keep and descriptor not in (null, stdin):
            try:
                os.close(descriptor)
            except OSError:
                continue  # The descriptor of the listing itself.
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for descriptor in keep:
        os.set_inheritable(descriptor, False)
    if null > 2:
        os.close(null)
    return stdin
