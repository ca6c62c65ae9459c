"""Translate what other launchers take to options of ``launch``.

The options of msrun, torchrun, paddle.distributed.launch and fleetrun that ``launch`` lacks: each is
translated, has no effect because ``launch`` always does the same, or is refused with a hint. Options that
``launch`` has under the same name are not listed here.

The variables of a PaddleJob pod, as paddle.distributed.launch takes its own. They count only outside a rank:
what a launcher of Paddle has left in a shell says nothing about a pod. A typed option has precedence over a
variable.

Sources: MindSpore 2.10 parallel/cluster/run.py and process_entity/_api.py; PyTorch torch/distributed/run.py
and launch.py; Paddle distributed/launch/context/args_envs.py, distributed/cloud_utils.py and
distributed/fleet/launch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import operand
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

#: Variable -> option of ``launch``, or of Paddle's launcher; of two variables of an option the first counts.
_OF_POD = {
    "PADDLE_MASTER": "--master",
    "PADDLE_NNODES": "--nnodes",
    "PADDLE_NPROC_PER_NODE": "--nproc-per-node",
    "PADDLE_DEVICES": "--devices",
    "PADDLE_RANK": "--node-rank",
    "PADDLE_TRAINER_ID": "--node-rank",
    "PADDLE_IPS": "--ips",
    "PADDLE_TRAINERS": "--ips",
    "PADDLE_START_PORT": "--start-port",
    "PADDLE_LOG_DIR": "--log-dir",
    "PADDLE_MAX_RESTART": "--max-restarts",
    "PADDLE_RUN_MODE": "--run-mode",
    "PADDLE_SORT_IP": "--sort-ip",
    "PADDLE_ELASTIC_LEVEL": "--elastic-level",
    "PADDLE_ELASTIC_SERVER": "--elastic-server",
    "PADDLE_SERVER_NUM": "--server-num",
    "PADDLE_TRAINER_NUM": "--trainer-num",
    "PADDLE_SERVERS_ENDPOINTS": "--servers",
    "PADDLE_TRAINERS_ENDPOINTS": "--trainers",
    "PADDLE_AUTO_PARALLEL_CONFIG": "--auto-parallel-config",
}
#: A process that has one of these is a rank, or was started by one.
_OF_RANKS = ("PADDLE_CURRENT_ENDPOINT", "PADDLE_RANK_IN_NODE", "PADDLE_GLOBAL_RANK", "HCCL_TOOLS_RUN_DIR")
#: The index of a machine, which says something only beside a variable about the machines: without one it was
#: left by a launcher.
_POD_PLACES = frozenset({"PADDLE_RANK", "PADDLE_TRAINER_ID"})
_OF_MACHINES = ("PADDLE_NNODES", "PADDLE_MASTER", "PADDLE_IPS", "PADDLE_TRAINERS")
#: Values by which a variable says nothing.
_UNSET_IN_POD = {"PADDLE_RANK": "-1", "PADDLE_SERVER_NUM": "0", "PADDLE_TRAINER_NUM": "0"}


class Foreign(NamedTuple):
    """An option of other launchers.

    ``translate`` returns the options of ``launch`` for its value, or the hint of a refusal. ``is_flag``
    tells whether the option accepts no value.
    """

    translate: Callable[[str], list[str] | str]
    is_flag: bool = False

    def options(self, typed: str, value: str) -> list[str]:
        """Return the equivalent options of ``launch``; ``typed`` is the option as the user wrote it.

        Raises:
            UsageError: ``launch`` has no equivalent option.
        """
        found = self.translate(value)
        if isinstance(found, str):
            raise UsageError(f"launch has no option {f'{typed} {value}'.rstrip()}", hint=found)
        return found


def _nothing(_value: str) -> list[str]:
    return []


def _never(instead: str) -> Callable[[str], str]:
    return lambda _value: instead


def _only(allowed: tuple[str, ...], instead: str) -> Callable[[str], list[str] | str]:
    return lambda value: [] if value.lower() in allowed else instead


def _variable(name: str) -> Callable[[str], list[str]]:
    return lambda value: [f"--env={name}={value}"]


def _bind(how: str) -> Callable[[str], list[str] | str]:
    answers: dict[str, list[str]] = {"true": [f"--bind={how}"], "false": []}
    own = f"use --bind {how}; for other cores: --no-python taskset ..."
    return lambda value: answers.get(value.lower(), own)


def _numa_binding(value: str) -> list[str] | str:
    answers = {"node": ["--bind=numa"], "exclusive": ["--bind=cores"]}
    return answers.get(value, "use --bind numa (a NUMA node for each rank) or --bind cores (an equal share)")


#: torchrun's streams of a rank: none, stdout, stderr, both.
_STREAMS = range(4)


def _streams(value: str, otherwise: str) -> dict[str, int] | str:
    """Read torchrun's ``3`` (all ranks, key "") or ``0:3,1:1`` (by rank); return a hint for another text."""
    if value.endswith((".json", ".yaml", ".yml")):
        return f"a rank table is given as --rank-table {operand(value)}; torchrun's option means streams"
    pairs = [part.rpartition(":") for part in value.split(",")]
    # One digit: "10:00" is a time, as Slurm's -t takes it.
    numbers = [whole_number(streams) if len(streams) == 1 else None for _rank, _colon, streams in pairs]
    is_plain = len(pairs) == 1 and ":" not in value
    if any(number not in _STREAMS for number in numbers):
        return otherwise
    if not is_plain and any(whole_number(rank) is None for rank, _colon, _streams in pairs):
        return otherwise
    return {rank: number for (rank, _, _), number in zip(pairs, numbers, strict=True) if number is not None}


def _redirects(value: str) -> list[str] | str:
    found = _streams(value, "torchrun's values are 0 to 3, or 0:1,1:2; leave it out: each rank has its log")
    return found if isinstance(found, str) else []


def _tee(value: str) -> list[str] | str:
    """Follow the ranks whose streams are named; ``launch`` has one log per rank for both streams."""
    found = _streams(
        value, "use --tail 0,3 or --tail all for the output of ranks, --timeout 10m for a time limit"
    )
    if isinstance(found, str):
        return found
    if "" in found:
        return ["--tail=all"] if found[""] else []
    return [f"--tail={','.join(rank for rank, streams in found.items() if streams) or 'none'}"]


def _tail_worker_log(value: str) -> list[str]:
    return ["--tail=all"] if value == "-1" else [f"--tail={value}"]


def _rendezvous(value: str) -> list[str] | str:
    host, _, port = value.rpartition(":")
    if not value or "/" in value:
        return "use --master-addr ADDRESS --start-port PORT, the address of rank 0's machine"
    if not (host and port.isdecimal()):
        return [f"--master-addr={value}"]
    return [f"--master={value}"] if port.strip("0") else [f"--master-addr={host}"]


ELASTIC = "use a fixed --nnodes, and --max-restarts N to restart after a failure"
_PARAMETER_SERVERS = "parameter servers need another launcher: launch starts ranks of collective training"
_OWN_SERVICE = (
    "leave it out: no rendezvous service is needed; --master-addr is the address of rank 0's machine"
)
_PADDLE_ONLY = "it configures paddle's launcher: leave it out, or use that launcher"
_IN_RANK_ORDER = "use a rank table (--rank-table), which assigns the ranks, or --ips in rank order"

_POD_VARIABLES = "leave it out: the variables of a pod (PADDLE_TRAINERS, PADDLE_TRAINER_ID) are read anyway"


def _run_mode(value: str) -> list[str] | str:
    if value.lower() == "rpc":
        return "paddle.distributed.rpc needs paddle's launcher: launch starts ranks of collective training"
    return _only(("collective",), _PARAMETER_SERVERS)(value)


def _backend(value: str) -> list[str] | str:
    """Read the backend of fleetrun; that of a job on the CPU is gloo."""
    answers: dict[str, list[str]] = {"auto": [], "xccl": [], "hccl": [], "gloo": ["--cpu"]}
    return answers.get(value.lower(), "leave it out: NPUs communicate by xccl, ranks under --cpu by gloo")


OPTIONS: dict[str, Foreign] = {
    # msrun
    "--join": Foreign(_nothing),
    "--cluster-time-out": Foreign(_variable("MS_TOPO_TIMEOUT")),
    "--bind-core": Foreign(_bind("cores")),
    "--bind-numa": Foreign(_bind("numa")),
    "--sim-level": Foreign(_variable("MS_SIMULATION_LEVEL")),
    "--sim-rank-id": Foreign(_never("run RANK_ID=3 RANK_SIZE=8 MS_SIMULATION_LEVEL=1 python train.py")),
    "--worker-log-name": Foreign(_never("use --log-dir, --log-file for rank 0, or --flat-logs")),
    "--tail-worker-log": Foreign(_tail_worker_log),
    # torchrun, torch.distributed.launch
    "--standalone": Foreign(_nothing, is_flag=True),
    "--use-env": Foreign(_nothing, is_flag=True),
    "--rdzv-backend": Foreign(_only(("static", "c10d"), _OWN_SERVICE)),
    "--rdzv-endpoint": Foreign(_rendezvous),
    "--rdzv-id": Foreign(_nothing),
    "--rdzv-conf": Foreign(_never("leave it out: the hosts wait for each other anyway")),
    "--monitor-interval": Foreign(_nothing),
    "--start-method": Foreign(_nothing),
    "--signals-to-handle": Foreign(_nothing),
    "--redirects": Foreign(_redirects),
    "-r": Foreign(_redirects),
    "--tee": Foreign(_tee),
    "-t": Foreign(_tee),
    "--local-ranks-filter": Foreign(lambda value: [f"--tail={value}"]),
    "--numa-binding": Foreign(_numa_binding),
    "--role": Foreign(_only(("default",), "use --env ROLE_NAME=NAME if the program reads it")),
    "--local-addr": Foreign(_never("use --node-rank I, the index of this machine")),
    "--event-log-handler": Foreign(_only(("null",), "use --notify CMD, or report.json in the run directory")),
    "--logs-specs": Foreign(_never("use --log-dir, --tail, --log-file or --flat-logs")),
    "--run-path": Foreign(_never("leave it out and give the script"), is_flag=True),
    "--virtual-local-rank": Foreign(
        _never("leave it out: --start table lets each rank see all devices"), is_flag=True
    ),
    "--duplicate-stdout-filters": Foreign(_never("use --tail RANKS")),
    "--duplicate-stderr-filters": Foreign(_never("use --tail RANKS")),
    # paddle.distributed.launch and fleetrun
    "--run-mode": Foreign(_run_mode),
    "--backend": Foreign(_backend),
    "--cluster-node-ips": Foreign(lambda value: [f"--ips={value}"]),
    "--node-ip": Foreign(lambda value: [f"--server={value}"]),
    "--started-port": Foreign(lambda value: [f"--start-port={value}"]),
    "--use-paddlecloud": Foreign(_only(("", "false", "0"), _POD_VARIABLES), is_flag=True),
    "--paddle-cpuonly": Foreign(lambda _value: ["--cpu"], is_flag=True),
    "--print-config": Foreign(_nothing),
    "--job-id": Foreign(_nothing),
    "--log-level": Foreign(_nothing),
    "--log-overwrite": Foreign(_nothing),
    "--enable-gpu-log": Foreign(_nothing),
    "--legacy": Foreign(_only(("false", "0"), _PADDLE_ONLY)),
    "--sort-ip": Foreign(_only(("false", "0"), "use --ips with the machines in rank order")),
    "--host": Foreign(lambda value: [f"--server={value}"]),
    "--max-restart": Foreign(lambda value: [f"--max-restarts={value}"]),
    "--elastic-level": Foreign(_only(("-1",), ELASTIC)),
    "--auto-parallel-config": Foreign(_never(_PADDLE_ONLY)),
    "--auto-cluster-config": Foreign(_only(("false", "0"), _PADDLE_ONLY)),
    "--auto-tuner-json": Foreign(_never(_PADDLE_ONLY)),
    "--ranks": Foreign(_never(_IN_RANK_ORDER)),
    "--enable-rank-mapping": Foreign(_never(_IN_RANK_ORDER)),
    "--rank-mapping-path": Foreign(_never(_IN_RANK_ORDER)),
    "--cluster-topo-path": Foreign(_never(_PADDLE_ONLY)),
    "--enable-auto-mapping": Foreign(_never(_PADDLE_ONLY)),
    **{
        name: Foreign(_never(ELASTIC))
        for name in ("--elastic-timeout", "--elastic-server", "--elastic-pre-hook", "--scale", "--force")
    },
    **{
        name: Foreign(_never(_PARAMETER_SERVERS))
        for name in (
            *("--servers", "--server-num", "--trainers", "--trainer-num", "--workers", "--heter-workers"),
            *("--heter-worker-num", "--heter-devices", "--coordinators", "--coordinator-num", "--http-port"),
            *("--gloo-port", "--with-gloo"),
        )
    },
}


class PodOptions(NamedTuple):
    """What was read: options of ``launch``, and the line for the user; both are empty without variables."""

    options: tuple[str, ...] = ()
    note: str = ""


def of_pod(environ: Mapping[str, str], typed: Collection[str], is_here: Callable[[str], bool]) -> PodOptions:
    """Return the options that the variables of a pod stand for.

    Args:
        environ: The variables of this process.
        typed: The options that were typed, by their first names.
        is_here: Returns whether a name or an address is this host's.

    Raises:
        UsageError: ``launch`` has nothing for the value of a variable.
    """
    if any(name in environ for name in _OF_RANKS):
        return PodOptions()
    found: dict[str, tuple[str, str]] = {}
    has_machines = any(environ.get(name) for name in _OF_MACHINES)
    for variable, option in _OF_POD.items():
        value = environ.get(variable, "").strip() if has_machines or variable not in _POD_PLACES else ""
        if value and value != _UNSET_IN_POD.get(variable) and option not in found:
            found[option] = variable, value
    beside = [f"{found[option][0]} does not count beside {option}" for option in found if option in typed]
    taken = {option: source for option, source in found.items() if option not in typed}
    options = [part for option, source in taken.items() for part in _pod_option(option, *source)]
    options += _node_rank(taken, typed, is_here)
    return PodOptions(tuple(options), "; ".join([*_pod_note(taken, options), *beside]))


def _pod_note(taken: Mapping[str, tuple[str, str]], options: Sequence[str]) -> Iterator[str]:
    if taken:
        variables = ", ".join(f"{variable}={value}" for variable, value in taken.values())
        unset = "unset them to ignore them" if len(taken) > 1 else "unset it to ignore it"
        yield f"{variables} of this pod: taken as {' '.join(options) or 'the default'} ({unset})"


def _pod_option(option: str, variable: str, value: str) -> list[str]:
    foreign = OPTIONS.get(option)
    if foreign is None:
        return [f"{option}={value}"]
    try:
        return foreign.options(option, value)
    except UsageError as error:
        hint = f"{error.hint}; or unset {variable} to ignore it"
        raise UsageError(f"{variable}={value}: {error.head}", hint=hint, lines=error.lines) from error


def _node_rank(
    taken: Mapping[str, tuple[str, str]], typed: Collection[str], is_here: Callable[[str], bool]
) -> Iterator[str]:
    """Yield the index of this machine if it follows from the master: of two machines it is on the first."""
    has_place = {"--node-rank", "--ips"} & {*taken, *typed}
    two = taken.get("--nnodes", ("", ""))[1] in {"2", "2:2"}
    if two and "--master" in taken and not has_place:
        master = taken["--master"][1].rpartition(":")[0]
        yield f"--node-rank={0 if is_here(master) else 1}"
