"""What is broken in a fault trial, when, and which exit code is then the right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

LAUNCHER_SIGNALS = {"launcher-kill": 9, "launcher-term": 15, "launcher-int": 2, "launcher-hup": 1}
#: The same at any time from the launcher's own start on.
EARLY_SIGNALS = {"launcher-early-kill": 9, "launcher-early-term": 15}
FAULTS = (
    *("exit", "sigkill", "sigsegv", "sigterm", "stubborn", "children", "sessions", "closed", "disk"),
    *LAUNCHER_SIGNALS,
    *EARLY_SIGNALS,
)
#: Signals to the processes of our launcher in this order, ``gap`` seconds from the first to the last.
GUARD_FAULTS = {
    "launcher-keeper": (("launcher", 9), ("keeper", 9)),
    "launcher-keeper-first": (("keeper", 9), ("launcher", 9)),
    "launcher-keeper-stopped": (("keeper", 19), ("launcher", 9)),
    "launcher-keeper-alone": (("keeper", 9),),
    "launcher-watcher": (("watcher", 9), ("launcher", 9)),
    "launcher-watcher-keeper": (("watcher", 9), ("keeper", 9)),
}
#: Not among the trials, as something may be left: see ``faults.py --all-guards``.
ALL_GUARDS = {"launcher-all-guards": (("launcher", 9), ("keeper", 9), ("watcher", 9))}
#: Seconds: the longest gap, and the latest of the early signals.
LONGEST_GAP, LATEST_EARLY = 0.02, 0.8


@dataclass
class Trial:
    """What is to happen: the fault, its rank, its exit code, when and with which gap.

    ``delay`` are seconds from when all ranks run, for an early signal from the launcher's start; ``gap`` are
    the seconds between two signals to different processes.
    """

    fault: str
    ranks: int
    culprit: int
    code: int
    delay: float
    gap: float = 0.0

    @property
    def from_launcher(self) -> bool:
        """Whether it is the launcher, or a process of its own, that something happens to."""
        return self.fault.startswith("launcher")

    @property
    def signals(self) -> tuple[tuple[str, int], ...]:
        """Whom which signals are sent to."""
        number = {**LAUNCHER_SIGNALS, **EARLY_SIGNALS}.get(self.fault)
        return (("launcher", number),) if number else {**GUARD_FAULTS, **ALL_GUARDS}[self.fault]

    @property
    def right_codes(self) -> tuple[int, ...]:
        """What the launcher may exit with (negative: what it is killed by)."""
        if not self.from_launcher:
            return ({"sigkill": 137, "sigsegv": 139, "sigterm": 143}.get(self.fault, self.code),)
        number = dict(self.signals).get("launcher")
        if self.fault == "launcher-keeper-first":
            return -9, 137  # It may have seen the keeper's end before it is killed itself.
        if number is None:
            return (137,)
        # Until it waits for its signals it is ended by them, which a shell shows as the same code.
        return (-9,) if number == 9 else (128 + number, -number)[: 2 if self.fault in EARLY_SIGNALS else 1]


def draw(generator: random.Random, faults: tuple[str, ...]) -> Trial:
    """A random trial."""
    ranks, fault = generator.randint(2, 16), generator.choice(faults)
    return Trial(
        fault,
        ranks,
        generator.randrange(ranks),
        generator.randint(1, 120),
        generator.uniform(0, LATEST_EARLY if fault in EARLY_SIGNALS else 0.3),
        generator.uniform(0, LONGEST_GAP),
    )
