"""The list of runs as text and as JSON."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.launch.model.outcome import REASONS
from hccl_tools.notation.phrases import aligned, time_span
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.runs.index import Run

_HEADER = ("directory", "state", "ranks", "hosts", "age", "exit", "program")
_LONGEST_COMMAND = 60


def as_text(runs: Sequence[Run]) -> str:
    """Return one aligned line per run."""
    if not runs:
        return "no runs here; `hccl-tools launch` creates one\n"
    return "".join(f"{line}\n" for line in aligned([_HEADER, *(_row(run) for run in runs)]))


def as_json(runs: Sequence[Run]) -> str:
    """Return the runs as JSON with a version."""
    value = {
        "schema_version": 1,
        "runs": [{"name": os.path.basename(run.path), **run._asdict()} for run in runs],
    }
    return json.dumps(value, indent=2) + "\n"


def _row(run: Run) -> tuple[str, ...]:
    code = "-" if run.exit_code is None else str(run.exit_code)
    age = time_span(run.age) if run.started else "-"
    row = (_directory(run.path), _state(run), str(run.ranks), str(run.hosts), age, code, _program(run))
    return tuple(map(escaped, row))


def _directory(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _state(run: Run) -> str:
    if run.state == "running":
        return "running" if run.host == os.uname().nodename else f"running on {run.host}"
    if run.state == "killed":
        many = "process" if run.left == 1 else "processes"
        return f"launcher killed, {run.left} {many} left" if run.left else "launcher killed"
    if run.state == "elsewhere":
        return f"on {run.host}"
    known = REASONS.get(run.reason)
    return (known.state if known else "") or run.reason or "ended"


def _program(run: Run) -> str:
    if run.kind == "spawn":
        return f"(spawned by pid {run.pid})"
    command = shlex.join(run.command)
    return command if len(command) <= _LONGEST_COMMAND else command[: _LONGEST_COMMAND - 3] + "..."
