"""The common part of the engines for Open MPI and MPICH."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.engine import Engine
from hccl_tools.runs import names

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


class MpiEngine(Engine):
    """Starts a supervisor on each host, or the ranks on this host as MPI processes."""

    name = "mpirun"
    starts_mpi_ranks = True

    def host_options(self, plan: Plan) -> list[str]:
        """Return the options that start one process on each host of a plan."""
        raise NotImplementedError

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        raise NotImplementedError

    def command(self, plan: Plan) -> list[str]:
        """Return the command line of a plan."""
        if plan.supervisor:
            return [plan.engine_program, *self.host_options(plan), *plan.supervisor]
        return [plan.engine_program, *self.rank_options(plan), *_shim(plan)]

    def keeps_stderr_apart(self, plan: Plan) -> bool:
        """Return whether the plan has supervisors: mpirun's messages would mix with rank 0's output."""
        return bool(plan.supervisor)


def _shim(plan: Plan) -> list[str]:
    options = ["--run-dir", plan.run_dir, "--start", plan.start]
    if plan.table:
        options += ["--rank-table", os.path.join(plan.run_dir, names.TABLE)]
    else:
        options += ["--devices", ",".join(str(process.device) for process in plan.ranks)]
    if plan.cpu:
        options.append("--cpu")
    if scheduler := next((process for process in plan.processes if process.rank < 0), None):
        options += ["--scheduler-port", scheduler.environment["MS_SCHED_PORT"]]
    return [*plan.shim_command, *options, "--no-python", "--", *plan.ranks[0].argv]
