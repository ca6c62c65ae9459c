"""The command line of ``--engine mpirun``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines import mpich, openmpi
from hccl_tools.launch.model.plan import TABLE_COPY

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


def command(plan: Plan) -> list[str]:
    """Return the command line of a plan: with a table a supervisor per host, without one the ranks."""
    options = mpich if plan.engine_flavour.startswith("mpich") else openmpi
    if plan.supervisor:
        return [plan.engine_program, *options.for_hosts(plan), *plan.supervisor]
    return [plan.engine_program, *options.for_ranks(plan), *_shim(plan)]


def _shim(plan: Plan) -> list[str]:
    first = plan.ranks[0]
    options = ["--run-dir", plan.run_dir, "--start", plan.start]
    if plan.table:
        options += ["--rank-table", os.path.join(plan.run_dir, TABLE_COPY)]
    else:
        options += ["--devices", ",".join(str(process.device) for process in plan.ranks)]
    if plan.cpu:
        options.append("--cpu")
    if scheduler := next((process for process in plan.processes if process.rank < 0), None):
        options += ["--scheduler-port", scheduler.environment["MS_SCHED_PORT"]]
    return [*plan.shim_command, *options, "--no-python", "--", *first.argv]
