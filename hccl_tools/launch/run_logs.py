"""Show the logs of a run on standard output, in whole lines."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError
from hccl_tools.launch import runs
from hccl_tools.launch.logs import Follower

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.runs import Run

_PAUSE = 0.1
_BLOCK = 1 << 16


def paths(run: Run, ranks: Sequence[int], *, scheduler: bool = False) -> dict[str, str]:
    """Return the logs by what stands before their lines where several are shown.

    Raises:
        InputError: There is no such log on this host.
    """
    names = (
        {"scheduler": "scheduler.log"}
        if scheduler
        else {f"rank {rank}": f"rank_{rank}.log" for rank in ranks}
    )
    found = {name: os.path.join(run.path, file) for name, file in names.items()}
    for name, path in found.items():
        if not os.path.exists(path):
            raise InputError(
                f"{run.name} has no log of {name} on this host",
                hint=f"it has {run.ranks} ranks; see {run.path}",
            )
    return found


def show(run: Run, logs: dict[str, str], *, follow: bool, lines: int | None) -> None:
    """Write the logs to standard output; with ``follow`` until the run has ended."""
    several = len(logs) > 1
    followers = [
        Follower(
            path,
            f"[{name}] ".encode() if several else b"",
            offset=0 if lines is None else _offset_of_last(path, lines),
        )
        for name, path in logs.items()
    ]
    while True:
        over = not follow or runs.read(run.path).state != "running"
        while sum(_write(follower.read(last=over)) for follower in followers):
            continue
        if over:
            return
        time.sleep(_PAUSE)


def _write(data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
    return len(data)


def _offset_of_last(path: str, lines: int) -> int:
    """Return where the last so many lines of a file begin."""
    with open(path, "rb") as file:
        position = size = file.seek(0, os.SEEK_END)
        tail = b""
        while position and tail.rstrip(b"\n").count(b"\n") < lines:
            step = min(_BLOCK, position)
            position -= step
            file.seek(position)
            tail = file.read(step) + tail
    kept = tail.splitlines(keepends=True)[-lines:] if lines else []
    return size - sum(map(len, kept))
