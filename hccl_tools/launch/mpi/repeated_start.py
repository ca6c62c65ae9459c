"""Refuse a launcher that mpirun or srun has started several times on one host.

Each would start the whole job.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.errors import UsageError
from hccl_tools.launch.mpi import options, world
from hccl_tools.programs.slurm import in_step
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Set in an interactive ``srun --pty``, whose first process has the terminal; the others have ended.
_TERMINAL = ("SLURM_PTY_PORT", "SLURM_PTY_WIN_COL")


class _Starter(NamedTuple):
    """A program that starts processes: its name, and the engine of ``launch`` that uses it."""

    program: str
    engine: str


_STARTERS = {
    "Open MPI": _Starter("mpirun", "mpirun"),
    "MPICH": _Starter("mpiexec", "mpirun"),
    "Slurm": _Starter("srun", "slurm"),
}


def refuse(
    environ: Mapping[str, str], what: str, program: Sequence[str] = (), typed: Sequence[str] = ()
) -> None:
    """Refuse to start if this process is one of several that mpirun or srun has started on this host.

    Args:
        what: The name of the launcher: ``launch`` or ``spawn``.
        program: The program of the ranks, with its arguments, if it can be a rank without the launcher.
        typed: The options of ``launch``.

    Raises:
        UsageError: There are several launchers on this host.
    """
    starter, here = several(environ)
    if starter is None:
        return
    name, engine = starter
    instead = ""
    if program:
        rank = shlex.join([*own_python.typed_rank(), *options.of_launch(typed), *program])
        shim = f"{name} -n {here} {rank}"
        instead = (
            f" (with --engine {engine} it calls {name} itself); or start a rank per process: `{shim}`, "
            f"with the other options of {name} that you typed"
        )
    raise UsageError(
        f"{name} has started `{what}` {here} times on this host; each would start the whole job",
        hint=f"leave {name} out: `{what}` starts all ranks{instead}",
    )


def several(environ: Mapping[str, str]) -> tuple[_Starter | None, int]:
    """Return what has started several processes like this one on this host, and their number."""
    is_slurm = "SLURM_STEP_ID" in environ
    if is_slurm and (not in_step(environ) or any(name in environ for name in _TERMINAL)):
        environ = {name: value for name, value in environ.items() if not name.startswith("SLURM_")}
    try:
        found = world.from_environment(environ)
    except (UsageError, ValueError):  # Not started so, or an incomplete set of variables.
        return None, 1
    starter = _STARTERS[found.launcher]
    return (starter, found.local_size) if found.local_size > 1 else (None, 1)
