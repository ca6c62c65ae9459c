"""Measure whole processes: alternating runs, medians, peak memory.

A process counts from before it is started to its end, with everything it loads: what a user waits for. The
contenders of a comparison take turns, so that a change of the machine's load meets all of them.

The peak memory is the kernel's ``ru_maxrss``. A child begins with what its parent had at the fork, so this
process stays small: it imports little, and tables are made in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Contender:
    """One command of a comparison. ``may_fail`` are exit codes that are right besides 0."""

    name: str
    argv: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    may_fail: tuple[int, ...] = ()
    #: Called after each run with the time.time() of its start; gives seconds that are kept as ``noted``.
    note: Callable[[float], float] | None = None


@dataclass(frozen=True)
class Figures:
    """Medians over the runs of one contender: seconds, MB (10**6 bytes), and what ``note`` gave."""

    seconds: float
    megabytes: float
    noted: float


def plain_environment() -> dict[str, str]:
    """The environment without what some machines set for Python and what changes its start or its output."""
    foreign = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in foreign}


def run_once(contender: Contender) -> Figures:
    """Run a contender once, silently.

    Raises:
        SystemExit: It ended with an exit code that is not right.
    """
    began, started = time.time(), time.perf_counter()
    process = subprocess.Popen(
        contender.argv,
        cwd=contender.cwd,
        env={**plain_environment(), **contender.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code not in (0, *contender.may_fail):
        sys.exit(f"{contender.name}: exit code {code}\n  {subprocess.list2cmdline(contender.argv)}")
    noted = contender.note(began) if contender.note else 0.0
    return Figures(seconds, usage.ru_maxrss * 1024 / 1e6, noted)


def alternate(contenders: Sequence[Contender], runs: int, *, warm_up: int = 1) -> dict[str, Figures]:
    """Let the contenders take turns, ``warm_up`` times unmeasured, then ``runs`` times; medians by name."""
    rounds = [[run_once(contender) for contender in contenders] for _ in range(warm_up + runs)][warm_up:]
    return {
        contender.name: Figures(
            median(each.seconds for each in own),
            median(each.megabytes for each in own),
            median(each.noted for each in own),
        )
        for contender, own in zip(contenders, zip(*rounds, strict=True), strict=True)
    }


@dataclass(frozen=True)
class Row:
    """One line of the report: a figure, what it is held against, and the most that their ratio may be."""

    what: str
    value: float
    unit: str
    against: str
    yardstick: float
    limit: float | None = None

    def text(self) -> str:
        """Return the line: value, yardstick, ratio, limit."""
        ratio = self.value / self.yardstick
        line = f"{self.what:<40} {self.value:8.3f} {self.unit:<2} "
        line += f" {self.yardstick:8.3f} {self.against:<15} {ratio:6.2f}"
        if self.limit is None:
            return line
        return f"{line}  at most {self.limit:<5.3g} {'ok' if ratio <= self.limit else 'OVER'}"


def report(title: str, rows: Sequence[Row]) -> None:
    """Print the lines of a comparison."""
    print(f"\n{title}", *(row.text() for row in rows), sep="\n  ", flush=True)
