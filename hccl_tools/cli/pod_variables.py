"""Options of ``launch`` from the variables of a PaddleJob pod, as paddle.distributed.launch takes its own.

They count only outside a rank: what a launcher of Paddle has left in a shell says nothing about a pod. A
typed option has precedence over a variable.

Sources: Paddle distributed/launch/context/args_envs.py and distributed/cloud_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.cli import other_launchers
from hccl_tools.errors import UsageError
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

#: Variable -> option of ``launch``, or of Paddle's launcher; of two variables of an option the first counts.
_OPTIONS = {
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
_PLACES = frozenset({"PADDLE_RANK", "PADDLE_TRAINER_ID"})
_OF_MACHINES = ("PADDLE_NNODES", "PADDLE_MASTER", "PADDLE_IPS", "PADDLE_TRAINERS")
#: Values by which a variable says nothing.
_UNSET = {"PADDLE_RANK": "-1", "PADDLE_SERVER_NUM": "0", "PADDLE_TRAINER_NUM": "0"}


class Taken(NamedTuple):
    """What was read: options of ``launch``, and the line for the user; both are empty without variables."""

    options: tuple[str, ...] = ()
    note: str = ""


def read(environ: Mapping[str, str], typed: Collection[str], is_here: Callable[[str], bool]) -> Taken:
    """Return the options that the variables of a pod stand for.

    Args:
        environ: The variables of this process.
        typed: The options that were typed, by their first names.
        is_here: Returns whether a name or an address is this host's.

    Raises:
        UsageError: ``launch`` has nothing for the value of a variable.
    """
    if any(name in environ for name in _OF_RANKS):
        return Taken()
    found: dict[str, tuple[str, str]] = {}
    has_machines = any(environ.get(name) for name in _OF_MACHINES)
    for variable, option in _OPTIONS.items():
        value = environ.get(variable, "").strip() if has_machines or variable not in _PLACES else ""
        if value and value != _UNSET.get(variable) and option not in found:
            found[option] = variable, value
    beside = [f"{found[option][0]} does not count beside {option}" for option in found if option in typed]
    taken = {option: source for option, source in found.items() if option not in typed}
    options = [part for option, source in taken.items() for part in _options(option, *source)]
    options += _node_rank(taken, typed, is_here)
    return Taken(tuple(options), "; ".join([*_note(taken, options), *beside]))


def _note(taken: Mapping[str, tuple[str, str]], options: Sequence[str]) -> Iterator[str]:
    if taken:
        variables = ", ".join(f"{variable}={value}" for variable, value in taken.values())
        unset = "unset them to ignore them" if len(taken) > 1 else "unset it to ignore it"
        yield f"{variables} of this pod: taken as {' '.join(options) or 'the default'} ({unset})"


def _options(option: str, variable: str, value: str) -> list[str]:
    foreign = other_launchers.OPTIONS.get(option)
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
