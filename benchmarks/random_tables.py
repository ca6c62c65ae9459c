"""Random damaged tables through all that commands do with a table, in one process.

``python -m benchmarks.random_tables [NUMBER [SEED]]`` makes NUMBER tables (300,000) of all formats, checks,
corrects, shows, converts and merges them, and prints how many had which verdict, the time per table, the
longest time and the memory. The exit code is 1 if one ended with another error than those of hccl-tools, if
one took longer than a second of CPU, or if the process took more than 200 MB. Such a table is printed with
its turn, each kind of error once.
"""

from __future__ import annotations

import resource
import sys
import time
import traceback
from collections import Counter
from random import Random

from tests.support import random_tables

MOST_SECONDS, MOST_MEGABYTES = 1.0, 200.0
_EVERY = 10_000
_MOST_SHOWN = 12


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Campaign:
    """The tables so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.sound = random_tables.bases()
        self.verdicts: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.slow = 0
        self.seconds = 0.0
        self.longest, self.longest_turn = 0.0, 0

    def attempt(self, turn: int) -> None:
        """Make and judge one table."""
        random = Random(f"{self.seed}/{turn}")  # noqa: S311  (repeatable)
        data = random_tables.make(self.sound, random)
        before = time.process_time()
        try:
            self.verdicts[random_tables.judge(data, random)] += 1
        except Exception:  # noqa: BLE001  (what the campaign looks for)
            self._note(turn, data, traceback.format_exc())
        took = time.process_time() - before
        self.seconds += took
        if took > MOST_SECONDS:
            self.slow += 1
            print(f"turn {turn}: {took:.2f} s, {len(data):,} bytes: {data[:300]!r}\n", file=sys.stderr)
        if took > self.longest:
            self.longest, self.longest_turn = took, turn

    def _note(self, turn: int, data: bytes, trace: str) -> None:
        kind = "".join(trace.splitlines(keepends=True)[-5:])
        self.verdicts["wrong"] += 1
        self.kinds[kind] += 1
        if self.kinds[kind] == 1 and len(self.kinds) <= _MOST_SHOWN:
            print(f"turn {turn}: {data[:600]!r}\n{kind}", file=sys.stderr, flush=True)

    def summary(self) -> str:
        """Return the numbers so far on one line."""
        number = max(1, self.verdicts.total())
        counts = "  ".join(f"{verdict}: {count:,}" for verdict, count in sorted(self.verdicts.items()))
        return (
            f"{number:,} tables, {self.seconds / number * 1000:.1f} ms of CPU each, longest "
            f"{self.longest * 1000:.0f} ms (turn {self.longest_turn}), {_megabytes():.0f} MB  {counts}"
        )


def main() -> int:
    """Run the campaign."""
    number, seed = [*map(int, sys.argv[1:]), *(300_000, 1)[len(sys.argv) - 1 :]]
    campaign = Campaign(seed)
    for turn in range(number):
        campaign.attempt(turn)
        if (turn + 1) % _EVERY == 0:
            print(campaign.summary(), flush=True)
    print(campaign.summary())
    return int(bool(campaign.kinds or campaign.slow or _megabytes() > MOST_MEGABYTES))


if __name__ == "__main__":
    sys.exit(main())
