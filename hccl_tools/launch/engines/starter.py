"""The program of an engine (mpirun, srun) as the one process that this host's supervisor starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines import command, slurm
from hccl_tools.launch.plan import RankProcess

if TYPE_CHECKING:
    from hccl_tools.launch.plan import Plan

#: What the engine says itself and forwards, in the run directory.
LOG = "engine.log"


class Starter(RankProcess):
    """mpirun or srun; the ranks are its descendants, here or elsewhere."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """How messages speak of it: ``mpirun``."""
        return os.path.basename(self.argv[0])


def processes(plan: Plan) -> tuple[RankProcess, ...]:
    """Return what this host's supervisor starts: the engine, and the scheduler where ranks are MPI processes.

    The engine stands in rank 0's place: its output, in which rank 0's is found, is shown.
    """
    first = plan.ranks[0]
    starter = Starter(
        rank=0,
        host=first.host,
        server_index=first.server_index,
        device=first.device,
        device_id=first.device_id,
        environment=dict(slurm.SETTINGS) if plan.engine == "slurm" else {},
        argv=tuple(command(plan)),
        log=LOG,
    )
    if plan.supervisor:
        return (starter,)  # The scheduler is the business of rank 0's host.
    return (*(process for process in plan.local if process.rank < 0), starter)
