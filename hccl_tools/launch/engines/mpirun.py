"""``--engine mpirun``: which mpirun or mpiexec is at hand, and what it is to start.

Open MPI and MPICH install the same two names. The first directory of PATH that has either decides, as it does
for the user's shell; ``--mpirun`` names another, for instance Debian's ``mpiexec.mpich``.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.engines import mpich, openmpi
from hccl_tools.launch.model.plan import TABLE_COPY
from hccl_tools.programs.install_hints import MPIRUN
from hccl_tools.programs.lookup import ProgramMissingError, on_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Plan

_NAMES = ("mpirun", "mpiexec")
#: What ``--version`` prints, by flavour.
_OPENMPI = re.compile(r"\((?:Open MPI|OpenRTE)\) ([0-9]+)\.")
_MPICH = re.compile(r"^HYDRA build details:\n\s+Version:\s+([0-9]+)\.", re.MULTILINE)


def command(plan: Plan) -> list[str]:
    """Return the command line of a plan: with a table a supervisor per host, without one the ranks."""
    options = mpich if plan.engine_flavour.startswith("mpich") else openmpi
    if plan.supervisor:
        return [plan.engine_program, *options.for_hosts(plan), *plan.supervisor]
    return [plan.engine_program, *options.for_ranks(plan), *_shim(plan)]


def _shim(plan: Plan) -> list[str]:
    first = plan.ranks[0]
    options = ["--run-dir", plan.run_dir, "--start", plan.start]
    if plan.table:
        options += ["--rank-table", os.path.join(plan.run_dir, TABLE_COPY)]
    else:
        options += ["--devices", ",".join(str(process.device) for process in plan.ranks)]
    if plan.cpu:
        options.append("--cpu")
    if scheduler := next((process for process in plan.processes if process.rank < 0), None):
        options += ["--scheduler-port", scheduler.environment["MS_SCHED_PORT"]]
    return [*plan.shim, *options, "--no-python", "--", *first.argv]


def find(environ: Mapping[str, str], wanted: str | None = None) -> tuple[str, str]:
    """Return the path of the mpirun to use and its flavour: ``openmpi-4``, ``openmpi-5``, ``mpich-4`` ...

    Args:
        environ: The caller's environment, for PATH.
        wanted: What ``--mpirun`` names, a path or a name on PATH.

    Raises:
        ProgramMissingError: There is neither mpirun nor mpiexec, or not the wanted one.
        LaunchError: It is neither Open MPI's nor MPICH's.
    """
    path = on_path(wanted, environ) if wanted else _first_on_path(environ)
    if path is None:
        raise ProgramMissingError(
            f'--mpirun: "{wanted}" is not there' if wanted else "--engine mpirun: there is no mpirun on PATH",
            hint="give a path, or a name on PATH"
            if wanted
            else f"install one: {MPIRUN}; or use --engine loop",
        )
    try:
        done = subprocess.run(
            [path, "--version"], env=dict(environ), capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or "it does not end"
        raise LaunchError(f"{path} --version: {reason}", hint="name another with --mpirun") from error
    for name, pattern in (("openmpi", _OPENMPI), ("mpich", _MPICH)):
        if match := pattern.search(done.stdout):
            return path, f"{name}-{match[1]}"
    said = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[0]
    raise LaunchError(
        f"{path} is neither Open MPI's nor MPICH's, whose options are known here; --version says: {said}",
        hint="name another with --mpirun, or start the ranks yourself: "
        "mpirun -n 2 python -m hccl_tools.launch.rank train.py",
    )


def _first_on_path(environ: Mapping[str, str]) -> str | None:
    """Return what the first directory of PATH has that has any."""
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        for name in _NAMES:
            if found := on_path(os.path.join(directory or ".", name), environ):
                return found
    return None
