"""``launch --emit``: the scripts of ``launchers/`` filled in for a job, or another tool's command line."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch.planning.environment import BACKEND_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hccl_tools.launch.model.plan import Plan, RankProcess

#: What ``--emit`` takes, and the script that is filled in; msrun and torchrun are one command line.
SCRIPTS = {"rank_loop": "rank_loop.sh", "mpirun": "mpirun.sh", "slurm": "slurm.sbatch"}
#: Options that what is printed does not heed, and which of the targets do all the same.
_TAKEN_OVER: Mapping[str, tuple[str, ...]] = {
    "--grace": ("rank_loop",),
    "--max-restarts": ("torchrun",),
    "--engine": tuple(SCRIPTS),
    "--master-addr": ("msrun", "torchrun"),
    "--all-here": (),
    "--timeout": (), "--early-exit-warn": (), "--hang-warn": (), "--notify": (), "--on-log-error": (),
    "--log-file": (), "--log-mode": (), "--flat-logs": (), "--buffered": (), "--tail": (), "--stdin": (),
    "--bind": (), "--keep-mpi": (), "--pass-table": (), "--mpirun": (), "--export": (), "--no-export": (),
}  # fmt: skip


class Wishes(NamedTuple):
    """What the user wants besides the plan; ``None`` is the target's own default.

    ``environment`` is set for every rank, ``grace`` are seconds, ``log_dir`` may hold ``%j``.
    """

    environment: Mapping[str, str]
    log_dir: str | None = None
    grace: float | None = None
    max_restarts: int | None = None


def check_options(typed: Collection[str], target: str) -> None:
    """Refuse options that what is printed would not heed.

    Args:
        typed: The options on the command line, by their own names (``--grace``).
        target: What ``--emit`` says.

    Raises:
        UsageError: One of them would be lost.
    """
    for option, targets in _TAKEN_OVER.items():
        if option in typed and target not in targets:
            raise UsageError(
                f"--emit {target} cannot take {option} over",
                hint=f"leave {option} out, or let `hccl-tools launch` itself start the job",
            )


def text(plan: Plan, target: str, wishes: Wishes) -> str:
    """Return what ``--emit`` prints for a plan.

    Raises:
        LaunchError: The target cannot say what the plan says.
    """
    if target not in SCRIPTS:
        return command_line(plan, target, wishes)
    if plan.start == "torch":
        raise LaunchError(
            f"{SCRIPTS[target]} does not set torch's variables",
            hint="--emit torchrun; or --start table for ranks that only need HCCL's",
        )
    settings = _settings(plan, target, wishes._replace(environment=environment(plan, wishes)))
    script = _read(SCRIPTS[target])
    if target == "slurm":
        most = max(len(ranks) for ranks in _by_server(plan).values())
        script = script.replace("--nodes=1", f"--nodes={len(plan.hosts)}")
        script = script.replace("--ntasks-per-node=8", f"--ntasks-per-node={most}")
    return _filled(script, settings)


def environment(plan: Plan, wishes: Wishes) -> dict[str, str]:
    """Return what is set for every rank: the user's variables, and that of a rehearsal on the CPU."""
    backend = plan.ranks[0].environment.get(BACKEND_VARIABLE) if plan.cpu else None
    return {**({BACKEND_VARIABLE: backend} if backend else {}), **wishes.environment}


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


def _settings(plan: Plan, target: str, wishes: Wishes) -> dict[str, str]:
    """Return what is put into a script, by the name of its setting, as bash reads it."""
    servers = _by_server(plan)
    lines = [
        f"{ranks[0].host} {','.join(str(process.rank) for process in ranks)} "
        f"{','.join(str(process.device_id) for process in ranks)}"
        for ranks in servers.values()
    ]
    found = {
        "RANK_TABLE_FILE": f"${{RANK_TABLE_FILE-{shlex.quote(plan.table or '')}}}",
        "SERVERS": "\n".join(["(", *(f"  {shlex.quote(line)}" for line in lines), ")"]),
        "COMMAND": f"({shlex.join(plan.ranks[0].argv)})",
    }
    if wishes.environment:
        variables = (f"{name}={value}" for name, value in wishes.environment.items())
        found["ENVIRONMENT"] = f"({shlex.join(variables)})"
    if wishes.log_dir is not None:
        parts = (shlex.quote(part) for part in wishes.log_dir.split("%j"))
        found["LOG_DIR"] = f"${{LOG_DIR:-{'${SLURM_JOB_ID:-nojob}'.join(parts)}}}"
    if wishes.grace is not None:
        # The script counts whole seconds.
        found["GRACE"] = f"${{GRACE:-{-int(-wishes.grace // 1)}}}"
    if target == "rank_loop":
        found["SERVER"] = f"${{SERVER:-{list(servers).index(here(plan)[0].server_index)}}}"
    if port := plan.ranks[0].environment.get("MS_SCHED_PORT"):
        found["SCHED_PORT"] = f"${{SCHED_PORT:-{port}}}"
    return found


def here(plan: Plan) -> list[RankProcess]:
    """Return the ranks of this host, or of rank 0's where the job has none here."""
    first = [process for process in plan.ranks if process.server_index == plan.ranks[0].server_index]
    return [process for process in plan.local if process.rank >= 0] or first


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
