"""``launch --emit``: the scripts of ``launchers/`` filled in for a job, or another tool's command line."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError

if TYPE_CHECKING:
    from hccl_tools.launch.plan import Plan, RankProcess

#: What ``--emit`` takes, and the script that is filled in; msrun and torchrun are one command line.
SCRIPTS = {"rank_loop": "rank_loop.sh", "mpirun": "mpirun.sh", "slurm": "slurm.sbatch"}


def text(plan: Plan, target: str) -> str:
    """Return what ``--emit`` prints for a plan.

    Raises:
        LaunchError: The target cannot say what the plan says.
    """
    if target == "msrun":
        return _msrun(plan)
    if target == "torchrun":
        return _torchrun(plan)
    if plan.start == "torch":
        raise LaunchError(
            f"{SCRIPTS[target]} does not set torch's variables",
            hint="--emit torchrun; or --start table for ranks that only need HCCL's",
        )
    settings = _settings(plan, target)
    script = _read(SCRIPTS[target])
    if target == "slurm":
        most = max(len(ranks) for ranks in _by_server(plan).values())
        script = script.replace("--nodes=1", f"--nodes={len(plan.hosts)}")
        script = script.replace("--ntasks-per-node=8", f"--ntasks-per-node={most}")
    return _filled(script, settings)


def _read(name: str) -> str:
    import hccl_tools  # noqa: PLC0415  (for its place only)

    folder = os.path.join(os.path.dirname(os.path.abspath(hccl_tools.__file__)), "launchers")
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def _filled(script: str, settings: dict[str, str]) -> str:
    """Replace the first assignment to each setting, a list of lines up to its bracket; the rest stays."""
    lines: list[str] = []
    left, skipping = dict(settings), False
    for line in script.splitlines():
        if skipping:
            skipping = line != ")"
            continue
        name = line.partition("=")[0]
        if name in left:
            lines.append(f"{name}={left.pop(name)}")
            skipping = line.endswith("=(")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _by_server(plan: Plan) -> dict[int, list[RankProcess]]:
    """Return the ranks by server: along the servers in the order of their lowest rank."""
    found: dict[int, list[RankProcess]] = {}
    for process in plan.ranks:
        found.setdefault(process.server_index, []).append(process)
    return found


def _settings(plan: Plan, target: str) -> dict[str, str]:
    """Return what is put into a script, by the name of its setting, as bash reads it."""
    servers = _by_server(plan)
    lines = [
        f'  "{ranks[0].host} {",".join(str(process.rank) for process in ranks)} '
        f'{",".join(str(process.device_id) for process in ranks)}"'
        for ranks in servers.values()
    ]
    found = {
        "RANK_TABLE_FILE": f"${{RANK_TABLE_FILE-{shlex.quote(plan.table or '')}}}",
        "SERVERS": "\n".join(["(", *lines, ")"]),
        "COMMAND": f"({shlex.join(plan.ranks[0].argv)})",
    }
    if target == "rank_loop":
        found["SERVER"] = f"${{SERVER:-{list(servers).index(_here(plan)[0].server_index)}}}"
    if port := plan.ranks[0].environment.get("MS_SCHED_PORT"):
        found["SCHED_PORT"] = f"${{SCHED_PORT:-{port}}}"
    return found


def _here(plan: Plan) -> list[RankProcess]:
    """Return the ranks of this host, or of rank 0's where the job has none here."""
    first = [process for process in plan.ranks if process.server_index == plan.ranks[0].server_index]
    return [process for process in plan.local if process.rank >= 0] or first


def _msrun(plan: Plan) -> str:
    ranks = _here(plan)
    first = plan.ranks[0].environment
    options = [f"--worker_num={plan.world_size}", f"--local_worker_num={len(ranks)}"]
    if len(plan.hosts) > 1:
        options += [f"--master_addr={first.get('MS_SCHED_HOST', plan.hosts[0])}"]
        options += [f"--node_rank={plan.hosts.index(ranks[0].host)}"]
    if port := first.get("MS_SCHED_PORT"):
        options.append(f"--master_port={port}")
    if plan.table:
        options.append(f"--rank_table_file={plan.table}")
    return _line(plan, ["msrun", *options, "--join=True", "--log_dir=log"])


def _torchrun(plan: Plan) -> str:
    ranks = _here(plan)
    first = plan.ranks[0].environment
    options = [f"--nproc-per-node={len(ranks)}", f"--nnodes={len(plan.hosts)}"]
    if len(plan.hosts) > 1:
        options += [f"--node-rank={plan.hosts.index(ranks[0].host)}"]
        options += [f"--master-addr={first.get('MASTER_ADDR', plan.hosts[0])}"]
    if port := first.get("MASTER_PORT"):
        options.append(f"--master-port={port}")
    return _line(plan, ["torchrun", *options])


def _line(plan: Plan, command: list[str]) -> str:
    """Return a command line for this host, its devices chosen by the visible list.

    Raises:
        LaunchError: The program is no Python script: these tools start nothing else.
    """
    argv = list(_here(plan)[0].argv)
    if not os.path.basename(argv[0]).startswith("python"):
        raise LaunchError(f"{command[0]} starts Python scripts only, not {shlex.join(argv)}")
    devices = ",".join(map(str, sorted(process.device for process in _here(plan))))
    return f"ASCEND_RT_VISIBLE_DEVICES={devices} {shlex.join([*command, *argv[1:]])}\n"
