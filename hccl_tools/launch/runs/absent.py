"""What to say where a command finds no run: which folder it looked in, and what to name."""

from __future__ import annotations

import os
from itertools import islice

from hccl_tools.launch.runs import files, names
from hccl_tools.notation.phrases import count, operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: The name of the log directory without --log-dir.
_USUAL = "log"
#: The folders above and beside this one in which runs are looked for.
_MOST_ABOVE = 4
_MOST_BESIDE = 64


def sentence(log_dir: str, name: str | None = None) -> str:
    """Return that a log directory has no run, or no run with a name."""
    what = "there is no run" if name is None else f'there is no run "{name}"'
    folder = os.path.abspath(log_dir)
    return f"{what} in {folder}" if os.path.isdir(folder) else f"{what}: {folder} does not exist"


def remedy(log_dir: str, runs: int, name: str | None = None) -> str:
    """Return what to type instead: the list of the runs that are there, or another log directory.

    Args:
        runs: The number of runs in the log directory.
        name: What was typed in place of a run.
    """
    if name is not None and _has_runs(name):
        return f"this is a log directory: `--log-dir {operand(name)}` names it"
    if name is not None and os.path.isfile(name) and files.is_run(os.path.realpath(os.path.dirname(name))):
        return f"this is a file of a run: name the run, `{operand(os.path.dirname(name))}`"
    if runs:
        where = "" if log_dir == _USUAL else f" --log-dir {operand(log_dir)}"
        return f"`hccl-tools jobs{where}` lists the {count(runs, 'run')} there"
    other = next(_others(log_dir), None)
    if other:
        return f"there are runs in another folder: add `--log-dir {operand(other)}`"
    return (
        "name the log directory of the job with `--log-dir DIR`: the folder log/ beside which "
        "`hccl-tools launch` was started, or the DIR of its own --log-dir"
    )


def none_listed(log_dir: str, ended: int) -> str:
    """Return the text in place of an empty list; ``ended`` is the number of runs that are left out of it."""
    if ended:
        where = "" if log_dir == _USUAL else f" --log-dir {operand(log_dir)}"
        return f"no run is running; `hccl-tools jobs{where}` lists the {count(ended, 'run')} that ended"
    return f"{sentence(log_dir)}\n  help: {remedy(log_dir, 0)}"


def _others(log_dir: str) -> Iterator[str]:
    """Yield log directories with runs: above the current folder, below it, of the shell's folder before."""
    before = os.environ.get("OLDPWD", "")
    looked_at = os.path.abspath(log_dir)
    above = [os.path.join(*[os.pardir] * depth, _USUAL) for depth in range(1, _MOST_ABOVE + 1)]
    try:
        with os.scandir() as entries:
            below = sorted(entry.name for entry in islice(entries, _MOST_BESIDE) if entry.is_dir())
    except OSError:
        below = []
    former = [os.path.join(before, _USUAL)] if os.path.isabs(before) else []
    for folder in (_USUAL, *above, *(os.path.join(name, _USUAL) for name in below), *former):
        if os.path.abspath(folder) != looked_at and _has_runs(folder):
            yield folder


def _has_runs(folder: str) -> bool:
    return files.is_run(os.path.realpath(os.path.join(folder, names.LATEST)))
