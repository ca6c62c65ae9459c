"""``launch --emit``: the scripts of ``launchers/`` filled in for a job, or another tool's command line.

Sources of ``xllm`` and ``mindie``: xLLM docs/en/getting_started/multi_machine.md (a process per device;
``--node_rank`` is its rank); MindIE-LLM, rank_table_file_configuration.md (a service per host; the table
gives it devices and size).
"""

from __future__ import annotations

import os
import shlex
from importlib.resources import files
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, TableError, UsageError
from hccl_tools.files.export_targets import TARGETS, require_no_error
from hccl_tools.launch.planning.environment import BACKEND_VARIABLE
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess, Start

_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=hccl
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --no-kill
#SBATCH --signal=B:TERM@60
# {servers} for the job, and {spares}: sbatch THIS_FILE
# --no-kill keeps the allocation when it loses a node; a spare then takes the place of the lost node.
# --signal ends the job a minute before its time limit.
{table}exec {command}
"""
_TABLE = """\
# The allocation must contain the servers of the rank table: if Slurm may choose other nodes, add
# `#SBATCH --nodelist=NAMES`. Without --rank-table, `launch` makes the table of the nodes of the allocation.
"""
#: The first service port of a host's processes, unless the command names one.
_FIRST_PORT = 18000
#: The rendezvous port of the job, unless ``--start-port`` names one.
_MASTER_PORT = "18118"


class Script(NamedTuple):
    """A script of ``launchers/``.

    Attributes:
        takes_colons: Whether its hosts can be IPv6 addresses. For mpirun, a colon precedes the rank count.
    """

    file: str
    takes_colons: bool = True


#: The targets of ``--emit`` that are scripts. msrun and torchrun are command lines.
SCRIPTS = {
    "rank_loop": Script("rank_loop.sh"),
    "mpirun": Script("mpirun.sh", takes_colons=False),
    "slurm": Script("slurm.sbatch"),
}
#: The targets that are services of their own, with a command per rank or host.
SERVICES = ("xllm", "mindie")
#: The targets that are other launchers.
_LAUNCHERS = ("msrun", "torchrun")
#: How the framework finds its peers under another launcher, unless ``--start`` says otherwise.
STARTS: Mapping[str, Start] = {"msrun": "cluster", "torchrun": "torch"}
#: Options that ``--emit`` refuses, except for the given targets.
_ACCEPTED_BY: Mapping[str, tuple[str, ...]] = {
    "--grace": ("rank_loop",),
    "--max-restarts": ("torchrun",),
    "--engine": tuple(SCRIPTS),
    "--master-addr": _LAUNCHERS,
    "--cpu": (*SCRIPTS, *_LAUNCHERS),
    "--log-dir": (*SCRIPTS, *_LAUNCHERS),
    "--all-here": (),
    "--timeout": (), "--early-exit-warn": (), "--hang-warn": (), "--hang-timeout": (), "--notify": (),
    "--on-log-error": (), "--faulthandler": (), "--no-faulthandler": (), "--progress": (),
    "--join-timeout": (), "--evidence-timeout": (), "--flight-recorder": (),
    "--spares": (), "--spare-hosts": (), "--exclude": (),
    "--preflight-command": (), "--preflight-timeout": (),
    "--restart-delay": (), "--restart-on": (), "--max-restarts-per-hour": (),
    "--log-file": (), "--log-mode": (), "--flat-logs": (), "--buffered": (), "--tail": (), "--stdin": (),
    "--bind": (), "--keep-mpi": (), "--pass-table": (), "--mpirun": (), "--export": (), "--no-export": (),
}  # fmt: skip


class ScriptOptions(NamedTuple):
    """Options of ``launch`` that are not in the plan; ``None`` selects the default of the target.

    Attributes:
        log_dir: The log directory; ``%j`` is Slurm's job id.
        grace: Seconds from SIGTERM to SIGKILL.
        this_host_only: Whether the command line of another launcher is for one host, which the user named.
    """

    environment: Mapping[str, str]
    log_dir: str | None = None
    grace: float | None = None
    max_restarts: int | None = None
    this_host_only: bool = False


def check_options(typed: Collection[str], target: str) -> None:
    """Refuse options that the script or command would ignore.

    ``typed`` are the options on the command line, by their canonical names (``--grace``).

    Raises:
        UsageError: The target does not support one of the options.
    """
    for option, targets in _ACCEPTED_BY.items():
        if option in typed and target not in targets:
            raise UsageError(
                f"--emit {target} does not support {option}",
                hint=f"leave {option} out, or start the job with `hccl-tools launch`",
            )


def text(plan: Plan, target: str, options: ScriptOptions) -> str:
    """Return the output of ``--emit`` for a plan.

    Raises:
        LaunchError: The target cannot express the plan, or would refuse the table.
    """
    if target in SERVICES:
        return _serving_text(plan, target, options.environment)
    if target not in SCRIPTS:
        return command_line(plan, target, options)
    file = SCRIPTS[target].file
    if plan.start == "torch":
        raise LaunchError(
            f"{file} does not set torch's variables",
            hint="use --emit torchrun, or --start table if the ranks need only HCCL's variables",
        )
    script = (files("hccl_tools") / "launchers" / file).read_text(encoding="utf-8")
    largest = max(map(len, _by_server(plan).values()))
    script = script.replace("--nodes=1", f"--nodes={len(plan.hosts)}")
    script = script.replace("--ntasks-per-node=8", f"--ntasks-per-node={largest}")
    return _fill_in(script, _settings(plan, options))


def environment(plan: Plan, options: ScriptOptions) -> dict[str, str]:
    """Return the variables for every rank: the user's, and Paddle's backend in a rehearsal on the CPU.

    Programs that torchrun starts are torch's, which does not read that variable.
    """
    is_for_paddle = plan.cpu and plan.start != "torch"
    backend = plan.ranks[0].environment.get(BACKEND_VARIABLE) if is_for_paddle else None
    return {**({BACKEND_VARIABLE: backend} if backend else {}), **options.environment}


def _fill_in(script: str, settings: dict[str, str]) -> str:
    lines: list[str] = []
    left, in_array = dict(settings), False
    for line in script.splitlines():
        if in_array:
            in_array = line != ")"
            continue
        name = line.partition("=")[0]
        if name in left:
            lines.append(f"{name}={left.pop(name)}")
            in_array = line.endswith("=(")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _by_server(plan: Plan) -> dict[int, list[RankProcess]]:
    found: dict[int, list[RankProcess]] = {}
    for process in plan.ranks:
        found.setdefault(process.server_index, []).append(process)
    return found


def _settings(plan: Plan, options: ScriptOptions) -> dict[str, str]:
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
        "SERVER": f"${{SERVER:-{list(servers).index(here(plan)[0].server_index)}}}",
    }
    if variables := [f"{name}={value}" for name, value in environment(plan, options).items()]:
        found["ENVIRONMENT"] = f"({shlex.join(variables)})"
    if options.log_dir is not None:
        parts = (shlex.quote(part) for part in options.log_dir.split("%j"))
        found["LOG_DIR"] = f"${{LOG_DIR:-{'${SLURM_JOB_ID:-nojob}'.join(parts)}}}"
    if options.grace is not None:
        # In whole seconds, rounded up.
        found["GRACE"] = f"${{GRACE:-{-int(-options.grace // 1)}}}"
    if port := plan.ranks[0].environment.get("MS_SCHED_PORT"):
        found["SCHED_PORT"] = f"${{SCHED_PORT:-{port}}}"
    return found


def here(plan: Plan) -> list[RankProcess]:
    """Return the ranks of this host, or of rank 0's host if this host has no ranks."""
    return [process for process in plan.local if process.rank >= 0] or next(iter(_by_server(plan).values()))


def command_line(plan: Plan, tool: str, options: ScriptOptions) -> str:
    """Return the commands that start the ranks with ``msrun`` or ``torchrun``, one for each server.

    Raises:
        LaunchError: The tool would put a rank on another device than the plan, or cannot start the program.
    """
    _check_order(plan, tool)
    servers = [here(plan)] if options.this_host_only else list(_by_server(plan).values())
    lines = [_command_of(plan, ranks, tool, options) for ranks in servers]
    if len(lines) == 1:
        return f"{lines[0]}\n"
    titles = (_host_title(ranks[0].host, fold(process.rank for process in ranks)) for ranks in servers)
    return "\n".join(f"{head}\n{line}\n" for head, line in zip(titles, lines, strict=True))


def _command_of(plan: Plan, ranks: Sequence[RankProcess], tool: str, options: ScriptOptions) -> str:
    """Return the command for the ranks of one server."""
    build = _msrun if tool == "msrun" else _torchrun
    argv = ranks[0].argv
    if not os.path.basename(argv[0]).startswith("python"):
        raise LaunchError(f"{tool} starts Python scripts only, not {shlex.join(argv)}")
    variables = environment(plan, options)
    if not plan.cpu:
        devices = ",".join(map(str, sorted(process.device for process in ranks)))
        variables = {"ASCEND_RT_VISIBLE_DEVICES": devices, **variables}
    words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " ".join([*words, shlex.join([tool, *build(plan, ranks, options), *argv[1:]])])


def _check_order(plan: Plan, tool: str) -> None:
    servers = list(_by_server(plan).values())
    ordered = [each for ranks in servers for each in sorted(ranks, key=lambda process: process.device)]
    for expected, process in enumerate(ordered):
        if process.rank != expected:
            raise LaunchError(
                f"{tool} would put rank {expected} on device {process.device} of {process.host}, "
                f"which belongs to rank {process.rank}",
                hint="`launch` and --emit rank_loop, mpirun and slurm keep the order of the table",
            )
    if len(set(map(len, servers))) > 1:
        shown = ", ".join(f"{len(ranks)} on {ranks[0].host}" for ranks in servers)
        raise LaunchError(
            f"{tool} starts the same number of ranks on each machine, but the table has {shown}"
        )


def _msrun(plan: Plan, ranks: Sequence[RankProcess], wanted: ScriptOptions) -> list[str]:
    first = plan.ranks[0].environment
    options = [f"--worker_num={plan.world_size}", f"--local_worker_num={len(ranks)}"]
    if len(plan.hosts) > 1:
        options += [f"--master_addr={first.get('MS_SCHED_HOST', plan.hosts[0])}"]
        options += [f"--node_rank={plan.hosts.index(ranks[0].host)}"]
    if port := first.get("MS_SCHED_PORT"):
        options.append(f"--master_port={port}")
    if plan.table:
        options.append(f"--rank_table_file={plan.table}")
    return [*options, "--join=True", f"--log_dir={wanted.log_dir or 'log'}"]


def _torchrun(plan: Plan, ranks: Sequence[RankProcess], wanted: ScriptOptions) -> list[str]:
    first = plan.ranks[0].environment
    options = [f"--nproc-per-node={len(ranks)}", f"--nnodes={len(plan.hosts)}"]
    if len(plan.hosts) > 1:
        options += [f"--node-rank={plan.hosts.index(ranks[0].host)}"]
        options += [f"--master-addr={first.get('MASTER_ADDR', plan.hosts[0])}"]
    if port := first.get("MASTER_PORT"):
        options.append(f"--master-port={port}")
    if wanted.log_dir is not None:
        options += [f"--log-dir={wanted.log_dir}", "--tee=3"]
    if wanted.max_restarts is not None:
        options.append(f"--max-restarts={wanted.max_restarts}")
    return options


def batch_script(servers: int, spares: int, command: Sequence[str], *, has_table: bool) -> str:
    """Return the script that runs ``launch`` with a command line.

    Args:
        servers: The number of nodes of the job.
        spares: The number of nodes in reserve.
        command: The words of the command line.
        has_table: Whether the command line names a rank table.
    """
    return _SCRIPT.format(
        nodes=servers + spares,
        servers=count(servers, "node"),
        spares=count(spares, "spare"),
        table=_TABLE if has_table else "",
        command=shlex.join(command),
    )


def _serving_text(plan: Plan, target: str, environment: Mapping[str, str]) -> str:
    """Return the commands of a serving job, grouped by host, each with the variables of ``environment``.

    Raises:
        LaunchError: The job has no table, or the service would refuse it or its file.
    """
    if not plan.table:
        raise LaunchError(f"--emit {target} needs a table", hint="name it with --rank-table FILE")
    try:
        require_no_error(TARGETS[target], validate(plan.table, target=target).findings)
    except TableError as error:
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    before = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
    blocks = []
    for processes in _by_host(plan):
        ranks = fold(process.rank for process in processes)
        lines = _xllm(plan, processes, before) if target == "xllm" else _mindie(plan, processes, before)
        blocks.append("\n".join([_host_title(processes[0].host, ranks), *lines]) + "\n")
    return "\n".join(blocks)


def _host_title(host: str, ranks: str) -> str:
    """Return the comment above the commands of a host, whose name may have any characters."""
    return f"# {escaped(host, ascii_only=True)}: ranks {ranks}"


def _by_host(plan: Plan) -> list[list[RankProcess]]:
    found: dict[str, list[RankProcess]] = {}
    for process in plan.ranks:
        found.setdefault(process.host, []).append(process)
    return list(found.values())


def _xllm(plan: Plan, processes: Sequence[RankProcess], before: str) -> Iterator[str]:
    first = plan.ranks[0]
    port = first.environment.get("MASTER_PORT") or first.environment.get("MS_SCHED_PORT") or _MASTER_PORT
    for place, process in enumerate(processes):
        argv, own_port = _without_port(process.argv)
        options = [
            f"--host={process.host}",
            f"--port={own_port + place}",
            f"--devices=npu:{process.device_id}",
            f"--master_node_addr={first.host}:{port}",
            f"--nnodes={plan.world_size}",
            f"--node_rank={process.rank}",
            "--communication_backend=hccl",
            f"--rank_tablefile={plan.table}",
        ]
        yield f"{before}{shlex.join([*argv, *options])} &"


def _without_port(argv: Sequence[str]) -> tuple[list[str], int]:
    """Return a command without its ``--port``, which is that of a host's first process, and the port."""
    kept, port, words = list[str](), _FIRST_PORT, iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name != "--port":
            kept.append(word)
            continue
        value = value if equals else next(words, "")
        number = whole_number(value)
        if number is None:
            raise LaunchError(f"--port {value} of the command is not a number")
        port = number
    return kept, port


def _mindie(plan: Plan, processes: Sequence[RankProcess], before: str) -> Iterator[str]:
    server = shlex.quote(processes[0].host)
    table = shlex.quote(plan.table or "")
    # Not in one command: `eval` of nothing succeeds, and MindIE would start without its variables.
    yield f"settings=$(hccl-tools env {table} --target mindie --server {server}) &&"
    yield '  eval "$settings" &&'
    yield f"  {before}{shlex.join(processes[0].argv)}"
