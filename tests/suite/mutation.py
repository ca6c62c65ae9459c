"""Change the package in one place at a time and see whether a test fails: ``python -m tests.suite.mutation``.

A mutant (``mutants.py``) is tried against the tests that reach its line, as a run with
``pytest --cov=hccl_tools --cov-context=test`` has recorded in .coverage. It is killed if one of them fails or
does not end; a mutant that is alive shows what no test looks at, or a change that makes no difference. The
last lines count the areas; the exit code is 1 if more than MOST_ALIVE of the mutants are alive.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from coverage import CoverageData

from tests.suite import mutants
from tests.suite.mutants import AREAS, ROOT, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ALIVE = 0.08
#: Test functions that a mutant is tried against, those nearest to its module first.
_MOST_TESTS = 400
#: Seconds for these tests; a mutant that needs longer is one that does not end.
_LONGEST = 300.0


def main() -> int:
    """Try the mutants; return the exit code."""
    options = _parsed()
    tried = mutants.chosen(options.seed, options.mutants)
    if options.only:
        tried = [mutant for mutant in tried if mutant.area in options.only]
    covered = CoverageData(options.coverage)
    covered.read()
    trees: SimpleQueue[Path] = SimpleQueue()
    alive: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            trees.put(_copy(Path(folder, str(number))))
        results = pool.map(lambda mutant: _try(mutant, covering(mutant, covered), trees), tried)
        for number, (mutant, end) in enumerate(zip(tried, results, strict=True), 1):
            alive[mutant.area] += end.startswith("alive")
            source = (ROOT / mutant.path).read_bytes()
            print(f"{number:3} {mutant.area}: {end}: {mutant.described(source)}", flush=True)
    for area in AREAS:
        print(f"{area}: {alive[area]} of {sum(mutant.area == area for mutant in tried)} alive")
    print(f"{alive.total()} of {len(tried)} mutants alive (--seed {options.seed})")
    return 1 if alive.total() > MOST_ALIVE * len(tried) else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mutants", type=int, default=400, help="how many, equally over the areas")
    parser.add_argument("--seed", type=int, default=1, help="of the choice")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    parser.add_argument("--coverage", default=str(ROOT / ".coverage"), help="the recorded data")
    parser.add_argument("--only", action="append", choices=list(AREAS), help="an area")
    return parser.parse_args()


def _copy(target: Path) -> Path:
    """Copy the files of the working tree that Git knows."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, names.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


def covering(mutant: Mutant, covered: CoverageData) -> list[str]:
    """Return the tests that reach a mutant's line, the nearest first."""
    name = next((file for file in covered.measured_files() if file.endswith(mutant.path)), None)
    if name is None:
        return []
    contexts = covered.contexts_by_lineno(name).get(mutant.line, [])
    tests = {context.partition("|")[0].partition("[")[0] for context in contexts if context}
    parts = set(Path(mutant.path).with_suffix("").parts)

    def distance(test: str) -> tuple[int, str]:
        path = Path(test.partition("::")[0]).with_suffix("")
        return -sum(part.removeprefix("test_") in parts for part in path.parts), test

    return sorted(tests, key=distance)[:_MOST_TESTS]


def _try(mutant: Mutant, tests: list[str], trees: SimpleQueue[Path]) -> str:
    """Try a mutant in a tree of its own; return how that ended."""
    if not tests:
        return "alive, no test reaches it"
    tree = trees.get()
    source = (ROOT / mutant.path).read_bytes()
    try:
        _write(tree / mutant.path, mutant.applied(source))
        return _ended(tree, tests)
    finally:
        _write(tree / mutant.path, source)
        trees.put(tree)


def _write(path: Path, source: bytes) -> None:
    """Write a module so that Python compiles it again: it compares seconds, which can be those of before."""
    later = path.stat().st_mtime + 10
    path.write_bytes(source)
    os.utime(path, (later, later))


def _ended(tree: Path, tests: list[str]) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as selection:
        selection.write("\n".join(tests))
        selection.flush()
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"@{selection.name}"]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            done = subprocess.run(
                [*command, "--hypothesis-profile=check"],
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed, does not end"
    if done.returncode == 0:
        return f"alive after {len(tests)} tests"
    return "killed by " + next(_failed(done.stdout), f"exit code {done.returncode}")


def _failed(output: str) -> Iterator[str]:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            yield line.split(" ", 2)[1].partition(" - ")[0]


if __name__ == "__main__":
    sys.exit(main())
