"""Which hosts of a job have taken their evidence, as the host knows it that they report to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class EvidenceRound:
    """One end of the ranks: no host ends its ranks before all hosts have their evidence.

    ``--evidence-timeout`` limits the wait of each host.
    """

    def __init__(self, expected: Callable[[], set[int]], announce: Callable[[], None]) -> None:
        """Begin with no host.

        Args:
            expected: Returns the numbers of the hosts that have ranks.
            announce: Is called once, when all of these have their evidence.
        """
        self._expected, self._announce = expected, announce
        self._taken: set[int] = set()
        self._is_over = False

    def add(self, number: int) -> None:
        """Record that a host has taken its evidence, or takes none."""
        self._taken.add(number)
        self.check()

    def check(self) -> None:
        """Announce it if no host is missing; hosts may have been lost."""
        if self._taken and not self._is_over and self._expected() <= self._taken:
            self._is_over = True
            self._announce()
