"""What /proc tells of the processes of a job."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def has_ended(pid: int) -> bool:
    """Whether a process does not exist, or is a zombie: in some containers nothing reaps orphans."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True
