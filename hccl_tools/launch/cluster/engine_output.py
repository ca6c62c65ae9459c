"""The logs of ranks that are MPI processes on this host, shown as they lie in the run directory.

What mpirun hands on holds its own words as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.process import LOG

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.request import Tail
    from hccl_tools.launch.supervise.attempt import Attempt


def watch(attempt: Attempt, plan: Plan, shown: Tail) -> None:
    """Show the logs of these ranks."""
    engine = next(end for end in attempt.ends if end.process.rank >= 0)
    # "" or, after a restart, ".restart_1".
    generation = os.path.basename(engine.log)[len(os.path.splitext(LOG)[0]) : -len(".log")]
    for rank in range(plan.world_size) if shown == "all" else shown:
        path = os.path.join(plan.run_dir, f"rank_{rank}{generation}.log")
        with open(path, "ab"):
            pass  # Its shim may not have come to make it.
        attempt.followers.follow(path, rank)
