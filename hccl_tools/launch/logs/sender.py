"""The remote side of ``hccl-tools logs``: print logs of this host for a reader on another host.

The reader runs ``hccl-tools logs --serve ...`` here over ssh or srun. The input of this command closes
when the reader exits, or when the run has ended, which only the launcher's host knows.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError
from hccl_tools.launch.logs import viewer
from hccl_tools.runs import files, index

if TYPE_CHECKING:
    from collections.abc import Sequence


def serve(path: str, ranks: Sequence[int], *, follow: bool, lines: int | None, prefixed: bool) -> None:
    """Print logs of a run that are on this host.

    Rank -1 is MindSpore's scheduler. ``follow`` waits for the run directory and the logs, and continues until
    standard input ends. ``lines`` is the maximum number of lines per log, ``None`` for all.

    Raises:
        InputError: The run or a log does not exist on this host.
    """
    signal.signal(signal.SIGTERM, _end_input)
    while not files.is_run(path):
        if not follow or _has_input_ended():
            raise InputError(f"there is no run in {path} on this host")
        time.sleep(viewer.PAUSE)
    logs = viewer.paths(index.read(path), ranks, while_=lambda: follow and not _has_input_ended())
    shown = viewer.local(logs, prefixed=prefixed, lines=lines)
    viewer.show(shown, is_over=lambda: not follow or _has_input_ended())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SIGTERM must not take effect while Python exits.


def _end_input(_number: int, _frame: object) -> None:
    """Handle Slurm's signal at the end of the allocation: the rest of the logs is printed then."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _has_input_ended() -> bool:
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 4096)
