"""Calls functions when a descriptor is readable or a time has come."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Reactor:
    """Descriptors in a poll object and timers, each with the function to call.

    Attributes:
        poller: The poll object; its owner waits on it.
    """

    def __init__(self) -> None:
        self.poller = select.poll()
        self._timers: dict[str, tuple[float, Callable[[], None]]] = {}
        self._readers: dict[int, Callable[[], None]] = {}

    def at(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` once after a number of seconds; a later timer of the same name replaces it."""
        self._timers[name] = (time.monotonic() + seconds, act)

    def on_readable(self, descriptor: int, act: Callable[[], None] | None) -> None:
        """Call ``act`` whenever a descriptor is readable; ``None`` ends that."""
        if act is not None:
            self._readers[descriptor] = act
            self.poller.register(descriptor, select.POLLIN)
        elif self._readers.pop(descriptor, None) is not None:
            self.poller.unregister(descriptor)

    @property
    def next_due(self) -> float:
        """The ``time.monotonic()`` of the next timer; infinity without one."""
        return min((due for due, _ in self._timers.values()), default=float("inf"))

    def run_due(self) -> None:
        """Run the timers that are due."""
        now = time.monotonic()
        for name in [name for name, (due, _) in self._timers.items() if due <= now]:
            # An earlier one may have put this one off.
            due, act = self._timers[name]
            if due <= now:
                del self._timers[name]
                act()

    def run_ready(self, ready: set[int]) -> None:
        """Call the functions of the descriptors that are ready, each function once."""
        for act in {self._readers[descriptor] for descriptor in ready & self._readers.keys()}:
            act()
