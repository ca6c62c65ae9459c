"""Search for inputs that a reader does not stand: ``python -m benchmarks.fuzz MINUTES [TARGET ...]``.

Each target (``tests/support/fuzz_targets.py``) gets the same part of the time, in a process of its own.
atheris guides the search by the lines that an input reaches (``pip install hccl-tools[fuzz]``); where it does
not install, hypothesis makes the inputs. An input of at most 16 KB is wrong if it raises what is not an error
of hccl-tools, or takes more than a second or 200 MB. A line per target says how many were tried. What is
wrong is written to FUZZ_FINDINGS (``fuzz-findings``); its place, once mended, is ``tests/data/fuzz``.
"""

from __future__ import annotations

import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.fuzz_targets import Reader

ROOT = Path(__file__).parent.parent
#: Bytes of the longest input: faults of size have tests of their own.
LONGEST = 1 << 14
#: CPU seconds and bytes for an input.
MOST_SECONDS, MOST_BYTES = 1.0, 200 << 20
_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_FINDINGS = "FUZZ_FINDINGS"


class WrongError(Exception):
    """An input took too much time or memory."""


def attempt(read: Reader, data: bytes) -> None:
    """Give an input to a reader.

    Raises:
        WrongError: It took too long, or too much memory.
        Exception: The reader does not stand it.
    """
    from tests.support.fuzz_targets import give  # noqa: PLC0415  (after atheris has changed how modules load)

    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    give(read, data)
    seconds = time.process_time() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if seconds > MOST_SECONDS:
        raise WrongError(f"{seconds:.1f} s of CPU time for {len(data)} bytes")
    if more > MOST_BYTES:
        raise WrongError(f"{more >> 20} MB for {len(data)} bytes")


def _keep(name: str, data: bytes, error: BaseException) -> None:
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    # One input for each kind of error at a place in the code.
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
    if not (folder / place).exists():
        (folder / place).write_bytes(data)
        lines = traceback.format_exception(error)
        (folder / f"{place}.txt").write_text("".join(lines), errors="backslashreplace")


def _guarded(name: str, read: Reader, data: bytes) -> None:
    try:
        attempt(read, data)
    except Exception as error:  # noqa: BLE001  (what is searched for)
        _keep(name, data, error)


def _with_atheris(name: str, seconds: int, corpus: str) -> None:
    import atheris  # noqa: PLC0415  (an extra)

    with atheris.instrument_imports(include=["hccl_tools"]):
        from tests.support import fuzz_targets  # noqa: PLC0415  (after atheris has changed how modules load)
    read = fuzz_targets.readers()[name]
    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-rss_limit_mb=2000", "-timeout=60"]
    atheris.Setup(
        [sys.argv[0], *limits, "-print_final_stats=1", corpus], lambda data: _guarded(name, read, data)
    )
    atheris.Fuzz()


def _with_hypothesis(name: str, seconds: int) -> None:
    from hypothesis import HealthCheck, given, settings  # noqa: PLC0415  (where there is no atheris)
    from hypothesis import strategies as st  # noqa: PLC0415

    from tests.support import fuzz_targets  # noqa: PLC0415

    read, known, until = fuzz_targets.readers()[name], fuzz_targets.seeds(name), time.monotonic() + seconds
    tried = 0

    @given(st.data())
    @settings(max_examples=1000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def search(data: st.DataObject) -> None:
        nonlocal tried
        whole = data.draw(st.sampled_from([b"", *known]))
        start, end = (data.draw(st.integers(0, len(whole))) for _ in range(2))
        tried += 1
        _guarded(name, read, whole[:start] + data.draw(st.binary(max_size=64)) + whole[end:])

    while time.monotonic() < until:
        search()
    print(f"stat::number_of_executed_units: {tried}", file=sys.stderr)


def _child(name: str, seconds: int) -> None:
    from tests.support import fuzz_targets  # noqa: PLC0415  (in the process of the search)

    if find_spec("atheris") is None:
        _with_hypothesis(name, seconds)
        return
    with tempfile.TemporaryDirectory(prefix="fuzz-corpus-") as corpus:
        for number, seed in enumerate(fuzz_targets.seeds(name)):
            Path(corpus, f"seed-{number}").write_bytes(seed)
        _run_atheris(name, seconds, corpus)


def _run_atheris(name: str, seconds: int, corpus: str) -> None:
    """Search in a process that has loaded nothing of hccl-tools yet."""
    command = [sys.executable, "-m", "benchmarks.fuzz", "--search", name, str(seconds), corpus]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    sys.stderr.write(done.stderr[-4000:])
    if done.returncode:
        sys.exit(done.returncode)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < math.inf:
        sys.exit(f'"{text}" is not a number of minutes: make fuzz MINUTES=10')
    return minutes


def _folder(name: str) -> Path:
    """Return where the inputs are kept that break a target."""
    return Path(os.environ.get(_FINDINGS, "fuzz-findings"), name)


def _campaign(minutes: float, wanted: list[str]) -> int:
    from tests.support import fuzz_targets  # noqa: PLC0415  (a search loads it differently)

    known = list(fuzz_targets.readers())
    if strange := [name for name in wanted if name not in known]:
        sys.exit(f"no target {', '.join(strange)}; targets: {', '.join(known)}")
    names = wanted or known
    seconds, wrong = max(1, round(minutes * 60 / len(names))), 0
    how = "atheris" if find_spec("atheris") else "hypothesis"
    print(f"{len(names)} targets, {seconds} s each, with {how}")
    for name in names:
        before = set(_folder(name).glob("*.txt"))
        command = [sys.executable, "-m", "benchmarks.fuzz", "--child", name, str(seconds)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
        )
        tried = _EXECUTIONS.findall(done.stderr)
        found = set(_folder(name).glob("*.txt")) - before
        wrong += len(found) + (done.returncode != 0)
        end = f": {_folder(name)}" if found else ""
        end += "" if done.returncode == 0 else f", ended with {done.returncode}: {done.stderr[-300:]}"
        print(f"{name:26} {int(tried[-1]) if tried else 0:10,} inputs, {len(found)} wrong{end}", flush=True)
    return wrong


def main() -> None:
    """Run a campaign, or the search of one of its processes."""
    match sys.argv[1:]:
        case ["--child", name, seconds]:
            _child(name, int(seconds))
        case ["--search", name, seconds, corpus]:
            _with_atheris(name, int(seconds), corpus)
        case [minutes, *names]:
            sys.exit(1 if _campaign(_minutes(minutes), names) else 0)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
