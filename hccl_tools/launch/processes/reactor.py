"""What is due at a certain time, by name."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timers:
    """Acts that each happen once, some seconds after they were asked for."""

    def __init__(self) -> None:
        self._acts: dict[str, tuple[float, Callable[[], None]]] = {}

    def at(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` once in so many seconds; a later call of the same name replaces an earlier one."""
        self._acts[name] = (time.monotonic() + seconds, act)

    @property
    def next_due(self) -> float:
        """When something is due, in ``time.monotonic()`` seconds; infinity if nothing is."""
        return min((due for due, _ in self._acts.values()), default=float("inf"))

    def run(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for name in [name for name, (due, _) in self._acts.items() if due <= now]:
            # An earlier one may have put this one off.
            due, act = self._acts[name]
            if due <= now:
                del self._acts[name]
                act()
