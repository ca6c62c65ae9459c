"""The commands and variables of the processes that an engine starts.

A non-interactive ssh does not source CANN's ``set_env.sh``. The supervisors on other hosts therefore get PATH
and the variables of CANN, HCCL and the frameworks.
"""

from __future__ import annotations

import os
import shlex
from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch.model.plan import FACTS_FILE
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE, TABLE_FROM_LAUNCHER
from hccl_tools.launch.planning.ports import DEFAULT_PORT
from hccl_tools.notation.phrases import named
from hccl_tools.processes.timing import TIMING_VARIABLE
from hccl_tools.records import NamedTuple
from hccl_tools.runs import private_files
from hccl_tools.runs.parents import TRUSTED_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.job import Job

_EXPORTED_NAMES = (
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONUNBUFFERED"),
    TRUSTED_VARIABLE,
    TIMING_VARIABLE,  # set by tests only
)
_EXPORTED_PREFIXES = ("ASCEND_", "HCCL_", "GLOG_", "MS_", "PYTORCH_", "OMP_")
#: Disable the options that only the launcher of the job uses: the last value of an option counts.
_OVERRIDES = (
    *("--engine=loop", "--mpirun=", f"--rank-table={TABLE_FROM_LAUNCHER}", "--hostfile="),
    *("--hosts=", "--max-restarts=0", "--notify=", "--spares=0", "--spare-hosts="),
)
_NOT_FORWARDED = ("--dry-run", "--emit")


class EngineCommands(NamedTuple):
    """The commands that an engine starts."""

    #: The command of the supervisor on each host; empty if the engine starts the ranks.
    supervisor: tuple[str, ...] = ()
    #: The command before the program of each MPI rank.
    shim: tuple[str, ...] = ()
    #: This user's private directory with the file that this command reads.
    private_dir: str = ""
    #: The variables that are passed to the supervisors.
    exported: Mapping[str, str] = MappingProxyType({})


def commands(
    request: LaunchRequest, engine: Engine, job: Job, facts: JobFacts, *, python: str, kept: Mapping[str, str]
) -> EngineCommands:
    """Return the commands of an engine on the hosts of a job; the ranks inherit the variables ``kept``.

    Raises:
        LaunchError: The engine starts MPI processes on this host, but the table has other hosts.
        UsageError: A variable of ``--export`` is not set.
    """
    reaches_hosts = engine.starts_all_hosts and job.table is not None
    as_mpi = engine.starts_mpi_ranks and (facts.start == "mpi" or not reaches_hosts)
    if as_mpi and job.table is not None and job.server_count > 1:
        raise LaunchError(
            f"--start mpi starts ranks on this host only, but the table has {job.server_count} servers",
            hint="leave --start out, or start ranks yourself: "
            f"`mpirun ... {shlex.join(own_python.typed_rank())} --rank-table FILE train.py`",
        )
    if as_mpi:
        private_dir = private_files.new_path(kept)
        shim = _shim(request, os.path.join(private_dir, FACTS_FILE))
        return EngineCommands(shim=shim, private_dir=private_dir)
    if not engine.starts_all_hosts or job.table is None:
        return EngineCommands()
    variables = {
        **exported(kept, also=request.variables.export, usual=request.variables.export_defaults),
        LAUNCHER_VARIABLE: "",
    }
    return EngineCommands(_supervisor(request, facts, python), exported=variables)


def exported(environ: Mapping[str, str], *, also: Sequence[str] = (), usual: bool = True) -> dict[str, str]:
    """Return the variables to pass to other hosts: ``also``, and the default ones if ``usual``.

    Raises:
        UsageError: A variable in ``also`` is not set.
    """
    if missing := [name for name in also if name not in environ]:
        raise UsageError(
            f"--export {missing[0]}: the variable is not set in the ranks' environment",
            hint=f"`export {named(missing[0], 'NAME')}=...` first, or --env {missing[0]}=VALUE",
        )
    return {name: value for name, value in environ.items() if name in also or (usual and _is_usual(name))}


def _is_usual(name: str) -> bool:
    return name in _EXPORTED_NAMES or (
        name.startswith(_EXPORTED_PREFIXES) and not name.startswith("HCCL_TOOLS_")
    )


def _supervisor(request: LaunchRequest, facts: JobFacts, python: str) -> tuple[str, ...]:
    typed = [option for option in request.typed_options if not option.startswith(_NOT_FORWARDED)]
    settled = (f"--start={facts.start}", f"--start-port={facts.port or DEFAULT_PORT}", f"--python={python}")
    typed += ["--module"] if request.program.kind == "module" else []  # also for `python -m`
    typed += [f"--product={request.table.product}"] if request.table.product else []  # the last value counts
    options = (*(part for part in typed if part != "--"), *_OVERRIDES, *settled, f"--run-dir={facts.run_dir}")
    return tuple(own_python.command("hccl_tools.launch", *options, "--", *request.program.argv))


def _shim(request: LaunchRequest, facts: str) -> tuple[str, ...]:
    options = ["--facts", facts]
    options += [f"--product={request.table.product}"] if request.table.product else []
    options += [f"--ignore={rule}" for rule in request.table.ignore]
    options += ["--keep-mpi"] if request.variables.keep_mpi else []
    return tuple(own_python.command("hccl_tools.launch.rank", *options))
