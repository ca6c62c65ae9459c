"""Who a script is, whatever has started it: ``hccl_tools.current_rank()``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class CurrentRank(NamedTuple):
    """The place of this process in its job.

    Attributes:
        rank: 0 to ``world_size - 1``.
        world_size: How many ranks the job has.
        device_id: The device as this process counts those it sees, ``None`` where nobody said.
        local_rank: Its place among the ranks of this server, ``None`` where nobody said.
        launched: Whether any launcher has started this process as a rank.
        source: Whose variables said so (``RANK_ID``, ``OMPI_COMM_WORLD_RANK`` ...), "" outside any launcher.
        table: The rank table, as RANK_TABLE_FILE names it; ``None`` where there is none.
    """

    rank: int = 0
    world_size: int = 1
    device_id: int | None = None
    local_rank: int | None = None
    launched: bool = False
    source: str = ""
    table: str | None = None


#: Rank, world size, and where they exist device and local rank, as each launcher calls them. The first row is
#: our own and that of the guides' loops and of msrun. Both numbers must be there for a row to count; and
#: MS_NODE_ID is a number only where somebody has fixed the rank.
_SOURCES = (
    ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "LOCAL_RANK"),
    ("RANK", "WORLD_SIZE", "DEVICE_ID", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "DEVICE_ID", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MS_NODE_ID", "MS_WORKER_NUM", "DEVICE_ID", "LOCAL_RANK"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "FLAGS_selected_npus", "PADDLE_RANK_IN_NODE"),
    ("PMI_RANK", "PMI_SIZE", "DEVICE_ID", "MPI_LOCALRANKID"),
)


def current_rank(environ: Mapping[str, str] | None = None) -> CurrentRank:
    """Return which rank this process is; rank 0 of 1 with ``launched=False`` outside any launcher.

    Args:
        environ: The environment to read, by default this process's.

    >>> current_rank({"RANK_ID": "1", "RANK_SIZE": "4", "DEVICE_ID": "5"})[:3]
    (1, 4, 5)
    """
    environ = os.environ if environ is None else environ
    found = _found(environ)
    return found._replace(table=environ.get("RANK_TABLE_FILE") or None) if found else CurrentRank()


def _found(environ: Mapping[str, str]) -> CurrentRank | None:
    if environ.get("MS_ROLE") == "MS_SCHED":
        return None  # MindSpore's scheduler bears numbers as well, and is no rank.
    for names in _SOURCES:
        rank, size, device, local_rank = (_number(environ.get(name)) for name in names)
        if rank is not None and size is not None and rank < size:
            return CurrentRank(rank, size, device, local_rank, launched=True, source=names[0])
    if "SLURM_STEP_ID" in environ:
        # Outside a step (a batch script's own process) these numbers describe the job, not a rank.
        rank, size = _number(environ.get("SLURM_PROCID")), _number(environ.get("SLURM_STEP_NUM_TASKS"))
        if rank is not None and size is not None and rank < size:
            local_rank = _number(environ.get("SLURM_LOCALID"))
            return CurrentRank(rank, size, None, local_rank, launched=True, source="SLURM_PROCID")
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
