"""What travels to the other hosts of a job: the table, the environment, and how to start their supervisors.

No disk need be shared: the table goes along as variables, packed. A non-interactive ssh has not sourced
CANN's ``set_env.sh``: that is why paths and the variables of CANN, HCCL and the frameworks go along.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.planning.packed_table import TABLE_FROM_ENVIRONMENT, TABLE_VARIABLE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import LaunchRequest

_EXPORTED_NAMES = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONUNBUFFERED")
_EXPORTED_PREFIXES = ("ASCEND_", "HCCL_", "GLOG_", "MS_", "PYTORCH_", "OMP_")
#: Options that concern the one who typed them, or are settled by now.
_OVERRIDES = (
    *("--engine=loop", "--mpirun=", f"--rank-table={TABLE_FROM_ENVIRONMENT}", "--hostfile="),
    *("--max-restarts=0", "--notify="),
)
_NOT_FORWARDED = ("--dry-run", "--emit")


def exported(environ: Mapping[str, str], *, also: Sequence[str] = (), usual: bool = True) -> dict[str, str]:
    """Return the variables that the ranks on other hosts get as well.

    Args:
        environ: The environment of the ranks here.
        also: Names besides the usual ones (``--export``).
        usual: Whether the usual ones go along (not with ``--no-export``).

    Raises:
        UsageError: One of ``also`` is not set.
    """
    if missing := [name for name in also if name not in environ]:
        raise UsageError(
            f"--export {missing[0]}: no such variable reaches the ranks",
            hint=f"`export {missing[0]}=...` before, or --env {missing[0]}=VALUE",
        )
    return {name: value for name, value in environ.items() if name in also or (usual and _goes_along(name))}


def _goes_along(name: str) -> bool:
    if name in _EXPORTED_NAMES:
        return True
    return name.startswith(_EXPORTED_PREFIXES) and not name.startswith("HCCL_TOOLS_")


def to_show(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what goes along as a plan shows it: without the packed table, and what is ours alone."""
    ours = (TABLE_VARIABLE_PREFIX, LAUNCHER_VARIABLE)
    return {name: environ.get(name, "") for name in names if not name.startswith(ours)}


def supervisor(
    request: LaunchRequest, *, start: Start, port: int, python: str, run_dir: str
) -> tuple[str, ...]:
    """Return the command that each host runs for its own part of the job."""
    typed = [option for option in request.typed_options if not option.startswith(_NOT_FORWARDED)]
    settled = (f"--start={start}", f"--start-port={port}", f"--python={python}", f"--run-dir={run_dir}")
    typed += ["--module"] if request.kind == "module" else []  # also that of `python -m`
    typed += [f"--product={request.product}"] if request.product else []  # the last one counts
    command = (sys.executable, "-m", "hccl_tools.launch", *typed)
    return (*(part for part in command if part != "--"), *_OVERRIDES, *settled, "--", *request.program)


def shim(request: LaunchRequest, facts: str) -> tuple[str, ...]:
    """Return the command before each MPI rank's program; ``facts`` is the file that settles it."""
    options = ["--facts", facts]
    options += [f"--product={request.product}"] if request.product else []
    options += [f"--ignore={rule}" for rule in request.ignore]
    options += ["--keep-mpi"] if request.keep_mpi else []
    return (sys.executable, "-m", "hccl_tools.launch.rank", *options)
