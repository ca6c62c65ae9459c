"""Facts about Slurm: its srun, the allocation and the step of this process, its nodes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.programs import resolving
from hccl_tools.programs.lookup import on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Steps that Slurm starts itself (batch script, interactive shell) are numbered from here.
_FIRST_OWN_STEP = 0xFFFFFFF0


def find_srun(environ: Mapping[str, str]) -> str | None:
    """Return the path of the srun on PATH, or None."""
    return on_path("srun", environ)


def in_allocation(environ: Mapping[str, str]) -> bool:
    """Return whether this process is in a Slurm allocation whose srun can be used."""
    return "SLURM_JOB_ID" in environ and find_srun(environ) is not None


def in_step(environ: Mapping[str, str]) -> bool:
    """Return whether the user's srun has started this process."""
    step = whole_number(environ.get("SLURM_STEP_ID", ""))
    return step is not None and step < _FIRST_OWN_STEP


def allocated_nodes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of the allocation in Slurm's order; empty outside an allocation."""
    listed = environ.get("SLURM_JOB_NODELIST")
    return host_list.parse(listed, option="SLURM_JOB_NODELIST") if listed else ()


def nodes_of_hosts(hosts: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of the allocation that are the hosts of a job; empty if all nodes are its hosts.

    Raises:
        LaunchError: The allocation has too few nodes, or more nodes than the job but not all of its hosts.
    """
    allocated = allocated_nodes(environ)
    if len(allocated) in {0, len(hosts)}:
        return ()
    have = f"this allocation has {count(len(allocated), 'node')} ({environ['SLURM_JOB_NODELIST']})"
    want = f"but the table has {count(len(hosts), 'server')}"
    if len(allocated) < len(hosts):
        raise LaunchError(f"{have}, {want}", hint=f"salloc -N {len(hosts)}, or --nodes in the batch script")
    found = _nodes_by_host(allocated, tuple(hosts))
    if unknown := [host for host in hosts if host not in found]:
        raise LaunchError(
            f'{have}, {want}, and no node has the name or address "{unknown[0]}"',
            hint=f"allocate the table's hosts alone: salloc -N {len(hosts)} -w NODES",
        )
    return tuple(found[host] for host in hosts)


def step_command(srun: str, job: str, node: str) -> list[str]:
    """Return the command before a program that starts it on a node of a job whose cores are all in use."""
    return [
        *(srun, "--jobid", job, "--overlap", "--nodes=1", "--ntasks=1", "--nodelist", node),
        *("--mpi=none", "--quiet", "--chdir=/"),
    ]


def without_own_step(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without the variables of an enclosing step or job, which srun would obey."""
    return {
        name: value
        for name, value in environ.items()
        if name == "SLURM_CONF" or not name.startswith("SLURM_")
    }


@cache
def _nodes_by_host(nodes: tuple[str, ...], hosts: tuple[str, ...]) -> dict[str, str]:
    """Return the node of each host, by its name or else its address; each node is looked up once."""
    known = frozenset(nodes)
    found = {host: name for host in hosts for name in (host.partition(".")[0], host) if name in known}
    if len(found) < len(frozenset(hosts)):
        named = frozenset(found.values())
        addresses = resolving.looked_up(node for node in nodes if node not in named)
        of_address = {address: node for node in nodes for address in addresses.get(node, ())}
        found = {host: of_address[host] for host in hosts if host in of_address} | found
    return found
