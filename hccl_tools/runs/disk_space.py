"""Free space on the file system of a run directory.

The ranks write their logs themselves, so the launcher can only watch the disk.
"""

from __future__ import annotations

import os

#: Fewer free bytes cause a warning.
LOW_BYTES = 64 << 20
#: With fewer free bytes the disk counts as full.
FULL_BYTES = 64 << 10


def is_full(path: str) -> bool:
    """Return whether the file system of a path has no room for logs."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def free_bytes(path: str) -> int | None:
    """Return the bytes that this user may still write below a path, ``None`` if unknown."""
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    blocks = system.f_bfree if os.geteuid() == 0 else system.f_bavail
    return blocks * system.f_frsize
