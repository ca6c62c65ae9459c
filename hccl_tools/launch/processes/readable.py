"""What is done when there is something to read from a descriptor."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Readable:
    """Descriptors in a poll object, each with what is to be called."""

    def __init__(self) -> None:
        self.poller = select.poll()
        self._acts: dict[int, Callable[[], None]] = {}

    def on_readable(self, descriptor: int, act: Callable[[], None] | None) -> None:
        """Call ``act`` whenever there is something to read from a descriptor; ``None``: no more."""
        if act is not None:
            self._acts[descriptor] = act
            self.poller.register(descriptor, select.POLLIN)
        elif self._acts.pop(descriptor, None) is not None:
            self.poller.unregister(descriptor)

    def run(self, ready: set[int]) -> None:
        """Call what belongs to the descriptors that are ready, each act once."""
        for act in {self._acts[descriptor] for descriptor in ready & self._acts.keys()}:
            act()
