"""Choose the path of each rank's log, and refuse paths that cannot be written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.runs import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.request import Logs
    from hccl_tools.launch.planning.placement import RankPlacement

_STANDARD_STREAMS = {1: "standard output", 2: "standard error"}


def log_path(logs: Logs, placement: RankPlacement, *, all_here: bool) -> str:
    """Return the path of a rank's log: absolute, or relative to the run directory.

    paddle's names count the ranks of a machine. With ``all_here`` they count all ranks of the job, as
    those of several machines run on this one.
    """
    if logs.file and placement.rank == 0:
        return os.path.abspath(logs.file)
    if logs.flat:
        number = placement.rank if all_here else placement.local_rank
        return os.path.abspath(os.path.join(logs.dir, f"workerlog.{number}"))
    return names.rank_log(placement.rank)


def parse_mode(digits: str) -> int:
    """Return the mode of run directories as ``chmod`` takes it: three or four octal digits.

    Raises:
        UsageError: It is not a mode, or denies the owner access.
    """
    is_mode = 3 <= len(digits) <= 4 and not set(digits) - set("01234567")
    if not is_mode or int(digits, 8) & 0o700 != 0o700:
        raise UsageError(
            f'--log-mode "{digits}" is not the mode of a directory that you can use',
            hint="octal digits as for chmod: 700 for you alone, 750 for your group, 755 for all",
        )
    return int(digits, 8)


def check(logs: Logs, world_size: int) -> None:
    """Refuse ranks that the job does not have, and paths that a log cannot have; open nothing.

    Raises:
        UsageError: ``--tail`` or ``--stdin`` names a rank that does not exist; ``--log-dir`` is empty;
            ``--log-file`` is a pipe, a terminal or what the launcher itself writes to, and would be emptied.
    """
    _check_ranks("--tail", logs.tail if logs.tail != "all" else (), world_size)
    _check_ranks("--stdin", () if logs.stdin_rank is None else (logs.stdin_rank,), world_size)
    if not logs.dir.strip():
        raise UsageError("--log-dir is empty", hint="leave it out, or --log-dir . for this one")
    if logs.file is None:
        return
    if not logs.file:
        raise UsageError("--log-file is empty", hint="leave it out: logs are in the run directory")
    try:
        there = os.stat(logs.file)
    except OSError:
        return  # It does not exist yet, or opening it will report the reason.
    for descriptor, name in _STANDARD_STREAMS.items():
        if logs.file != os.devnull and os.path.samestat(there, os.fstat(descriptor)):
            raise UsageError(
                f"--log-file {logs.file} is the launcher's own {name}",
                hint="leave it out: rank 0 is shown there anyway (--tail)",
            )
    if not stat.S_ISREG(there.st_mode) and logs.file != os.devnull:
        raise UsageError(
            f"--log-file {logs.file} is not a regular file",
            hint="name a file; rank 0 is shown on standard output anyway",
        )


def _check_ranks(option: str, ranks: Sequence[int], world_size: int) -> None:
    for rank in ranks:
        if rank >= world_size:
            known = f"its ranks are 0 to {world_size - 1}" if world_size > 1 else "its only rank is 0"
            raise UsageError(f"{option} {rank}: the job has no rank {rank}", hint=known)
