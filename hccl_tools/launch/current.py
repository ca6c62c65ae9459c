"""The rank of the current process, under any launcher: ``hccl_tools.current_rank()``."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.model.variables import HEARTBEAT_VARIABLE
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import procfs, run_files
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class CurrentRank(NamedTuple):
    """The rank of this process and its job.

    Attributes:
        rank: 0 to ``world_size - 1``.
        world_size: The number of ranks of the job.
        device_id: The index of the device among the devices visible to this process; ``None`` if unknown.
        local_rank: The index among the ranks of this server, ``None`` if unknown.
        launched: Whether a launcher started this process as a rank.
        source: The variable that contains the rank (``RANK_ID``, ``OMPI_COMM_WORLD_RANK`` ...), "" if none.
        table: The value of RANK_TABLE_FILE; ``None`` if it is unset or empty.
    """

    rank: int = 0
    world_size: int = 1
    device_id: int | None = None
    local_rank: int | None = None
    launched: bool = False
    source: str = ""
    table: str | None = None

    def heartbeat(self) -> None:
        """Show that this rank makes progress; for every step of a training (a few system calls).

        Under ``launch --hang-timeout`` a rank that has called this once, and then not for so long, hangs: the
        job is ended, or restarted. Otherwise nothing happens. No error is raised.
        """
        path = os.environ.get(HEARTBEAT_VARIABLE)
        if not path:
            return
        folder, name = os.path.split(path)
        with suppress(OSError), run_files.opened(folder, _beaten.get(folder, ())) as opened:
            _beaten[folder] = opened.identity
            opened.touch(name)


#: The identity of the run directory to which this process has sent a heartbeat: it is opened each time, since
#: a program may close all its files.
_beaten: dict[str, tuple[Any, ...]] = {}


class _Launcher(NamedTuple):
    rank: str
    size: str
    device: str
    local: str


#: A row counts if both rank and world size are numbers; MS_NODE_ID is a number only if the rank was set. The
#: variables of the first row are set by ``launch``, the loops in the guides and msrun.
_LAUNCHERS = (
    _Launcher("RANK_ID", "RANK_SIZE", "DEVICE_ID", "LOCAL_RANK"),
    _Launcher("RANK", "WORLD_SIZE", "DEVICE_ID", "LOCAL_RANK"),
    _Launcher("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "DEVICE_ID", "OMPI_COMM_WORLD_LOCAL_RANK"),
    _Launcher("MS_NODE_ID", "MS_WORKER_NUM", "DEVICE_ID", ""),
    _Launcher("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "FLAGS_selected_npus", "PADDLE_RANK_IN_NODE"),
    _Launcher("PMI_RANK", "PMI_SIZE", "DEVICE_ID", "MPI_LOCALRANKID"),
    _Launcher("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "", "SLURM_LOCALID"),
)
#: Ancestors whose variables are compared: shells and scripts between a launcher and its rank.
_GENERATIONS = 16


def current_rank(environ: Mapping[str, str] | None = None) -> CurrentRank:
    """Return the rank of this process; outside any launcher, rank 0 of 1 with ``launched=False``.

    If launchers contradict each other (a RANK_ID left in the shell from which mpirun was started), the
    variables that were set last have precedence. A RANK_ID above 0 without a matching RANK_SIZE also gives
    rank 0 of 1, with a ``RuntimeWarning``.

    Args:
        environ: The environment to read instead of this process's; the first launcher in it has precedence.

    >>> current_rank({"RANK_ID": "1", "RANK_SIZE": "4", "DEVICE_ID": "5"})[:3]
    (1, 4, 5)
    """
    own = environ is None
    environ = os.environ if environ is None else environ
    if environ.get("MS_ROLE") == "MS_SCHED":
        return CurrentRank()  # MindSpore's scheduler has these variables, but is not a rank.
    found = {launcher: place for launcher in _LAUNCHERS if (place := _place(launcher, environ))}
    if not found:
        _warn_of_half_a_place(environ)
        return CurrentRank()
    launchers = list(found)
    if own and len(set(found.values())) > 1:
        launchers = _set_last(launchers, environ)
    launcher = launchers[0]
    rank, size = found[launcher]
    # Launchers that agree on the rank come first for the local rank: LOCAL_RANK alone may be left over.
    agreeing = [other.local for other in found if found[other] == (rank, size) and other != launcher]
    local = [_number(environ.get(name)) for name in (*agreeing, launcher.local)]
    if launcher.rank == "PADDLE_TRAINER_ID":
        local.append(_local_rank_by_endpoint(rank, environ))
    return CurrentRank(
        rank,
        size,
        _number(environ.get(launcher.device)),
        next((number for number in local if number is not None), None),
        launched=True,
        source=launcher.rank,
        table=environ.get("RANK_TABLE_FILE") or None,
    )


def _local_rank_by_endpoint(rank: int, environ: Mapping[str, str]) -> int | None:
    """Return the position of a rank of paddle's spawn among the endpoints of its host."""
    endpoints = environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
    if rank >= len(endpoints) or endpoints[rank] != environ.get("PADDLE_CURRENT_ENDPOINT"):
        return None
    host = endpoints[rank].rpartition(":")[0]
    return sum(endpoint.rpartition(":")[0] == host for endpoint in endpoints[:rank])


def _place(launcher: _Launcher, environ: Mapping[str, str]) -> tuple[int, int] | None:
    # Outside a step, in a batch script's own process, Slurm's variables describe the job, not a rank.
    if launcher.rank == "SLURM_PROCID" and "SLURM_STEP_ID" not in environ:
        return None
    rank, size = _number(environ.get(launcher.rank)), _number(environ.get(launcher.size))
    return (rank, size) if rank is not None and size is not None and rank < size else None


def _warn_of_half_a_place(environ: Mapping[str, str]) -> None:
    """Warn if RANK_ID is set and RANK_SIZE is missing or too small: all processes would be rank 0."""
    launcher = _LAUNCHERS[0]
    if not _number(environ.get(launcher.rank)):
        return
    size = environ.get(launcher.size)
    has = f"{launcher.size} is not set" if size is None else f"{launcher.size} is {size or 'empty'}"
    warnings.warn(
        f"{launcher.rank} is {environ[launcher.rank]}, but {has}: this process runs as rank 0 of 1",
        RuntimeWarning,
        stacklevel=3,
    )


def _set_last(launchers: list[_Launcher], environ: Mapping[str, str]) -> list[_Launcher]:
    """Return the launchers whose variables changed most recently among this process's ancestors."""
    process = procfs.status(os.getpid())
    for _ in range(_GENERATIONS):
        process = procfs.status(process.parent) if process else None
        if process is None or not (before := procfs.environment(process.pid)):
            break
        fresh = [
            launcher
            for launcher in launchers
            if any(before.get(name) != environ[name] for name in (launcher.rank, launcher.size))
        ]
        if fresh:
            return fresh
    return launchers


def _number(text: str | None) -> int | None:
    return None if text is None else whole_number(text)
