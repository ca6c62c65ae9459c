"""The default engine for querying hosts, why it is used, and the default hosts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.errors import InputError, LaunchError
from hccl_tools.notation import host_list
from hccl_tools.programs.lookup import ProgramMissingError
from hccl_tools.programs.mpirun import find_mpirun
from hccl_tools.programs.slurm import allocated_nodes, in_allocation
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.gathering.options import Engine
    from hccl_tools.table.model import RankTable


class Choice(NamedTuple):
    """An engine, and the reason for its use."""

    engine: Engine
    reason: str


def default(environ: Mapping[str, str]) -> Choice:
    """Return srun inside a Slurm allocation, else the choice of :func:`outside_slurm`."""
    if in_allocation(environ):
        return Choice("slurm", "inside a Slurm allocation")
    return outside_slurm(environ)


def outside_slurm(environ: Mapping[str, str]) -> Choice:
    """Return Open MPI's mpirun if it is on PATH and mpi4py is installed, else ssh."""
    try:
        found = find_mpirun(environ)
    except ProgramMissingError:
        return Choice("ssh", "no mpirun on PATH")
    except LaunchError as error:
        return Choice("ssh", error.message)
    if not found.is_open_mpi:
        return Choice("ssh", f"{found.path} is not Open MPI's mpirun")
    if find_spec("mpi4py") is None:
        return Choice("ssh", "mpi4py is not installed here")
    return Choice("mpirun", f"{found.path} is on PATH")


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
