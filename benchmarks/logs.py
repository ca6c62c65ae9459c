"""What it costs to keep and follow the ranks' logs: ``python -m benchmarks.logs [RUNS]``.

A rank that writes 1 GB, against the same into a file; 4 x 20,000 lines to the console with prefixes, against
mpirun's tagging, with the lines counted; and how soon a rank's death is noticed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

from benchmarks.measuring import Row, plain_environment, report

#: Writes 1 GB in whole lines of 120 characters, 64 KiB at a time.
_GIGABYTE = "import os; lines = (b'x' * 119 + b'\\n') * 546\nfor _ in range(16384): os.write(1, lines)"
_LINES = 20_000
_WRITER = (
    "import os; rank = os.environ.get('RANK_ID') or os.environ['OMPI_COMM_WORLD_RANK']\n"
    f"for n in range({_LINES}): print(('%s %06d ' % (rank, n)).ljust(120, 'x'))"
)
_PYTHON = [sys.executable, "-I", "-S", "-c"]
_LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--no-table"]


def timed(argv: list[str], stdout: Path) -> float:
    """Seconds of a whole process whose output goes to a file."""
    with stdout.open("wb") as stream:
        began = time.perf_counter()
        subprocess.run(argv, stdout=stream, stderr=subprocess.DEVNULL, env=plain_environment(), check=True)
        return time.perf_counter() - began


def gigabyte(folder: Path, runs: int) -> Row:
    """Hold a rank that writes 1 GB against the same program with ``> file``; the best of each."""
    ours, plain = [], []
    program = [*_PYTHON, _GIGABYTE]
    for _ in range(runs):
        plain.append(timed(program, folder / "plain"))
        (folder / "plain").unlink()
        launch = [*_LAUNCH, "-n", "1", "--log-dir", str(folder / "log"), "--no-python", *program]
        ours.append(timed(launch, Path(os.devnull)))
        shutil.rmtree(folder / "log")
    return Row(f"1 GB of log, best of {runs}", min(ours), "s", "> file", min(plain), 1.15)


def console(folder: Path, runs: int) -> list[Row]:
    """Hold 4 x 20,000 lines with prefixes against mpirun, and count what is lost, torn or doubled."""
    program = [*_PYTHON, _WRITER]
    launch = [*_LAUNCH, "-n", "4", "--tail", "all", "--log-dir", str(folder / "log"), "--no-python", *program]
    ours = median(timed(launch, folder / "ours") for _ in range(runs))
    pattern = re.compile(r"\[rank (\d)\] (\1 \d{6}) x+")
    lines = (folder / "ours").read_text().splitlines()
    whole = Counter(match[2] for match in map(pattern.fullmatch, lines) if match and len(match[0]) == 129)
    torn = len(lines) - whole.total()
    print(f"lines: {4 * _LINES - len(whole)} lost, {torn} torn, {whole.total() - len(whole)} doubled")
    tags = tagging()
    if tags is None:
        return []
    mpirun = ["mpirun", *tags, "--oversubscribe", "--bind-to", "none", "-n", "4", *program]
    if os.geteuid() == 0:
        mpirun.insert(1, "--allow-run-as-root")
    theirs = median(timed(mpirun, folder / "theirs") for _ in range(runs))
    return [Row("80,000 lines with prefixes", ours, "s", "mpirun", theirs, 1)]


def tagging() -> list[str] | None:
    """Return mpirun's option for prefixes, ``None`` without mpirun."""
    if not shutil.which("mpirun"):
        return None
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    return ["--tag-output"] if re.search(r"\) 4\.", version) else ["--output", "tag"]


def noticing(folder: Path, runs: int) -> Row:
    """From the death of a rank (of 16) to the end of the launcher, everything ended and reported."""
    delays = []
    for _ in range(runs):
        logs = folder / "noticed"
        launch = [*_LAUNCH, "-n", "16", "--log-dir", str(logs), "--no-python", "/bin/sleep", "300"]
        launcher = subprocess.Popen(launch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pid = None
        while pid is None:
            time.sleep(0.2)
            pid = next(iter(sleepers(launcher.pid)), None)
        began = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        code = launcher.wait()
        delays.append(time.perf_counter() - began)
        (found,) = logs.glob("[0-9]*/report.json")
        if code != 137 or json.loads(found.read_text())["first_failure"]["pid"] != pid:
            sys.exit(f"exit code {code}: {found.read_text()}")
        shutil.rmtree(logs)
    return Row("a rank's death, until all is over", median(delays), "s", "a bound", 0.1)


def sleepers(launcher: int) -> list[int]:
    """The ranks of a launcher: the children of its keeper, once all 16 run."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found = [pid for pid, parent in parents.items() if parents.get(parent) == launcher]
    return found if len(found) == 16 else []


def main(runs: int) -> None:
    """Measure and print."""
    shared = Path("/dev/shm")  # noqa: S108  (the figure is for tmpfs)
    folder = Path(mkdtemp(prefix="hccl-tools-bench-", dir=shared if shared.is_dir() else None))
    try:
        rows = [gigabyte(folder, runs), *console(folder, runs), noticing(folder, runs)]
    finally:
        shutil.rmtree(folder)
    report(f"logs: {runs} runs", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
