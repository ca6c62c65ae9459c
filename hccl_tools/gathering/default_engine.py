"""The default engine for querying hosts, why it is used, and the default hosts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.errors import InputError
from hccl_tools.launch.engines.default import for_several_hosts
from hccl_tools.notation import host_list
from hccl_tools.programs.slurm import allocated_nodes, in_allocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.programs.mpirun import Mpirun
    from hccl_tools.table.model import RankTable

#: The engines that start the processes on all hosts with one command, and the modules that use them.
#: With every other engine, there is a connection to each host: :meth:`Engine.on_host`.
_ALL_AT_ONCE = {"mpirun": "over_mpirun", "slurm": "over_srun"}


def transport(engine: str) -> str:
    """Return the name of the module of this package that surveys hosts with an engine."""
    return _ALL_AT_ONCE.get(engine, "over_connections")


def default(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the default engine, and why: srun inside a Slurm allocation, else mpirun if it can, else ssh."""
    return for_several_hosts(environ, _why_unfit)


def of_job(engine: Engine, environ: Mapping[str, str]) -> str:
    """Return the engine that queries the hosts of a job: that of the job if it can, else mpirun or ssh."""
    if engine.asks_hosts:
        return engine.name
    return for_several_hosts(environ, _why_unfit, with_slurm=False)[0]


def _why_unfit(mpirun: Mpirun) -> str:
    """Return why an mpirun cannot query hosts; "" if it can."""
    if not mpirun.is_open_mpi:
        return f"{mpirun.path} is not Open MPI's mpirun"
    return "mpi4py is not installed here" if find_spec("mpi4py") is None else ""


def hosts(table: RankTable, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of a Slurm allocation, else the addresses of the servers of a table.

    Raises:
        InputError: A server has a name that no host can have: a program could take it for an option.
    """
    if in_allocation(environ):
        return allocated_nodes(environ)
    found = tuple(dict.fromkeys(one.address for one in table.servers))
    for name in found:
        if why := host_list.why_not_a_host(name, ipv6=True):
            raise InputError(
                f"the server {quoted(name)} of the table cannot be asked: its name {why}",
                hint="correct server_id or host_ip, or name the hosts with --hosts",
            )
    return found
