"""What shims and supervisors report about the end of ranks and hosts: marked, read back, checked.

Reports lie in files of the run directory. A supervisor that cannot reach its launcher sends them through the
engine's output instead. Ranks write there as well, so such a line begins with a random token of the run that
no rank has in its environment.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import host_ends
from hccl_tools.launch.engines.starter import LOG
from hccl_tools.launch.logs import generation
from hccl_tools.launch.mpi_rank_end import ENDS_FILE
from hccl_tools.launch.signal_names import signal_number

if TYPE_CHECKING:
    from collections.abc import Callable

#: No line of a report is longer.
_LONGEST = 1 << 20


def mark(token: str) -> str:
    """Return how the lines of reports begin in the output of an engine."""
    return f"hccl-tools {token}: "


def read(run_dir: str, token: str = "") -> list[dict[str, Any]]:
    """Return the reports of a run in order of time; what is not one, field by field, is left out.

    Args:
        run_dir: The run directory.
        token: That of the run; without it the output of the engine is not looked at.
    """
    found: list[dict[str, Any]] = []
    for name in (ENDS_FILE, host_ends.ENDS_FILE):
        found += _reports(os.path.join(run_dir, name))
    if token:
        found += _reports(os.path.join(run_dir, _engine_log(run_dir)), mark(token))
    return sorted(found, key=lambda report: float(report["time"]))


def nodes(run_dir: str, token: str = "") -> dict[str, str]:
    """Return what Slurm, or the host itself, calls the hosts of a plan that have begun their part."""
    began = (report for report in read(run_dir, token) if report["hccl_tools"] == host_ends.BEGAN)
    return {report["host"]: report["node"] for report in began}


def _reports(path: str, beginning: str = "") -> list[dict[str, Any]]:
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = (line for line in iter(lambda: file.readline(_LONGEST), "") if line.startswith(beginning))
        return [report for line in lines if (report := _report(line.removeprefix(beginning)))]


def _report(text: str) -> dict[str, Any] | None:
    """Return the report in a line; ``None`` also where the engine has mixed the lines of two hosts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = value.get("hccl_tools") if isinstance(value, dict) else None
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None or not all(check(value.get(name)) for name, check in fields.items()):
        return None
    return dict(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _is_time(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf  # type: ignore[operator]


def _is_exit_code(value: object) -> bool:
    return _is_count(value) and value <= 255  # type: ignore[operator]


def _is_signal(value: object) -> bool:
    if not isinstance(value, str):
        return value is None
    try:
        return signal_number(value) > 0
    except (KeyError, ValueError):
        return False


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _is_lines_or_nothing(value: object) -> bool:
    return value is None or _is_lines(value)


def _engine_log(run_dir: str) -> str:
    """Return the name of what the engine has written since the last restart."""
    restart = 0
    while os.path.exists(os.path.join(run_dir, generation(LOG, restart + 1))):
        restart += 1
    return generation(LOG, restart)


_RANK: dict[str, Callable[[object], bool]] = {
    "rank": _is_count,
    "pid": _is_count,
    "exit_code": _is_exit_code,
    "signal": _is_signal,
    "time": _is_time,
    "duration": _is_time,
    "log": _is_text,
    "last_lines": _is_lines,
    "traceback": _is_lines_or_nothing,
}
_SERVER: dict[str, Callable[[object], bool]] = {"server_index": _is_count, "time": _is_time}
_FIELDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "rank failed": _RANK,
    "rank ended": _RANK,
    host_ends.BEGAN: {"host": _is_text, "node": _is_text, "time": _is_time},
    host_ends.ENDING: _SERVER,
    host_ends.ENDED: _SERVER,
    host_ends.REFUSED: {"host": _is_text, "message": _is_text, "time": _is_time},
}
