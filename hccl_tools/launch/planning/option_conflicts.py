"""What was typed beside a rank table: it must not contradict the table, which says where every rank is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import UsageError
from hccl_tools.launch import engines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import VisibleDevices
    from hccl_tools.table.model import RankTable


class TableOrigin(NamedTuple):
    """How messages call the table: its path, and a sentence on why that one where it was not typed."""

    path: str
    why: str | None = None

    @property
    def hint(self) -> str:
        """What to do about an option that contradicts the table."""
        said = "leave it out: the table says which machines, ranks and devices"
        return f"{said}; {self.why}" if self.why else said


def check_machines(
    request: LaunchRequest, table: RankTable, placements: Sequence[RankPlacement], named: TableOrigin
) -> None:
    """Refuse numbers of ranks and machines, and addresses, that are not the table's.

    Args:
        request: What was typed.
        table: A valid table.
        placements: Its placements, by rank.
        named: The table's name.

    Raises:
        UsageError: An option contradicts the table; the message names both.
    """
    for problem in _problems(request, table, placements, named.path):
        raise UsageError(problem, hint=named.hint)


def _problems(
    request: LaunchRequest, table: RankTable, placements: Sequence[RankPlacement], name: str
) -> Iterator[str]:
    servers = len(table.servers)
    if request.ranks not in (None, len(placements)):
        asked = _counted(request.ranks, "rank")
        yield f"{asked} were asked for, but the table has {len(placements)} ({name})"
    if request.node_count not in (None, servers):
        asked = f"{_counted(request.node_count, 'machine')} (--nnodes, or -n by --nproc-per-node)"
        yield f"{asked} were asked for, but {name} has {_counted(servers)}"
    if request.node_rank is not None and request.node_rank >= servers:
        yield f"--node-rank {request.node_rank}, but {name} has {_counted(servers)}"
    for server in table.servers if request.per_node is not None else ():
        if len(server.rows) != request.per_node:
            own = _counted(len(server.rows), "rank")
            yield f'{request.per_node} ranks per machine, but "{server.server_id}" has {own} in {name}'
    yield from _foreign_addresses(request, table, placements, name)
    one = "--server" if request.server is not None else "--node-rank"
    if servers > 1 and (request.server is not None or request.node_rank is not None):
        if request.all_here:
            yield f"--all-here runs the ranks of all servers, and {one} names one of them"
        elif engines.get(request.engine).starts_all_hosts:
            yield f"--engine {request.engine} starts the ranks of all servers, and {one} names one of them"


def _foreign_addresses(
    request: LaunchRequest, table: RankTable, placements: Sequence[RankPlacement], name: str
) -> Iterator[str]:
    """Yield what is wrong with ``--ips``: its machines are the table's, and the first has rank 0."""
    if not request.ips:
        return
    names = [_names(table, index) for index in range(len(table.servers))]
    known = ", ".join(server.server_id for server in table.servers[:4])
    for machine in request.ips:
        if not any(machine in own for own in names):
            yield f"--ips names {machine}, which is no server of {name} ({known})"
    if len(request.ips) != len(names):
        yield f"--ips names {_counted(len(request.ips), 'machine')}, but {name} has {_counted(len(names))}"
    if request.ips[0] not in names[placements[0].server_index]:
        yield f"--ips begins with {request.ips[0]}, but rank 0 is on {placements[0].host} in {name}"


def _names(table: RankTable, index: int) -> set[object]:
    server = table.servers[index]
    fields = (server.fields.get(key) for key in ("container_ip", "pod_name"))
    return {server.server_id, server.host_ip, *fields} - {None}


def check_devices(
    request: LaunchRequest, local: Sequence[RankPlacement], visible: VisibleDevices, named: TableOrigin
) -> None:
    """Refuse ``--devices`` that are not those of the table, on any server of ``local``.

    Raises:
        UsageError: They differ; the message names both.
    """
    if request.devices is None:
        return
    from hccl_tools.launch.planning import without_table  # noqa: PLC0415  (rarely typed beside a table)

    typed = sorted(without_table.listed(request.devices, visible.chosen))
    used: dict[int, list[int]] = {}
    for placement in local:
        used.setdefault(placement.server_index, []).append(placement.device)
    for devices in used.values():
        if sorted(devices) != typed:
            meant, has = (", ".join(map(str, ids)) for ids in (typed, sorted(devices)))
            raise UsageError(
                f"--devices {request.devices} means {meant} of this host, but {named.path} uses {has}",
                hint=named.hint,
            )


def server_of_node_rank(table: RankTable, placements: Sequence[RankPlacement], node_rank: int) -> str:
    """Return the server_id of a machine as torchrun and msrun count them: 0 is the one with rank 0."""
    along_the_ranks = list(dict.fromkeys(placement.server_index for placement in placements))
    return table.servers[along_the_ranks[node_rank]].server_id


def check_node_rank(
    request: LaunchRequest, table: RankTable, placements: Sequence[RankPlacement], here: int
) -> None:
    """Refuse a ``--node-rank`` that is another server than the one this host has been found to be.

    Raises:
        UsageError: They differ; the message names both.
    """
    if request.node_rank is None:
        return
    meant, found = server_of_node_rank(table, placements, request.node_rank), table.servers[here].server_id
    if meant != found:
        known = "--server says" if request.server is not None else "this host is"
        raise UsageError(
            f'--node-rank {request.node_rank} is "{meant}" of the table, but {known} "{found}"',
            hint=f'leave it out: "{found}" starts its own ranks, {_listed(placements, here)}',
        )


def _listed(placements: Sequence[RankPlacement], here: int) -> str:
    ranks = [str(placement.rank) for placement in placements if placement.server_index == here]
    return ", ".join(ranks if len(ranks) <= 8 else [*ranks[:3], "...", ranks[-1]])


def _counted(number: int | None, what: str = "server") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
