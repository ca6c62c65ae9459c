"""Time and memory of ``hccl-tools validate``: ``python -m benchmarks.validate [RUNS]``.

Sound tables are held against ``python -c "import json,sys; json.load(open(sys.argv[1]))"`` on the same file:
the least that anything written in Python can do with a table. A megabyte in which everything is wrong must
take at most a second and 200 MB.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks import broken
from benchmarks.measuring import Contender, Row, alternate, report
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from benchmarks.measuring import Figures

LOAD = ["python", "-c", "import json,sys; json.load(open(sys.argv[1]))"]
#: Format -> the most that ``validate`` may take of ``json.load``'s time.
LIMITS = {"1.0": 3.5, "1.2": 3.5, "2.0": 1.9, "group_list": 3.5}
#: The outputs that are measured on broken tables; concise and github do a part of what text does.
OUTPUTS = ("text", "json", "sarif")


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


def service_rows(folder: Path, runs: int) -> list[Row]:
    """Hold a service table of 1,024 instances against ``json.load``.

    MindIE-Motor reads 98 groups, so that the table has one finding, whose line is looked up.
    """
    ours, load = against_load(make(folder, SERVICE, 1024), runs, may_fail=(1,))
    return [
        Row("server_group_list, 1,024 instances", ours.seconds, "s", "json.load", load.seconds, 3),
        Row("  peak memory", ours.megabytes, "MB", "json.load", load.megabytes, 2.1),
    ]


def broken_rows(folder: Path) -> list[Row]:
    """Return the lines of tables of a megabyte in which everything is wrong, the worst of all outputs.

    Each of the processes runs once: the worst of three against a limit needs no median.
    """
    rows = []
    for name in broken.TABLES:
        path = str(folder / "broken.json")
        subprocess.run([sys.executable, "-m", "benchmarks.broken", name, "1000000", path], check=True)
        figures = alternate(
            [
                Contender(output, ["hccl-tools", "validate", "-f", output, path], may_fail=(1,))
                for output in OUTPUTS
            ],
            runs=1,
            warm_up=0,
        )
        seconds = max(each.seconds for each in figures.values())
        megabytes = max(each.megabytes for each in figures.values())
        rows.append(Row(name, seconds, "s", "a second", 1, 1))
        rows.append(Row("  peak memory", megabytes, "MB", "200 MB", 200, 1))
    return rows


def main(runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        rows = rows_of("1.0, 8 ranks", against_load(make(folder, "1.0", 1), runs))
        for table_format, limit in LIMITS.items():
            both = against_load(make(folder, table_format, 8192), runs)
            rows += rows_of(f"{table_format}, 65,536 ranks", both, limit, 2.1)
        wrong = against_load(make(folder, "1.0", 8192, "wrong"), max(3, runs // 3), may_fail=(1,))
        rows += rows_of("1.0, 65,536 ranks, every device wrong", wrong, 25, 8)
        rows.append(growth(folder, runs))
        rows += service_rows(folder, runs)
        report(f"validate: medians of {runs}, whole processes", rows)
        worst = broken_rows(folder)
        report("validate: 1 MB in which everything is wrong, the worst of all outputs", worst)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
