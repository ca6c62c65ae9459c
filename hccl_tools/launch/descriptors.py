"""Leaving behind the files that a process has inherited."""

from __future__ import annotations

import os


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
