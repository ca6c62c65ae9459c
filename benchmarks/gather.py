"""Time of gathering 64 hosts into one table: ``python -m benchmarks.gather [RUNS]``.

64 simulated hosts are 64 local MPI processes. Held against 64 processes that import mpi4py and gather a
string of 2 kB; from both the time of ``mpirun`` itself is taken, that of 64 processes that sleep a
little, less their sleep: with processes that end at once (``true``) ``mpirun`` hangs now and then.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.measuring import Contender, Row, alternate, report

HOSTS = 64
SLEEP_S = 0.3
GATHER = """
from mpi4py import MPI
MPI.COMM_WORLD.gather("x" * 2000)
"""


def main(runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpirun = ["mpirun", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", str(HOSTS)]
    gen = ["hccl-tools", "gen", "--gather", "--simulate", "910a", "-o", "-"]
    try:
        figures = alternate(
            [
                Contender(name, [*mpirun, *argv], cwd=str(folder), env=root)
                for name, argv in (
                    ("gen --gather", gen),
                    ("mpi4py gather", [sys.executable, "-c", GATHER]),
                    ("mpirun", ["sleep", str(SLEEP_S)]),
                )
            ],
            runs,
        )
    finally:
        shutil.rmtree(folder)
    alone = figures["mpirun"].seconds - SLEEP_S
    ours, plain = figures["gen --gather"].seconds - alone, figures["mpi4py gather"].seconds - alone
    rows = [
        Row(f"one table of {HOSTS} hosts, beyond mpirun", ours, "s", "mpi4py gather", plain, 2.0),
        Row("mpirun itself", alone, "s", "mpi4py gather", plain),
    ]
    report(f"gather: medians of {runs}, whole jobs less mpirun itself", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
