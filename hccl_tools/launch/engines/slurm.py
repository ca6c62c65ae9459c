"""Slurm's srun, inside an allocation: one supervisor per node, each with its own part of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.notation import host_list
from hccl_tools.programs.lookup import ProgramMissingError, on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def nodes(hosts: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return which nodes of the allocation are the hosts of a job; none where it has no others.

    Raises:
        LaunchError: It has too few nodes, or some of its many cannot be told to be the table's.
    """
    listed = environ.get("SLURM_JOB_NODELIST", "")
    allocated = host_list.parse(listed, option="SLURM_JOB_NODELIST") if listed else ()
    if not listed or len(allocated) == len(hosts):
        return ()
    have = f"this allocation has {len(allocated)} node{'s' if len(allocated) > 1 else ''} ({listed})"
    want = f"the table {len(hosts)} server{'s' if len(hosts) > 1 else ''}"
    if len(allocated) < len(hosts):
        raise LaunchError(f"{have}, {want}", hint=f"salloc -N {len(hosts)}, or --nodes in the batch script")
    found = {host: node for node in allocated for host in hosts if _is(node, host)}
    if unknown := [host for host in hosts if host not in found]:
        raise LaunchError(
            f'{have}, {want}, and none of the nodes is called "{unknown[0]}" or has this address',
            hint=f"allocate the table's hosts alone: salloc -N {len(hosts)} -w NODES",
        )
    return tuple(found[host] for host in hosts)


def _is(node: str, host: str) -> bool:
    if node in {host, host.partition(".")[0]}:
        return True
    import socket  # noqa: PLC0415  (an allocation may have more nodes than a table: rarely)

    try:
        return socket.gethostbyname(node) == host
    except (OSError, UnicodeError):
        return False


def find(environ: Mapping[str, str], *, has_table: bool) -> str:
    """Return the srun on PATH.

    Raises:
        ProgramMissingError: There is none.
        LaunchError: This is no allocation: srun would wait in the queue for one of its own.
        UsageError: There is no table to say which node gets which ranks.
    """
    path = on_path("srun", environ)
    if path is None:
        raise ProgramMissingError(
            "--engine slurm: there is no srun on PATH", hint="use --engine mpirun or loop"
        )
    if not has_table:
        raise UsageError("--engine slurm needs a rank table", hint="add --rank-table FILE")
    if "SLURM_JOB_ID" not in environ:
        raise LaunchError(
            "--engine slurm: this is no Slurm allocation",
            hint="`salloc -N 2` or `sbatch` first, or write a batch script with --emit slurm",
        )
    return path
