"""Limit the time of patterns that users have written: one that takes long on a line is no longer used."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re
    from collections.abc import Collection

    from hccl_tools.explain.knowledge.message import Message

#: Seconds for one line.
_SECONDS = 0.5


class _TooSlowError(Exception):
    pass


class Guard:
    """Searches with patterns; those of the messages ``guarded`` have a time limit."""

    def __init__(self, guarded: Collection[str]) -> None:
        self._guarded = set(guarded)
        self._dropped: list[str] = []
        self._told = 0

    def search(self, message: Message, pattern: re.Pattern[bytes], line: bytes) -> re.Match[bytes] | None:
        """Return the match of a message's pattern in a line."""
        if message.id not in self._guarded:
            return pattern.search(line)
        if message.id in self._dropped:
            return None
        if threading.current_thread() is not threading.main_thread():
            return None  # A signal, the only way to interrupt a search, reaches the main thread alone.
        former = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        try:
            return pattern.search(line)
        except _TooSlowError:
            self._dropped.append(message.id)
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)

    def note(self) -> str:
        """Return a sentence on the messages that were dropped since the last call."""
        dropped, self._told = self._dropped[self._told :], len(self._dropped)
        if not dropped:
            return ""
        which = ", ".join(dropped)
        return f"the pattern of {which} took longer than {_SECONDS} s on a line: it was no longer used"


def _stop(_number: int, _frame: Any) -> None:
    raise _TooSlowError
