"""The program of an engine (mpirun, srun) as the one process that this host's supervisor starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines import command, slurm
from hccl_tools.launch.model.plan import RankProcess

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

#: In the run directory: what the engine forwards, and what mpirun says itself where it starts supervisors.
LOG, ERRORS = "engine.log", "engine_errors.log"
#: mpirun's own words of a job's end say nothing that the report does not say, and would stand amid rank 0's.
_APART = ("/bin/sh", "-c", 'exec "$@" 2>"$0"')


class Starter(RankProcess):
    """mpirun or srun; the ranks are its descendants, here or elsewhere."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """How messages speak of it: ``mpirun``."""
        wrapped = self.argv[: len(_APART)] == _APART
        return os.path.basename(self.argv[len(_APART) + 1 if wrapped else 0])


def processes(plan: Plan) -> tuple[RankProcess, ...]:
    """Return what this host's supervisor starts: the engine, and the scheduler where ranks are MPI processes.

    The engine stands in rank 0's place: its output is shown where the supervisors' is found in it.
    """
    first = plan.ranks[0]
    errors = os.path.join(plan.run_dir, ERRORS)
    apart = (*_APART, errors) if plan.engine == "mpirun" and plan.supervisor else ()
    starter = Starter(
        rank=0,
        host=first.host,
        server_index=first.server_index,
        device=first.device,
        device_id=first.device_id,
        environment=dict(slurm.SETTINGS) if plan.engine == "slurm" else {},
        argv=(*apart, *command(plan)),
        log=LOG,
    )
    if plan.supervisor:
        return (starter,)  # The scheduler is the business of rank 0's host.
    return (*(process for process in plan.local if process.rank < 0), starter)
