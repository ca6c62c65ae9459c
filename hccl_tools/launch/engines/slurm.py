"""Slurm's srun, inside an allocation: one supervisor per node, each with its own part of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.programs.lookup import ProgramMissingError
from hccl_tools.programs.slurm import find_srun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Plan

#: A step of the user's own (`srun --pty bash`) may hold all cores; without this srun would wait for its end.
SETTINGS = {"SLURM_OVERLAP": "1"}


def command(plan: Plan) -> list[str]:
    """Return the srun command line of a plan."""
    count = str(len(plan.hosts))
    options = ["--nodes", count, "--ntasks", count, "--ntasks-per-node", "1", "--kill-on-bad-exit=1"]
    # Said in any case: a job of `sbatch --export=NONE` hands on that wish to its steps.
    options.append("--export=" + (",".join(plan.exported) if plan.only_exported else "ALL"))
    if plan.nodes:
        options += ["--nodelist", ",".join(plan.nodes)]
    # A step gets one core per task unless told otherwise, and the supervisor's ranks would share it.
    return [plan.engine_program, *options, "--cpu-bind=none", "--chdir", plan.working_dir, *plan.supervisor]


def find(environ: Mapping[str, str], *, has_table: bool) -> str:
    """Return the srun on PATH.

    Raises:
        ProgramMissingError: There is none.
        LaunchError: This is not an allocation: srun would wait in the queue for one of its own.
        UsageError: There is no table, which assigns ranks to nodes.
    """
    path = find_srun(environ)
    if path is None:
        raise ProgramMissingError("--engine slurm: no srun on PATH", hint="use --engine mpirun or loop")
    if not has_table:
        raise UsageError("--engine slurm needs a rank table", hint="add --rank-table FILE")
    if "SLURM_JOB_ID" not in environ:
        raise LaunchError(
            "--engine slurm: not in a Slurm allocation",
            hint="`salloc -N 2` or `sbatch` first, or write a batch script with --emit slurm",
        )
    return path
