"""Where each rank's log lies, as the options of the logs say, and whether a log can lie there."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement

_STANDARD_STREAMS = {1: "standard output", 2: "standard error"}


def place(request: LaunchRequest, placement: RankPlacement) -> str:
    """Return the path of a rank's log: absolute, or relative to the run directory.

    paddle's names count the ranks of a machine. Where those of several machines are rehearsed on one, they
    count all ranks, for each log is one rank's.
    """
    if request.log_file and placement.rank == 0:
        return os.path.abspath(request.log_file)
    if request.flat_logs:
        number = placement.rank if request.all_here else placement.local_rank
        return os.path.abspath(os.path.join(request.log_dir, f"workerlog.{number}"))
    return f"rank_{placement.rank}.log"


def parse_mode(digits: str) -> int:
    """Return the mode of run directories as ``chmod`` takes it: three or four octal digits.

    Raises:
        UsageError: It is not a mode, or keeps the owner out.
    """
    is_mode = 3 <= len(digits) <= 4 and not set(digits) - set("01234567")
    if not is_mode or int(digits, 8) & 0o700 != 0o700:
        raise UsageError(
            f'--log-mode "{digits}" is not the mode of a directory that you can use',
            hint="octal digits as for chmod: 700 for you alone, 750 for your group, 755 for all",
        )
    return int(digits, 8)


def check(request: LaunchRequest) -> None:
    """Refuse places that no log can have; nothing is opened.

    Raises:
        UsageError: ``--log-dir`` is empty; ``--log-file`` is a pipe, a terminal or what the launcher itself
            writes to, and would be emptied.
    """
    if not request.log_dir.strip():
        raise UsageError("--log-dir names no directory", hint="leave it out, or --log-dir . for this one")
    if request.log_file is None:
        return
    if not request.log_file:
        raise UsageError("--log-file names no file", hint="leave it out: logs lie in the run's directory")
    try:
        there = os.stat(request.log_file)
    except OSError:
        return  # It is not there yet, or will say why it cannot be written.
    for descriptor, name in _STANDARD_STREAMS.items():
        if request.log_file != os.devnull and os.path.samestat(there, os.fstat(descriptor)):
            raise UsageError(
                f"--log-file {request.log_file} is the launcher's own {name}",
                hint="leave it out: rank 0 is shown there all the same (--tail)",
            )
    if not stat.S_ISREG(there.st_mode) and request.log_file != os.devnull:
        raise UsageError(
            f"--log-file {request.log_file} is no file that can be written and read again",
            hint="name a file; rank 0 is shown on standard output all the same",
        )
