"""Whether a Slurm allocation was requested with ``--no-kill``, so that it outlives the loss of a node.

No command of Slurm shows this of a job. It is in the batch script, on the command line of the salloc above
this process, or in a variable of sbatch or salloc.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs
from hccl_tools.programs.lookup import on_path
from hccl_tools.programs.without_key import without_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: sbatch and salloc read them as they read the option.
VARIABLES = ("SBATCH_NO_KILL", "SALLOC_NO_KILL")
_OPTION = ("--no-kill", "-k")
_DIRECTIVE = "#SBATCH"
_TIMEOUT_SECONDS = 10.0


def is_requested(environ: Mapping[str, str]) -> bool:
    """Return whether the allocation of this process is known to have been requested with ``--no-kill``."""
    if any(name in environ for name in VARIABLES):
        return True
    return any(map(has_option, (*_salloc_commands(), *directives(_batch_script(environ)))))


def has_option(words: Sequence[str]) -> bool:
    """Return whether the option is among the words after ``salloc``, before the command that it runs."""
    may_be_value = False
    for word in words:
        if word in _OPTION:
            return True
        if not word.startswith("-") and not may_be_value:
            return False
        may_be_value = word.startswith("-") and "=" not in word
    return False


def directives(script: str) -> Iterator[list[str]]:
    """Yield the options in the lines of a batch script that sbatch reads: those before the first command."""
    for line in script.splitlines():
        if line.startswith(_DIRECTIVE):
            try:
                yield shlex.split(line.removeprefix(_DIRECTIVE), comments=True)
            except ValueError:
                continue  # sbatch refuses such a line.
        elif line.strip() and not line.startswith("#"):
            return


def _salloc_commands() -> Iterator[list[str]]:
    """Yield the words after each salloc above this process."""
    pid = os.getppid()
    while pid > 1 and (status := procfs.status(pid)) is not None:
        program, *words = procfs.read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
        if os.path.basename(program) == "salloc":
            yield words
        pid = status.parent


def _batch_script(environ: Mapping[str, str]) -> str:
    scontrol = on_path("scontrol", environ)
    if scontrol is None or "SLURM_JOB_ID" not in environ:
        return ""
    command = [scontrol, "write", "batch_script", environ["SLURM_JOB_ID"], "-"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
            env=without_key(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
