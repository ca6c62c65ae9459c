"""Runs as a table for people and as JSON."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.runs import Run

_HEADER = ("run", "state", "ranks", "launcher", "started", "program")
_LONGEST_COMMAND = 60


def as_text(runs: Sequence[Run]) -> str:
    """Return one aligned line per run."""
    if not runs:
        return "no runs here; `hccl-tools launch` makes one\n"
    rows = [_HEADER, *(_row(run) for run in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return "".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in rows
    )


def as_json(runs: Sequence[Run]) -> str:
    """Return the runs as JSON, versioned."""
    value = {"schema_version": 1, "runs": [{"name": run.name, **run._asdict()} for run in runs]}
    return json.dumps(value, indent=2) + "\n"


def _row(run: Run) -> tuple[str, ...]:
    state = f"exit code {run.exit_code}" if run.state == "ended" else run.state
    launcher = f"{run.pid}@{run.host}" if run.pid else "-"
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started)) if run.started else "-"
    command = shlex.join(run.command)
    if len(command) > _LONGEST_COMMAND:
        command = command[: _LONGEST_COMMAND - 3] + "..."
    return (run.name, state, str(run.ranks), launcher, started, command)
