"""The run that a command without a name means: the one that is running."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import count, operand
from hccl_tools.processes import run_files
from hccl_tools.runs import index, listing, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.runs.index import Run


def all_running(log_dir: str) -> list[Run]:
    """Return the runs of a log directory that are running on this host, or have left processes here."""
    here = os.path.abspath(log_dir)
    found = index.find(log_dir)
    return [
        run for run in found if os.path.dirname(run.path) == here and (run.state == "running" or run.left)
    ]


def the_run(name: str | None, log_dir: str, command: str) -> Run:
    """Return the named run; without a name the running one of a log directory, else its latest.

    Args:
        command: The command that was typed, for the hint.

    Raises:
        NoSuchRunError: No run was found.
        UsageError: Several runs are running.
    """
    if name is not None:
        return index.resolve(name, log_dir)
    here = os.path.abspath(log_dir)
    own = [run for run in index.find(log_dir) if os.path.dirname(run.path) == here]
    found = [run for run in own if run.state == "running" or run.left]
    # Whether a run of another host is running can only be found out there; its command says how.
    found = found or [run for run in own if run.state == "elsewhere"][-1:]
    if not found:
        return index.resolve(names.LATEST, log_dir)
    if len(found) == 1:
        run_files.hold(found[0].path)
        return found[0]
    raise UsageError(
        f"{count(len(found), 'run')} are running in {log_dir}",
        lines=listing.as_text(found).splitlines(),
        hint=f"name the run, for example the last one: `hccl-tools {command} {operand(_listed(found))}`"
        + ("; `hccl-tools stop --all` stops them all" if command == "stop" else ""),
    )


def followed(log_dir: str) -> Run:
    """Return the run whose output is followed: the one that was started last of those that are running.

    Without any, it is the latest run.

    Raises:
        NoSuchRunError: No run was found.
    """
    here = os.path.abspath(log_dir)
    found = [run for run in index.find(log_dir) if os.path.dirname(run.path) == here]
    running = [run for run in found if run.state == "running"]
    if not running:
        return index.resolve(names.LATEST, log_dir)
    run_files.hold(running[-1].path)
    return running[-1]


def _listed(found: Sequence[Run]) -> str:
    """Return the name of the last of several runs as the list has it."""
    return listing.short_names(found)[os.path.basename(found[-1].path)]
