"""What is broken in a fault trial, when, and which exit code is then the right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

LAUNCHER_SIGNALS = {"launcher-kill": 9, "launcher-term": 15, "launcher-int": 2, "launcher-hup": 1}
FAULTS = (
    *("exit", "sigkill", "sigsegv", "sigterm", "stubborn", "children", "sessions", "closed", "disk"),
    *LAUNCHER_SIGNALS,
)


@dataclass
class Trial:
    """What is to happen: the fault, its rank, its exit code, seconds from when all ranks run."""

    fault: str
    ranks: int
    culprit: int
    code: int
    delay: float

    @property
    def right_code(self) -> int:
        """What the launcher ought to exit with (negative: what it is killed by)."""
        if self.fault == "launcher-kill":
            return -9
        if self.fault in LAUNCHER_SIGNALS:
            return 128 + LAUNCHER_SIGNALS[self.fault]
        return {"sigkill": 137, "sigsegv": 139, "sigterm": 143}.get(self.fault, self.code)


def draw(generator: random.Random, faults: tuple[str, ...]) -> Trial:
    """A random trial."""
    ranks = generator.randint(2, 16)
    return Trial(
        generator.choice(faults),
        ranks,
        generator.randrange(ranks),
        generator.randint(1, 120),
        generator.uniform(0, 0.3),
    )
