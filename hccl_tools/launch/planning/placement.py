"""The server, device and cores of each rank, and the rendezvous address.

The ranks of this host share the cores of this process: limits of taskset, a container or Slurm apply.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.host.local_addresses import looked_up
from hccl_tools.host.site_defaults import Site
from hccl_tools.notation import number_list
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.table.model import RankTable

_NODES = "/sys/devices/system/node"


class RankPlacement(NamedTuple):
    """The server and device of one rank."""

    rank: int
    #: The address or name by which other machines reach the server.
    host: str
    server_index: int
    device: int
    #: The index of the rank on the server, by ascending device id.
    local_rank: int
    local_size: int
    #: The index of the rank on the server, by ascending rank.
    position: int


def place_ranks(table: RankTable) -> list[RankPlacement]:
    """Return the placements of a valid table, in rank order."""
    ranks, devices = table.rank_numbers, table.device_numbers
    placements: list[RankPlacement] = []
    for index, server in enumerate(table.servers):
        host = server.address
        by_device = sorted(server.rows, key=lambda row: devices[row] or 0)
        by_rank = sorted(by_device, key=lambda row: ranks[row] or 0)
        positions = {row: place for place, row in enumerate(by_rank)}
        size = len(by_device)
        placements += [
            RankPlacement(ranks[row] or 0, host, index, devices[row] or 0, place, size, positions[row])
            for place, row in enumerate(by_device)
        ]
    return sorted(placements, key=lambda placement: placement.rank)


def place_ranks_without_table(devices: Sequence[int], hosts: Sequence[str]) -> list[RankPlacement]:
    """Return the placements of a job without a table: the same devices, in this order, on each host."""
    order = {device: place for place, device in enumerate(sorted(devices))}
    size = len(devices)
    return [
        RankPlacement(index * size + place, host, index, device, order[device], size, place)
        for index, host in enumerate(hosts)
        for place, device in enumerate(devices)
    ]


def rendezvous_address(table: RankTable, placements: Sequence[RankPlacement]) -> str:
    """Return the rendezvous address: the address of rank 0's server for other machines.

    Raises:
        LaunchError: The job has several servers, and the server of rank 0 has only a loopback address or
            a name that this host cannot resolve.
    """
    if len(table.servers) == 1:
        return "127.0.0.1"
    host = placements[0].host
    if is_loopback(host):
        raise LaunchError(
            f'rank 0 is on "{host}", a loopback address, which other machines cannot reach',
            hint="give the server of rank 0 a host_ip or a server_id that the other machines can reach",
        )
    if packed(host) is not None:
        return host
    try:
        found = looked_up(host)
    except OSError as error:
        raise LaunchError(
            f'the name of rank 0\'s server, "{host}", cannot be resolved: {error.strerror or error}',
            hint="give that server a host_ip in the table, or set `--master-addr ADDRESS`",
        ) from error
    if is_loopback(found):
        # Debian's /etc/hosts maps a machine's own name to 127.0.1.1.
        raise LaunchError(
            f'the name of rank 0\'s server, "{host}", resolves to {found}, which no other machine can reach',
            hint="give that server a host_ip in the table, or set `--master-addr ADDRESS`",
        )
    return found


def cores_of(
    bind: str, placements: Sequence[RankPlacement], environ: Mapping[str, str]
) -> dict[int, tuple[int, ...]]:
    """Return the cores of each rank of this host for ``--bind``, ascending; empty for ``none``.

    ``cores`` gives each rank a share of the cores, ``numa`` a NUMA node.

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
