"""Choose each rank's cores for ``--bind``: all cores (none), a share of them (cores), a NUMA node (numa).

The ranks of this host share the cores of this process: limits of taskset, a container or Slurm apply.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.host.site_defaults import Site
from hccl_tools.notation import number_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.planning.placement import RankPlacement

_NODES = "/sys/devices/system/node"


def cores_of(
    bind: str, placements: Sequence[RankPlacement], environ: Mapping[str, str]
) -> dict[int, tuple[int, ...]]:
    """Return the cores of each rank of this host, ascending; empty for ``none``.

    Ranks are assigned cores in device order: hosts attach devices to NUMA nodes in that order.

    Raises:
        LaunchError: There are fewer cores than ranks, or this host lists no NUMA nodes.
    """
    if bind == "none" or not placements:
        return {}
    usable = sorted(os.sched_getaffinity(0))
    shares = _cores(usable, len(placements)) if bind == "cores" else _numa(usable, len(placements), environ)
    order = sorted(placements, key=lambda placement: (placement.server_index, placement.local_rank))
    return {placement.rank: share for placement, share in zip(order, shares, strict=True)}


def _cores(usable: list[int], ranks: int) -> list[tuple[int, ...]]:
    if len(usable) < ranks:
        raise LaunchError(
            f"--bind cores: {ranks} ranks need one core each, but this process may use only {len(usable)}",
            hint="leave --bind out: the ranks then share all cores",
        )
    count = len(usable)
    return [tuple(usable[rank * count // ranks : (rank + 1) * count // ranks]) for rank in range(ranks)]


def _numa(usable: list[int], ranks: int, environ: Mapping[str, str]) -> list[tuple[int, ...]]:
    nodes = [share for cores in numa_nodes(environ) if (share := tuple(sorted(cores & set(usable))))]
    if not nodes:
        raise LaunchError(
            f"--bind numa: {_NODES} lists no NUMA node with a core that this process may use",
            hint="use --bind cores, or leave --bind out",
        )
    return [nodes[index * len(nodes) // max(ranks, len(nodes))] for index in range(ranks)]


def numa_nodes(environ: Mapping[str, str]) -> list[set[int]]:
    """Return the cores of this host's NUMA nodes, by the nodes' numbers (below HCCL_TOOLS_ROOT if set)."""
    folder = Site(environ).path(_NODES)
    try:
        names = [name for name in os.listdir(folder) if name.startswith("node") and name[4:].isdecimal()]
    except OSError:
        return []
    found = []
    for name in sorted(names, key=lambda name: int(name[4:])):
        with open(os.path.join(folder, name, "cpulist"), encoding="ascii") as file:
            found.append(set(number_list.parse(file.read().strip())))
    return found
