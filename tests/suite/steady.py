"""Run tests many times, each time in another order and beside other load, and list those that failed.

``python -m tests.suite.steady --times 5 --load 2 -- -m bed``: a sound test never fails. The exit code is
0 if none failed, else 1.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUSY = "while True: pass"
#: Pytest's exit codes after all tests have run; another one also stands for a selection without a test.
_RAN_TO_THE_END = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def main() -> int:
    """Run them; return the exit code."""
    options = _parsed()
    failed: dict[str, list[int]] = defaultdict(list)
    with _load(options.load):
        for seed in _seeds(options.seed, options.times):
            began = time.monotonic()
            names, closing = _run(seed, options.arguments)
            for name in names:
                failed[name].append(seed)
            print(f"--seed {seed}: {closing} ({time.monotonic() - began:.0f} s)", flush=True)
    for name, seeds in sorted(failed.items(), key=lambda each: -len(each[1])):
        print(f"{len(seeds)} of {options.times} failed: {name} (--seed {', '.join(map(str, seeds))})")
    print(f"{len(failed)} failed in {options.times} runs beside {options.load} busy loops")
    return 1 if failed else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--times", type=int, default=5, help="so many runs")
    parser.add_argument("--load", type=int, default=0, help="so many busy loops beside them")
    parser.add_argument("--seed", type=int, help="of the first run; the others have the next ones")
    parser.add_argument("arguments", nargs="*", help="of pytest")
    options = parser.parse_args()
    if options.times < 1 or options.load < 0:
        parser.error("--times is at least 1, and --load at least 0")
    return options


def _seeds(first: int | None, times: int) -> range:
    start = random.SystemRandom().randrange(1 << 31) if first is None else first
    return range(start, start + times)


@contextmanager
def _load(loops: int) -> Iterator[None]:
    """Keep so many cores busy."""
    started = [subprocess.Popen([sys.executable, "-I", "-S", "-c", _BUSY]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _run(seed: int, arguments: list[str]) -> tuple[list[str], str]:
    """Run pytest once; return the names of the failed tests and its closing line."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", f"--seed={seed}", f"--junitxml={report}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        closing = next(filter(None, reversed(done.stdout.splitlines())), "no output").strip("= ")
        if done.returncode not in _RAN_TO_THE_END or not report.exists():
            print(done.stdout, done.stderr, flush=True)
            return [f"the run itself (pytest's exit code {done.returncode})"], closing
        cases = ET.parse(report).iter("testcase")  # noqa: S314  (pytest has just written it)
        bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if bad:
        print(done.stdout, flush=True)
    return [f"{case.get('classname')}::{case.get('name')}" for case in bad], closing


if __name__ == "__main__":
    sys.exit(main())
