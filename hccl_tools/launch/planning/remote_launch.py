"""The commands and variables of the processes that an engine starts.

A non-interactive ssh does not source CANN's ``set_env.sh``. The supervisors on other hosts therefore get PATH
and the variables of CANN, HCCL and the frameworks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.model.variables import TABLE_FROM_ENVIRONMENT
from hccl_tools.launch.processes.timing import TIMING_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import LaunchRequest

_EXPORTED_NAMES = (
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONUNBUFFERED"),
    TIMING_VARIABLE,  # set by tests only
)
_EXPORTED_PREFIXES = ("ASCEND_", "HCCL_", "GLOG_", "MS_", "PYTORCH_", "OMP_")
#: Options of the launcher alone; the last value of an option counts.
_OVERRIDES = (
    *("--engine=loop", "--mpirun=", f"--rank-table={TABLE_FROM_ENVIRONMENT}", "--hostfile="),
    *("--max-restarts=0", "--notify="),
)
_NOT_FORWARDED = ("--dry-run", "--emit")


def exported(environ: Mapping[str, str], *, also: Sequence[str] = (), usual: bool = True) -> dict[str, str]:
    """Return the variables that are passed to other hosts.

    Args:
        environ: The environment of the ranks on this host.
        also: Names besides the usual ones (``--export``).
        usual: Whether the usual ones are passed (not with ``--no-export``).

    Raises:
        UsageError: One of ``also`` is not set.
    """
    if missing := [name for name in also if name not in environ]:
        raise UsageError(
            f"--export {missing[0]}: the variable is not set in the ranks' environment",
            hint=f"`export {missing[0]}=...` first, or --env {missing[0]}=VALUE",
        )
    return {name: value for name, value in environ.items() if name in also or (usual and _is_usual(name))}


def _is_usual(name: str) -> bool:
    return name in _EXPORTED_NAMES or (
        name.startswith(_EXPORTED_PREFIXES) and not name.startswith("HCCL_TOOLS_")
    )


def supervisor(
    request: LaunchRequest, *, start: Start, port: int, python: str, run_dir: str
) -> tuple[str, ...]:
    """Return the command of the supervisor on each host."""
    typed = [option for option in request.typed_options if not option.startswith(_NOT_FORWARDED)]
    settled = (f"--start={start}", f"--start-port={port}", f"--python={python}", f"--run-dir={run_dir}")
    typed += ["--module"] if request.program.kind == "module" else []  # also that of `python -m`
    typed += [f"--product={request.table.product}"] if request.table.product else []  # the last one counts
    command = (sys.executable, "-m", "hccl_tools.launch", *typed)
    return (*(part for part in command if part != "--"), *_OVERRIDES, *settled, "--", *request.program.argv)


def shim(request: LaunchRequest, facts: str) -> tuple[str, ...]:
    """Return the command before the program of each MPI rank; ``facts`` is the file with its environment."""
    options = ["--facts", facts]
    options += [f"--product={request.table.product}"] if request.table.product else []
    options += [f"--ignore={rule}" for rule in request.table.ignore]
    options += ["--keep-mpi"] if request.variables.keep_mpi else []
    return (sys.executable, "-m", "hccl_tools.launch.rank", *options)
