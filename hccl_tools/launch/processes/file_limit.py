"""How many files a process may have open, and leaving behind those that it has inherited."""

from __future__ import annotations

import os
from contextlib import suppress

#: So many are kept free for what is opened and closed again: /proc, logs of ranks to be started, reports.
_KEPT_FREE = 6


class FileLimit:
    """The limit on this process's open files (``ulimit -n``), raised when it is come near to."""

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None

    def allows(self, descriptor: int) -> bool:
        """Whether a file may stay open: descriptors are numbered from below, so enough are free above it."""
        if descriptor < file_limit() - _KEPT_FREE:
            return True
        if self._before is None:
            import resource  # noqa: PLC0415  (most limits are far away)

            self._before = resource.getrlimit(resource.RLIMIT_NOFILE)
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._before[1], self._before[1]))
        return descriptor < file_limit() - _KEPT_FREE

    def give_back(self) -> None:
        """Set the limit as it was, for a program that is started: select() cannot take high numbers."""
        if self._before is not None:
            import resource  # noqa: PLC0415  (loaded when it was raised)

            resource.setrlimit(resource.RLIMIT_NOFILE, self._before)


def file_limit() -> int:
    """The soft limit."""
    return os.sysconf("SC_OPEN_MAX")


def leave_callers_files(keep: set[int]) -> int:
    """Close every inherited file but ``keep``; the terminal or pipe behind them must not wait for the keeper.

    Returns:
        The launcher's stdin under a new number (the ranks do not inherit it), -1 if it has none.
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
