"""Call functions when a descriptor is readable or a timer is due."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class HasFileno(Protocol):
        """A file, socket or connection."""

        def fileno(self) -> int:
            """Return the descriptor."""


def wait_readable(seconds: float, *files: int | HasFileno) -> None:
    """Wait until a file is readable or the time is over; not by select(2), which refuses files above 1023."""
    poller = select.poll()
    for file in files:
        poller.register(file, select.POLLIN)
    poller.poll(max(0.0, seconds) * 1000)


class Reactor:
    """Descriptors in a poll object and timers, each with the function to call."""

    def __init__(self) -> None:
        #: Also for descriptors that the owner handles itself.
        self.poller = select.poll()
        self._timers: dict[str, tuple[float, Callable[[], None]]] = {}
        self._readers: dict[int, Callable[[], None]] = {}

    def at(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` once after the given seconds; replace an earlier timer of the same name."""
        self._timers[name] = (time.monotonic() + seconds, act)

    def on_readable(self, descriptor: int, act: Callable[[], None] | None) -> None:
        """Call ``act`` whenever a descriptor is readable; ``None`` removes the descriptor."""
        if act is not None:
            self._readers[descriptor] = act
            self.poller.register(descriptor, select.POLLIN)
        elif self._readers.pop(descriptor, None) is not None:
            self.poller.unregister(descriptor)

    def poll(self, until: float = float("inf")) -> list[int]:
        """Wait for a descriptor or the next timer, at most to time ``until``.

        Returns the ready descriptors in order of their registration.
        """
        due = min([until, *(due for due, _ in self._timers.values())])
        wait = None if due == float("inf") else max(0.0, due - time.monotonic()) * 1000 + 0.5
        return [descriptor for descriptor, _ in self.poller.poll(wait)]

    def run_due(self) -> None:
        """Run the timers that are due."""
        now = time.monotonic()
        for name in [name for name, (due, _) in self._timers.items() if due <= now]:
            # An earlier timer may have postponed this timer.
            due, act = self._timers[name]
            if due <= now:
                del self._timers[name]
                act()

    def run_ready(self, ready: Sequence[int]) -> None:
        """Call the functions of the descriptors that are ready, each function once, in this order."""
        for act in dict.fromkeys(
            self._readers[descriptor] for descriptor in ready if descriptor in self._readers
        ):
            act()
