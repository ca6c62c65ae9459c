"""The run that a command without a name means: the one that is running."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch import run_files
from hccl_tools.launch.runs import index, listing, names
from hccl_tools.notation.phrases import count, operand

if TYPE_CHECKING:
    from hccl_tools.launch.runs.index import Run


def all_running(log_dir: str) -> list[Run]:
    """Return the runs of a log directory that are running on this host, or have left processes here.

    Root can stop the runs of all users, another user only own ones.
    """
    found = [run for run in index.find(log_dir) if run.is_in(log_dir) and (not run.user or os.geteuid() == 0)]
    return [run for run in found if run.state == "running" or run.left]


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
    inside = [run for run in index.find(log_dir) if run.is_in(log_dir)]
    found = _own_first([run for run in inside if run.state == "running" or run.left])
    # Whether a run of another host is running can only be found out there; its command says how.
    found = found or _own_first([run for run in inside if run.state == "elsewhere"])[-1:]
    if not found:
        return index.resolve(names.LATEST, log_dir)
    if len(found) == 1:
        run_files.hold(found[0].path)
        return found[0]
    last = listing.typed_names(found, log_dir)[found[-1].path]
    raise UsageError(
        f"{count(len(found), 'run')} are running in {log_dir}",
        lines=listing.as_text(found).splitlines(),
        hint=f"name the run, for example the last one: `hccl-tools {command} {operand(last)}`"
        + ("; `hccl-tools stop --all` stops them all" if command == "stop" else ""),
    )


def followed(log_dir: str) -> Run:
    """Return the run whose output is followed: the one that was started last of those that are running.

    Without any, it is the latest run.

    Raises:
        NoSuchRunError: No run was found.
    """
    found = [run for run in index.find(log_dir) if run.is_in(log_dir)]
    running = _own_first([run for run in found if run.state == "running"])
    if not running:
        return index.resolve(names.LATEST, log_dir)
    run_files.hold(running[-1].path)
    return running[-1]


def _own_first(found: list[Run]) -> list[Run]:
    """Return the runs of this user; those of others if there are none: others can add runs at will."""
    return [run for run in found if not run.user] or found
