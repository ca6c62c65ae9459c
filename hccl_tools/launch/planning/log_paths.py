"""Choose the path of each rank's log, and refuse paths that cannot be written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.request import Logs
    from hccl_tools.launch.planning.placement import RankPlacement

_STANDARD_STREAMS = {1: "standard output", 2: "standard error"}


def log_path(logs: Logs, placement: RankPlacement, *, all_here: bool) -> str:
    """Return the path of a rank's log: absolute, or relative to the run directory.

    paddle's names number the ranks of a machine. With ``all_here`` they number all ranks of the job.
    """
    if logs.file and placement.rank == 0:
        return os.path.abspath(logs.file)
    if logs.flat:
        number = placement.rank if all_here else placement.local_rank
        return os.path.abspath(os.path.join(logs.dir, f"workerlog.{number}"))
    return names.rank_log(placement.rank)


def log_folder(logs: Logs) -> str | None:
    """Return the directory of the ranks' logs; ``None`` for the run directory."""
    return os.path.abspath(logs.dir) if logs.flat else None


def parse_mode(digits: str) -> int:
    """Return the mode of run directories from the digits that ``chmod`` accepts: three or four octal digits.

    Raises:
        UsageError: ``digits`` is not a mode, or denies the owner access.
    """
    is_mode = 3 <= len(digits) <= 4 and not set(digits) - set("01234567")
    if not is_mode or int(digits, 8) & 0o700 != 0o700:
        raise UsageError(
            f'--log-mode "{digits}" is not a mode that gives you access to the directory',
            hint="use octal digits as for chmod: 700 (only you), 750 (your group), 755 (all users)",
        )
    return int(digits, 8)


def check(logs: Logs, world_size: int) -> None:
    """Refuse ranks that the job does not have, and paths that cannot be used for a log.

    Raises:
        UsageError: ``--tail`` or ``--stdin`` names a rank that does not exist; ``--log-dir`` is empty;
            ``--log-file`` is a pipe, a terminal, or the launcher's own output, which would be emptied.
    """
    _check_ranks("--tail", logs.tail if logs.tail != "all" else (), world_size)
    _check_ranks("--stdin", () if logs.stdin_rank is None else (logs.stdin_rank,), world_size)
    if not logs.dir.strip():
        raise UsageError("--log-dir is empty", hint="leave it out, or use --log-dir . for the current folder")
    if logs.file is None:
        return
    if not logs.file:
        raise UsageError("--log-file is empty", hint="leave it out: logs are written to the run directory")
    try:
        there = os.stat(logs.file)
    except OSError:
        return  # The file does not exist yet, or opening it will report the reason.
    for descriptor, name in _STANDARD_STREAMS.items():
        if logs.file != os.devnull and os.path.samestat(there, os.fstat(descriptor)):
            raise UsageError(
                f"--log-file {logs.file} is the launcher's own {name}",
                hint="leave it out: rank 0 is shown there by default (--tail)",
            )
    if not stat.S_ISREG(there.st_mode) and logs.file != os.devnull:
        raise UsageError(
            f"--log-file {logs.file} is not a regular file",
            hint="specify a file; rank 0 is shown on standard output by default",
        )


def _check_ranks(option: str, ranks: Sequence[int], world_size: int) -> None:
    for rank in ranks:
        if rank >= world_size:
            known = f"its ranks are 0 to {world_size - 1}" if world_size > 1 else "its only rank is 0"
            raise UsageError(f"{option} {rank}: the job has no rank {rank}", hint=known)
