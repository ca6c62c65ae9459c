"""How much of what hosts, peers and other users may send or write is read or refused as it should be.

``python -m benchmarks.mutated_answers [NUMBER [SEED]]`` changes the sound values of all kinds of input in
NUMBER ways (100,000), gives them to the commands that read them, and prints for each kind: how many, the
longest time, how many commands ended with which exit code, and how many went wrong. What went wrong is
printed with its seed, each kind of it once.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from hccl_tools.errors import HcclToolsError
from tests.support import hostile_inputs
from tests.support.mutations import mutated

_MOST_SHOWN = 12


def attempt(target: hostile_inputs.Target, seed: str, turn: int, folder: Path) -> tuple[str, str | None]:
    """Try one changed input; return the outcome and what is wrong with it, None for nothing."""
    random = Random(seed)  # noqa: S311  (repeatable)
    text = mutated(random.choice(target.seeds), random)
    try:
        written = target.read(text, turn, folder)
    except HcclToolsError:
        return "refused", None
    except Exception:  # noqa: BLE001  (what the campaign looks for)
        return "wrong", "".join(traceback.format_exc().splitlines(keepends=True)[-4:])
    found = hostile_inputs.problem(written)
    return ("wrong", found) if found else (f"exit {written.code}", None)


def campaign(target: hostile_inputs.Target, number: int, seed: int, folder: Path) -> int:
    """Try a kind of input in so many ways; print a line, and return how many went wrong."""
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    longest, began = 0.0, time.monotonic()
    for turn in range(number):
        before = time.process_time()
        outcome, wrong = attempt(target, f"{seed}/{target.name}/{turn}", turn, folder)
        longest = max(longest, time.process_time() - before)
        outcomes[outcome] += 1
        kinds[wrong or ""] += 1
        if wrong is not None and kinds[wrong] == 1 and len(kinds) <= _MOST_SHOWN:
            print(f"{target.name}, seed {seed}, turn {turn}: {wrong}\n", file=sys.stderr)
    counts = "  ".join(f"{outcome}: {count:,}" for outcome, count in sorted(outcomes.items()))
    seconds = time.monotonic() - began
    times = f"{number:7,} in {seconds:5.0f} s, longest {longest * 1000:5.0f} ms of CPU"
    print(f"{target.name:26} {times}  {counts}", flush=True)
    return outcomes["wrong"]


def main() -> int:
    """Run the campaign; the exit code is 1 if anything went wrong."""
    number, seed = [*map(int, sys.argv[1:]), *(100_000, 1)[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hostile_inputs.make_folder(folder)
        os.chdir(folder)
        targets = hostile_inputs.targets(folder)
        wrong = sum(campaign(one, math.ceil(number / len(targets)), seed, folder) for one in targets)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
