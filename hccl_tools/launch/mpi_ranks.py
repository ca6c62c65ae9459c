"""Ranks as MPI processes on this host, seen from the launcher: their logs, and what MPICH does not do.

The logs are followed as they lie in the run directory: what mpirun hands on holds its own words as well.

MPICH's mpiexec waits for all ranks, however one has ended; it ends a job by itself only for a rank that was
killed, or has come to MPI_Init and not to MPI_Finalize. What the shims say of their ranks' ends therefore
decides, as soon as it is said.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.starter import LOG
from hccl_tools.launch.mpi_rank_end import ENDS_FILE

if TYPE_CHECKING:
    from hccl_tools.launch.attempt import Attempt
    from hccl_tools.launch.plan import Plan
    from hccl_tools.launch.request import Tail

#: Seconds between two looks: a rank's death is to be noticed within 0.1 s.
_LOOK = 0.05
_FAILED = b'{"hccl_tools": "rank failed"'


def watch(attempt: Attempt, plan: Plan, shown: Tail) -> None:
    """Show the logs of these ranks, and under MPICH end the job when the first rank has failed."""
    engine = next(end for end in attempt.ends if end.process.rank >= 0)
    # "" or, after a restart, ".restart_1".
    generation = os.path.basename(engine.log)[len(os.path.splitext(LOG)[0]) : -len(".log")]
    for rank in range(plan.world_size) if shown == "all" else shown:
        path = os.path.join(plan.run_dir, f"rank_{rank}{generation}.log")
        with open(path, "ab"):
            pass  # Its shim may not have come to make it.
        attempt.followers.follow(path, rank)
    if plan.engine_flavour.startswith("mpich"):
        ends = os.path.join(plan.run_dir, ENDS_FILE)
        attempt.at("ranks", 0.0, lambda: _look(attempt, ends, 0))


def _look(attempt: Attempt, path: str, seen: int) -> None:
    if (size := _size(path)) > seen:
        with open(path, "rb") as file:
            file.seek(seen)
            lines = file.read(size - seen).splitlines(keepends=True)
        if any(line.startswith(_FAILED) for line in lines):
            attempt.first = next(end for end in attempt.ends if end.process.rank >= 0)
            attempt.end("failed")
            return
        seen += sum(len(line) for line in lines if line.endswith(b"\n"))
    attempt.at("ranks", _LOOK, lambda: _look(attempt, path, seen))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
