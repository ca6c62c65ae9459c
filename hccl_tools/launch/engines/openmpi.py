"""The options of Open MPI's mpirun, 4.1 and 5.

Both versions accept the same options: ``--map-by`` with the qualifier OVERSUBSCRIBE (the plain
``--oversubscribe`` is deprecated in 5) and ``--bind-to none`` (the default binds each of one or two
ranks to one core, which makes threaded ranks very slow).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.mpi import MpiEngine
from hccl_tools.programs import mpirun

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

#: Settings of TCP keepalive: mpirun gives up a host after 5 s of silence and 5 unanswered probes, one every
#: 2 s. By default, Open MPI would send the first probe after 5 minutes.
_KEEPALIVE = {"time": 5, "intvl": 2, "probes": 5}


class OpenMpi(MpiEngine):
    """One version of Open MPI.

    ``kill_timeout`` is the time in seconds from SIGTERM to SIGKILL of supervisors if mpirun ends a job.
    Version 4 always waits for the whole time, several times.
    """

    def __init__(self, *, kill_timeout: int = 1) -> None:
        self.kill_timeout = kill_timeout

    def host_options(self, plan: Plan) -> list[str]:
        """Return the options that start one process on each host of a plan."""
        options = ["-n", str(len(plan.hosts)), "--host", ",".join(plan.hosts), "--wdir", plan.working_dir]
        options += [*_allow_root(), "--map-by", "ppr:1:node", "--bind-to", "none"]
        # Supervisors end their ranks themselves; mpirun's 0.25 s (v5) or 1 s (v4) would cut the grace time.
        options += ["--mca", "odls_base_sigkill_timeout", str(self.kill_timeout)]
        for name, value in _KEEPALIVE.items():
            options += ["--mca", f"oob_tcp_keepalive_{name}", str(value)]
        if prefix := mpirun.Mpirun(plan.engine_program, plan.engine_flavour).prefix:
            options += ["--prefix", prefix]
        for name in plan.exported:
            options += ["-x", name]
        return options

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        options = ["-n", str(plan.world_size), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        return [*options, *_allow_root()]


def _allow_root() -> list[str]:
    return ["--allow-run-as-root"] if os.geteuid() == 0 else []
