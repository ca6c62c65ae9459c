"""Merge tables of one format into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from hccl_tools.errors import TableError
from hccl_tools.formats import group_list
from hccl_tools.records import NamedTuple
from hccl_tools.table import model
from hccl_tools.table.model import Group, RankTable
from hccl_tools.transform import merge_conflicts
from hccl_tools.transform.merge_conflicts import ConflictLocation, MergeConflictError
from hccl_tools.transform.merge_state import MergeState, TableBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.table.model import SuperPod

#: The order of servers: as given, by server_id as text, or by address as a number.
Order = Literal["given", "server-id", "ip"]


class Merged(NamedTuple):
    """A merged table, and the name of the source table of each of its servers."""

    table: RankTable
    origins: list[str]


def merge(tables: Iterable[tuple[str, RankTable]], *, order: Order = "given") -> Merged:
    """Merge tables of one format; ranks are renumbered from 0.

    Args:
        tables: Each with its name for messages, in the order given. The ranks of a table keep their order,
            regardless of their numbers, which must be distinct.
        order: ``given`` numbers the ranks table after table. ``server-id`` and ``ip`` sort the servers of all
            tables and number the ranks server by server. A group_list has no rank ids: HCCL numbers its
            devices by server_id as text.

    Raises:
        MergeConflictError: Two tables have a server, an address or a super_device_id in common, or contradict
            each other; the error has both places.
        TableError: ``tables`` is empty.
    """
    return merge_batches((TableBatch.of(name, table) for name, table in tables), order=order)


def merge_batches(batches: Iterable[TableBatch], *, order: Order = "given") -> Merged:
    """Merge batches of tables; see ``merge``."""
    collected = MergeState()
    for batch in batches:
        merge_conflicts.check_kind(collected, batch.names[0], batch.table)
        if batch.table.fields:
            merge_conflicts.check_fields(collected, batch.names[0], batch.table)
        collected.append(batch)
    if not collected.names:
        raise TableError("no tables to merge")
    merge_conflicts.check_duplicates(collected)
    sequence = _sequence(collected, order)
    if order != "given":
        collected.ranks = _numbered_by_server(collected, sequence)
    return Merged(
        _table(collected, sequence), [collected.names[collected.origins[index].table] for index in sequence]
    )


def _sequence(collected: MergeState, order: Order) -> list[int]:
    """Return the indices of the servers in their new order; the servers of a group stay together."""
    indices = list(range(len(collected.servers)))
    if order == "server-id":
        indices.sort(key=lambda index: collected.servers[index].server_id)
    elif order == "ip":
        keys = [model.address_key(server) for server in collected.servers]
        if None in keys:
            raise _without_address(collected, keys.index(None))
        indices.sort(key=cast("list[tuple[int, bytes]]", keys).__getitem__)
    if len(collected.groups) > 1:
        group_of = {index: place for place, (own, _) in enumerate(collected.groups.values()) for index in own}
        indices.sort(key=group_of.__getitem__)
    if collected.format == "2.0" and order == "given":  # a server is at the place of its first rank
        indices.sort(key=lambda index: min(collected.ranks[row] for row in collected.servers[index].rows))
    return indices


def _without_address(collected: MergeState, index: int) -> MergeConflictError:
    origin = collected.origins[index]
    name = collected.servers[index].server_id
    return MergeConflictError(
        f'--order ip: server "{name}" has no address in server_id or host_ip',
        (ConflictLocation(collected.names[origin.table], origin.server, None, "server_id"),),
        hint="use --order server-id, or specify the files in the desired order",
    )


def _numbered_by_server(collected: MergeState, sequence: list[int]) -> list[int]:
    """Return new ranks, server by server; the order within a server stays."""
    ranks = [0] * len(collected.ranks)
    following = 0
    for index in sequence:
        for row in sorted(collected.servers[index].rows, key=collected.ranks.__getitem__):
            ranks[row] = following
            following += 1
    return ranks


def _table(collected: MergeState, sequence: list[int]) -> RankTable:
    ranks, rows = collected.ranks, None
    if collected.format == "2.0":  # HCCL indexes rank_list by rank
        rows = sorted(range(len(ranks)), key=ranks.__getitem__)
    elif sequence != list(range(len(sequence))):
        rows = [row for index in sequence for row in collected.servers[index].rows]
    if rows is not None:
        _move_rows(collected, rows)
        ranks = [ranks[row] for row in rows]
    collected.columns["rank_id"] = list(ranks) if collected.format == "2.0" else list(map(str, ranks))
    table = RankTable(
        collected.format,
        [collected.servers[index] for index in sequence],
        collected.columns,
        collected.status,
        _super_pods(collected, sequence),
        _groups(collected, sequence),
        collected.fields,
    )
    if table.format == "group_list":
        table.columns["rank_id"] = group_list.rank_ids(table.servers, table.device_numbers)
    else:
        table.rank_numbers = list(ranks)  # parsing the texts again would take 8 ms
    return table


def _move_rows(collected: MergeState, rows: list[int]) -> None:
    """Reorder the devices: the device at ``rows[i]`` becomes the i-th device."""
    new_place = [0] * len(rows)
    for place, row in enumerate(rows):
        new_place[row] = place
    collected.columns = {key: [column[row] for row in rows] for key, column in collected.columns.items()}
    for server in collected.servers:
        moved = sorted(new_place[row] for row in server.rows)
        server.rows = moved if collected.format == "2.0" else range(moved[0], moved[0] + len(moved))


def _super_pods(collected: MergeState, sequence: list[int]) -> list[SuperPod] | None:
    place = {collected.servers[index].server_id: number for number, index in enumerate(sequence)}
    pods = list(collected.pods.values())
    for pod in pods:
        pod.server_ids.sort(key=lambda name: place.get(name, len(place)))
    return sorted(pods, key=lambda pod: place.get(pod.server_ids[0], len(place))) or None


def _groups(collected: MergeState, sequence: list[int]) -> list[Group] | None:
    if collected.format != "group_list":
        return None
    place = {index: number for number, index in enumerate(sequence)}
    groups = []
    for name, (indices, fields) in collected.groups.items():
        first = min(place[index] for index in indices)
        groups.append(Group(name, range(first, first + len(indices)), fields))
    return groups
