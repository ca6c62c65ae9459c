"""Show the logs of a run on standard output, in whole lines."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import InputError
from hccl_tools.launch import runs
from hccl_tools.launch.logs import Follower, generation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.runs import Run

_PAUSE = 0.1
_BLOCK = 1 << 16


def default_rank(run: Run) -> int:
    """Return the rank whose log is looked for first: that which failed first, else this host's lowest."""
    failure = runs.report_of(run).get("first_failure")
    if failure and failure["rank"] >= 0:
        rank: int = failure["rank"]
        return rank
    here = [process["rank"] for process in _ranks(run) if process.get("here", True)]
    return min(here, default=0)


def paths(run: Run, ranks: Sequence[int], *, scheduler: bool = False, wait: bool = False) -> dict[str, str]:
    """Return the logs by what stands before their lines where several are shown.

    Args:
        run: Whose logs.
        ranks: Which.
        scheduler: MindSpore's scheduler's instead.
        wait: While the run lasts, wait for a log that is not there yet.

    Raises:
        InputError: There is no such log on this host.
    """
    wanted = [-1] if scheduler else list(dict.fromkeys(ranks))
    planned = {process["rank"]: process for process in runs.plan_of(run).get("processes", [])}
    found = {}
    for rank in wanted:
        name = "scheduler" if rank < 0 else f"rank {rank}"
        if rank not in planned:
            raise InputError(f"{run.name} has no {name}", hint=_which(run))
        path = os.path.join(run.path, planned[rank]["log"])
        while wait and not os.path.exists(path) and runs.is_held(run.path):
            time.sleep(_PAUSE)
        if not os.path.exists(path):
            raise InputError(f"{run.name} has no log of {name} on this host", hint=_where(run, planned[rank]))
        found[name] = path
    return found


def show(run: Run, logs: dict[str, str], *, follow: bool, lines: int | None) -> None:
    """Write the logs to standard output; with ``follow`` until the run has ended."""
    several = len(logs) > 1
    shown = [
        _Shown(path, f"[{name}] ".encode() if several else b"", lines=lines) for name, path in logs.items()
    ]
    while True:
        over = not follow or not runs.is_held(run.path)
        while sum(_write(each.read(last=over)) for each in shown):
            continue
        if over:
            return
        time.sleep(_PAUSE)


class _Shown:
    """The log of one rank, over all restarts of the job; shown from the last one that there is now."""

    def __init__(self, path: str, prefix: bytes, *, lines: int | None) -> None:
        self._path, self._prefix, self._restart = path, prefix, 0
        while os.path.exists(generation(path, self._restart + 1)):
            self._restart += 1
        current = generation(path, self._restart)
        self._follower = Follower(
            current, prefix, offset=0 if lines is None else _offset_of_last(current, lines)
        )

    def read(self, *, last: bool) -> bytes:
        """What can be shown now; when a restart has a log of its own, the rest of this one first."""
        following = generation(self._path, self._restart + 1)
        restarted = os.path.exists(following)
        if (data := self._follower.read(last=last or restarted)) or not restarted:
            return data
        self._follower.close()
        self._restart += 1
        self._follower = Follower(following, self._prefix)
        return self._follower.read(last=last)


def _ranks(run: Run) -> list[dict[str, Any]]:
    return [process for process in runs.plan_of(run).get("processes", []) if process["rank"] >= 0]


def _which(run: Run) -> str:
    ranks = [process["rank"] for process in _ranks(run)]
    return f"its ranks are {min(ranks)} to {max(ranks)}" if ranks else f"see {run.path}"


def _where(run: Run, process: dict[str, Any]) -> str:
    if not process.get("here", True):
        return f"it runs on {process['host']}: look there, in {run.path}"
    return "it has not started" if run.state == "running" else f"see {run.path}"


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
