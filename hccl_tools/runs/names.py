"""The names of the files in a run directory, and of the link to the latest run directory."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The link to the latest run, beside the run directories.
LATEST = "latest"
#: What people type for the latest run.
NEWEST = frozenset({LATEST, "last", "newest", "most-recent"})
PLAN = "plan.json"
REPORT = "report.json"
#: The copy of the rank table.
TABLE = "rank_table.json"
#: The variables of Paddle's ranks that are too long for an environment.
BACKUP_VARIABLES = "backup_env.json"
#: The table as received from the launcher, on the hosts of an engine.
GIVEN_TABLE = "given_table.json"
#: Process id, host, time, kind and start (in clock ticks since boot) of the launcher, one per line;
#: locked while the launcher runs.
LAUNCHER = "launcher"
#: The run directories of the other hosts of a job whose command was typed on each, by host.
RUN_DIRS = "run_dirs.json"
#: The node name of each host that has started its part, one per line.
HOSTS = "hosts.jsonl"
#: The output of mpirun or srun, and of the ssh that it starts.
ENGINE_LOG = "engine.log"
ENGINE_ERRORS = "engine_errors.log"
SCHEDULER_LOG = "scheduler.log"
#: The port that rank 0 chose, for MPI ranks that were started without ``launch``.
PORT = "port"
#: The characters of the names of run directories; see ``directory.path_for``.
_OF_NAMES = frozenset("0123456789abcdef-")


def is_of_a_run(name: str) -> bool:
    """Return whether a name has the form of a run's; other users may have chosen it."""
    return name[:1] not in {"", "-"} and _OF_NAMES.issuperset(name)


#: Characters of a part of a name that selects a run. Each name of this century begins with 2, and a random
#: name of 32 digits has most short numbers and words such as "add".
SHORTEST_PART, _SHORTEST_RANDOM_PART = 4, 8


def matching(part: str, known: Sequence[str]) -> list[str]:
    """Return the names that a part of a name selects.

    They are those that begin with it, else those that have it in their short name, else anywhere.

    >>> matching("a1b2", ["20261121-101530-a1b2c3d4", "20261121-101530-e4b8a1b2"])
    ['20261121-101530-a1b2c3d4']
    """
    if part in known:
        return [part]
    if len(part) < SHORTEST_PART:
        return []
    random = part if len(part) >= _SHORTEST_RANDOM_PART else None
    return (
        [name for name in known if name.startswith(part)]
        or [name for name in known if part in short(name)]
        or [name for name in known if random is not None and random in name]
    )


#: The characters of a short name: those of the time, and four of the random digits, ``20261121-101530-a1b2``.
_SHORT = 20


def short(name: str, others: Iterable[str] = ()) -> str:
    """Return the beginning of a run's name that commands take for it: at least time and four digits.

    The random digits prevent that another user creates the directory first. Commands do not need all of them.

    Args:
        others: The names of the runs from which it must differ.

    >>> short("20261121-101530-a1b2c3d4", ["20261121-101530-a1b2f"])
    '20261121-101530-a1b2c'
    """
    rivals = [other for other in others if other != name]
    size = _SHORT
    while size < len(name) and any(other.startswith(name[:size]) for other in rivals):
        size += 1
    return name[:size]


def shown(path: str) -> str:
    """Return a path for messages: relative to the current folder if it is below it."""
    try:
        relative = os.path.relpath(path)
    except OSError:  # The current folder has been removed.
        return path
    return path if relative.startswith("..") else relative


def table_before(restart: int) -> str:
    """Return the name of the copy of the table that a restart has replaced."""
    return f"rank_table.before_restart_{restart}.json"


def rank_log(rank: int) -> str:
    """Return the name of a rank's log."""
    return f"rank_{rank}.log"


def heartbeat(rank: int) -> str:
    """Return the name of the file that a rank touches to show that it makes progress."""
    return f"heartbeat_{rank}"


def evidence(server: int) -> str:
    """Return the name of the file with the evidence that a host has taken before the end of its ranks."""
    return f"evidence_{server}.json"


def recorder_dump(rank: int) -> str:
    """Return the name of the file with the dump of a rank's flight recorder."""
    return f"recorder_rank_{rank}.json"


#: What torch_npu puts before the rank in the names of its dumps, and of the pipes that ask for them.
PIPE_STEM = "hccl_trace_rank_"


def pipe_dump(rank: int) -> str:
    """Return the name of the dump, a pickle, that torch_npu writes itself."""
    return f"{PIPE_STEM}{rank}"


def plog_folder(rank: int) -> str:
    """Return the name of the folder in which CANN writes the logs of a rank."""
    return f"plog_rank_{rank}"


def generation(log: str, restart: int) -> str:
    """Return the name of a log after a restart: ``rank_0.restart_2.log``, ``workerlog.0.restart_2``.

    Digits after the last dot are a rank, not a suffix.
    """
    if restart == 0:
        return log
    stem, suffix = os.path.splitext(log)
    if suffix[1:].isdecimal():
        return f"{log}.restart_{restart}"
    return f"{stem}.restart_{restart}{suffix}"
