"""The command line of msrun or torchrun for a job, where these place its ranks as the table does."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.render.scripts import environment, here

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.render.scripts import Wishes


def command_line(plan: Plan, tool: str, wishes: Wishes) -> str:
    """Return the command of this host that starts the job with ``msrun`` or ``torchrun``.

    Raises:
        LaunchError: The tool would put a rank on another device than the plan, or cannot start the program.
    """
    _check_order(plan, tool)
    options = _msrun(plan, wishes) if tool == "msrun" else _torchrun(plan, wishes)
    ranks = here(plan)
    argv = ranks[0].argv
    if not os.path.basename(argv[0]).startswith("python"):
        raise LaunchError(f"{tool} starts Python scripts only, not {shlex.join(argv)}")
    variables = environment(plan, wishes)
    if not plan.cpu:
        devices = ",".join(map(str, sorted(process.device for process in ranks)))
        variables = {"ASCEND_RT_VISIBLE_DEVICES": devices, **variables}
    words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return f"{' '.join([*words, shlex.join([tool, *options, *argv[1:]])])}\n"


def _check_order(plan: Plan, tool: str) -> None:
    """Refuse a plan whose ranks do not count up along machines and devices, as those of these tools do."""
    counted = 0
    for host in plan.hosts:
        ranks = [process for process in plan.ranks if process.host == host]
        for process in sorted(ranks, key=lambda process: process.device):
            if process.rank != counted:
                raise LaunchError(
                    f"{tool} would put rank {counted} on device {process.device} of {host}, "
                    f"which is rank {process.rank}'s",
                    hint="--emit rank_loop, mpirun and slurm keep the table's order, and so does `launch`",
                )
            counted += 1
    sizes = {host: sum(process.host == host for process in plan.ranks) for host in plan.hosts}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{host} {size}" for host, size in sizes.items())
        raise LaunchError(f"{tool} starts as many ranks on each machine, and the table does not: {shown}")


def _msrun(plan: Plan, wishes: Wishes) -> list[str]:
    ranks = here(plan)
    first = plan.ranks[0].environment
    options = [f"--worker_num={plan.world_size}", f"--local_worker_num={len(ranks)}"]
    if len(plan.hosts) > 1:
        options += [f"--master_addr={first.get('MS_SCHED_HOST', plan.hosts[0])}"]
        options += [f"--node_rank={plan.hosts.index(ranks[0].host)}"]
    if port := first.get("MS_SCHED_PORT"):
        options.append(f"--master_port={port}")
    if plan.table:
        options.append(f"--rank_table_file={plan.table}")
    return [*options, "--join=True", f"--log_dir={wishes.log_dir or 'log'}"]


def _torchrun(plan: Plan, wishes: Wishes) -> list[str]:
    ranks = here(plan)
    first = plan.ranks[0].environment
    options = [f"--nproc-per-node={len(ranks)}", f"--nnodes={len(plan.hosts)}"]
    if len(plan.hosts) > 1:
        options += [f"--node-rank={plan.hosts.index(ranks[0].host)}"]
        options += [f"--master-addr={first.get('MASTER_ADDR', plan.hosts[0])}"]
    if port := first.get("MASTER_PORT"):
        options.append(f"--master-port={port}")
    if wishes.log_dir is not None:
        options += [f"--log-dir={wishes.log_dir}", "--tee=3"]
    if wishes.max_restarts is not None:
        options.append(f"--max-restarts={wishes.max_restarts}")
    return options
