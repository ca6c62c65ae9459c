"""Time and memory of ``hccl-tools validate``: ``python -m benchmarks.validate [RUNS]``.

Held against ``python -c "import json,sys; json.load(open(sys.argv[1]))"`` on the same file: the least that
anything written in Python can do with a table.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks.measuring import Contender, Row, alternate, report

if TYPE_CHECKING:
    from benchmarks.measuring import Figures

LOAD = ["python", "-c", "import json,sys; json.load(open(sys.argv[1]))"]
FORMATS = ("1.0", "1.2", "2.0", "group_list")


def make(folder: Path, table_format: str, servers: int, *rest: str) -> str:
    """Write a table in a process of its own and return its path."""
    path = str(folder / f"{table_format}-{servers}{''.join(rest)}.json")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", table_format, str(servers), path, *rest], check=True
    )
    return path


def against_load(path: str, runs: int, *, may_fail: tuple[int, ...] = ()) -> tuple[Figures, Figures]:
    """Return the figures of ``validate`` and of ``json.load`` on one file."""
    ours = Contender("validate", ["hccl-tools", "validate", path], may_fail=may_fail)
    figures = alternate([ours, Contender("load", [*LOAD, path])], runs)
    return figures["validate"], figures["load"]


def rows_of(
    what: str,
    both: tuple[Figures, Figures],
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> list[Row]:
    """Return the lines of time and of memory of one table."""
    ours, load = both
    return [
        Row(what, ours.seconds, "s", "json.load", load.seconds, time_limit),
        Row("  peak memory", ours.megabytes, "MB", "json.load", load.megabytes, memory_limit),
    ]


def growth(folder: Path, runs: int) -> Row:
    """Hold 65,536 ranks against 8,192, the time of ``hccl-tools --version`` taken off both."""
    small, large = make(folder, "1.0", 1024), make(folder, "1.0", 8192)
    figures = alternate(
        [
            Contender("nothing", ["hccl-tools", "--version"]),
            Contender("small", ["hccl-tools", "validate", small]),
            Contender("large", ["hccl-tools", "validate", large]),
        ],
        runs,
    )
    start = figures["nothing"].seconds
    return Row(
        "1.0, 65,536 ranks",
        figures["large"].seconds - start,
        "s",
        "8,192 ranks",
        figures["small"].seconds - start,
        9,
    )


def main(runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        rows = rows_of("1.0, 8 ranks", against_load(make(folder, "1.0", 1), runs))
        for table_format in FORMATS:
            both = against_load(make(folder, table_format, 8192), runs)
            rows += rows_of(f"{table_format}, 65,536 ranks", both, 5, 3)
        wrong = against_load(make(folder, "1.0", 8192, "wrong"), max(3, runs // 3), may_fail=(1,))
        rows += rows_of("1.0, 65,536 ranks, every device wrong", wrong, 25, 8)
        rows.append(growth(folder, runs))
    finally:
        shutil.rmtree(folder)
    report(f"validate: medians of {runs}, whole processes", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
