"""Room for the logs: the ranks write them themselves, so the launcher can only watch the disk and say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hccl_tools.launch.supervise.attempt import Attempt

#: Below this many bytes a warning is due; below the second the disk counts as full.
_LOW, _FULL = 64 << 20, 64 << 10
#: Seconds between two looks, with plenty of room and with little.
_SELDOM, _OFTEN = 5.0, 0.5


class LogSpace:
    """Watches the file system of the run directory while the job runs."""

    def __init__(self, attempt: Attempt, run_dir: str, on_error: Literal["warn", "stop"]) -> None:
        self._attempt, self._run_dir, self._on_error = attempt, run_dir, on_error
        self._full = f"the disk of {run_dir} is full: what the ranks write to their logs is lost"
        self._said_low = self._said_full = False
        attempt.on_ending.append(self._ending)
        self._look()

    def _ending(self) -> None:
        """A rank that fails on a full disk may do so before the next look; then the disk is the cause."""
        attempt = self._attempt
        if attempt.reason != "failed" or not is_full(self._run_dir):
            return
        self._judge(0)
        if self._on_error == "stop":
            attempt.reason, attempt.detail = "log-error", self._full
            attempt.first = attempt.elsewhere = None

    def _look(self) -> None:
        free = free_bytes(self._run_dir)
        if free is not None:
            self._judge(free)
        self._attempt.at("space", _OFTEN if self._said_low else _SELDOM, self._look)

    def _judge(self, free: int) -> None:
        if free >= _LOW:
            self._said_low = self._said_full = False
        elif free < _FULL and not self._said_full:
            self._said_low = self._said_full = True
            self._attempt.say(self._full)
            if self._on_error == "stop":
                self._attempt.end("log-error", self._full)
        elif not self._said_low:
            self._said_low = True
            self._attempt.say(f"only {free / (1 << 20):.1f} MiB are left for the logs in {self._run_dir}")


def is_full(path: str) -> bool:
    """Whether the disk of a path has no room for logs."""
    free = free_bytes(path)
    return free is not None and free < _FULL


def free_bytes(path: str) -> int | None:
    """The bytes that this user may still write below a path, ``None`` if that cannot be found out."""
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    blocks = system.f_bfree if os.geteuid() == 0 else system.f_bavail
    return blocks * system.f_frsize
