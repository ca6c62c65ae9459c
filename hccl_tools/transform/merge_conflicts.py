"""Conflicts between tables that are merged, and their places."""

from __future__ import annotations

from collections import Counter
from os.path import normpath
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError
from hccl_tools.notation.phrases import and_more, operand
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_loopback, is_simulated, packed
from hccl_tools.table.hccl_numbers import read_column

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from hccl_tools.table.model import RankTable
    from hccl_tools.transform.merge_state import MergeState

_NAMES_SHOWN = 3


class ConflictLocation(NamedTuple):
    """A server of a table, a device (index within the server), or a key of the server, device or table."""

    name: str
    server: int | None = None
    device: int | None = None
    key: str | None = None


class MergeConflictError(TableError):
    """Tables contradict each other or share a server, device or address, at ``places``."""

    def __init__(
        self,
        message: str,
        places: Iterable[ConflictLocation],
        *,
        hint: str | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        super().__init__(message, hint=hint, lines=lines)
        self.places = tuple(places)


def check_kind(collected: MergeState, name: str, table: RankTable) -> None:
    """Check that a table is ready, can be written, and has the format and status of the earlier tables.

    Raises:
        MergeConflictError: The table is not ready or of the old "lab" form, or differs from earlier tables in
            format or status.
    """
    if table.format != "2.0" and table.status != "completed":
        raise MergeConflictError(
            f'{name} is not ready: its status is "{table.status}"', (ConflictLocation(name, key="status"),),
            hint=f"wait until it is completed: `hccl-tools validate --wait 600 {operand(name)}`",
        )  # fmt: skip
    if "deploy_mode" in table.fields:
        raise MergeConflictError(
            f'cannot merge {name}: it is a table of the old "lab" form (deploy_mode)',
            (ConflictLocation(name, key="deploy_mode"),),
            hint="make the tables with `hccl-tools gen`",
        )
    if not collected.names:
        return
    first = collected.names[0]
    if table.format != collected.format:
        raise MergeConflictError(
            f"cannot merge {name} (a {table.format} table) and {first} (a {collected.format} table)",
            (),
            hint=f"convert one of them first: `hccl-tools convert {operand(name)} --to {collected.format}`",
        )
    if collected.status is not None and table.status is not None and table.status != collected.status:
        raise MergeConflictError(
            f'{name} has status "{table.status}", but {first} has "{collected.status}"',
            (ConflictLocation(first, key="status"), ConflictLocation(name, key="status")),
            hint="merge tables with the same status",
        )
    if collected.format == "1.2" and (table.super_pods is None) != (collected.without_pods is not None):
        one, other = (name, first) if table.super_pods is None else (first, name)
        raise MergeConflictError(
            f"{one} has no super_pod_list, unlike {other}",
            (ConflictLocation(other, key="super_pod_list"),),
            hint="merge tables that all have super pods, or tables without super pods",
        )


def check_fields(collected: MergeState, name: str, table: RankTable) -> None:
    """Check that the other keys of a table have the same values as in earlier tables.

    Raises:
        MergeConflictError: A key differs.
    """
    for key, value in table.fields.items():
        if key in collected.fields and value != collected.fields[key] and key != "cluster_list":
            other = collected.names[collected.field_origin[key]]
            raise MergeConflictError(
                f'{other} and {name} differ in "{key}"',
                (ConflictLocation(other, key=key), ConflictLocation(name, key=key)),
                hint="give both the same value, or remove the key",
            )
    clusters = {cluster.get("cluster_id"): cluster for cluster in _clusters(collected.fields)}
    for cluster in _clusters(table.fields):
        known = clusters.get(cluster.get("cluster_id"), cluster)
        if {**known, "server_list": None} != {**cluster, "server_list": None}:
            other = collected.names[collected.field_origin["cluster_list"]]
            raise MergeConflictError(
                f'{name} describes cluster "{cluster.get("cluster_id")}" differently from earlier tables',
                (ConflictLocation(other, key="cluster_list"), ConflictLocation(name, key="cluster_list")),
                hint="give the cluster the same network_type, az_id and region_id in all tables",
            )


def _clusters(fields: dict[str, Any]) -> list[dict[str, Any]]:
    entries = fields.get("cluster_list")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def check_duplicates(collected: MergeState) -> None:
    """Check that no two servers or devices share a value that must be unique.

    Raises:
        MergeConflictError: Two servers or devices share a value.
    """
    _check_servers(collected)
    if collected.format == "2.0":
        _check_devices(
            collected, "level_list", "address", _network_addresses(collected.columns["level_list"])
        )
        return
    _check_devices(collected, "device_ip", "device_ip", _device_ips(collected.columns.get("device_ip", [])))
    if collected.pods:
        _check_devices(collected, "super_device_id", "super_device_id", _super_devices(collected))


def _check_servers(collected: MergeState) -> None:
    key = "pod_name" if collected.format == "group_list" else "server_id"
    ids = [
        server.fields["pod_name"] if key == "pod_name" else server.server_id for server in collected.servers
    ]
    if len(set(ids)) < len(ids):
        _refuse_union(collected, ids)
        repeated = _first_repeated(ids)
        raise _duplicate(collected, f'{key} "{ids[repeated[0]]}"', [(index, None) for index in repeated], key)
    if key == "pod_name":
        _check_devices(collected, "device_id", "device", _devices_of_hosts(collected))


def _refuse_union(collected: MergeState, ids: list[str]) -> None:
    """Refuse a table that was merged from other input tables, such as the output of an earlier call."""
    contents: list[set[str]] = [set() for _ in collected.names]
    for name, origin in zip(ids, collected.origins, strict=True):
        contents[origin.table].add(name)
    for index in sorted(range(len(contents)), key=lambda one: -len(contents[one])):
        inside = [number for number, own in enumerate(contents) if own < contents[index]]
        if inside:
            names = and_more([collected.names[number] for number in inside], _NAMES_SHOWN)
            union = collected.names[index]
            # The result of an earlier call has no other servers; a table with more is not one of these files.
            is_result = set().union(*(contents[number] for number in inside)) == contents[index]
            hint = f"leave out {names}: all its servers are in {union}"
            if len(inside) > 1:
                hint = f"leave out {names}: all their servers are in {union}"
            if is_result:
                hint = f"leave out {union}: it has only the servers of the others"
            raise MergeConflictError(f"{union} already has the servers of {names}", (), hint=hint)


def _check_devices(
    collected: MergeState, key: str, what: str, values: Iterable[tuple[Hashable, int, str]]
) -> None:
    """Refuse a value that two devices have; ``values`` yields the value, its row and its text."""
    seen: dict[Hashable, int] = {}
    for value, row, text in values:
        first = seen.setdefault(value, row)
        if first != row:
            places = []
            for one in (first, row):
                index = collected.server_of_row(one)
                places.append((index, list(collected.servers[index].rows).index(one)))
            raise _duplicate(collected, f'{what} "{text}"', places, key)


def _device_ips(column: list[Any]) -> Iterator[tuple[Hashable, int, str]]:
    if set(map(type, column)) == {str} and len(set(column)) == len(column):
        text = "".join(column)
        if ":" not in text and "," not in text:  # one address each, in one spelling
            return
    for row, text in enumerate(column):
        for address in text.split(",") if isinstance(text, str) and text else ():
            yield packed(address) or address, row, address


def _network_addresses(column: list[Any]) -> Iterator[tuple[Hashable, int, str]]:
    for row, levels in enumerate(column):
        for level in levels:
            for entry in level["rank_addr_list"]:
                yield (entry["addr_type"], packed(entry["addr"]) or entry["addr"].lower()), row, entry["addr"]


def _super_devices(collected: MergeState) -> Iterator[tuple[Hashable, int, str]]:
    column = collected.columns.get("super_device_id", [])
    if set(map(type, column)) <= {str} and len(set(column)) == len(column):
        return  # All are different, or the tables have none.
    pod_of = {name: pod.super_pod_id for pod in collected.pods.values() for name in pod.server_ids}
    ids = read_column(column)
    for server in collected.servers:
        for row in server.rows:
            if ids[row] is not None:
                yield (pod_of.get(server.server_id), ids[row]), row, column[row]


def _devices_of_hosts(collected: MergeState) -> Iterator[tuple[Hashable, int, str]]:
    """Several pods may share a host, but not its devices."""
    if len({server.server_id for server in collected.servers}) == len(collected.servers):
        return
    ids = read_column(collected.columns["device_id"])
    for server in collected.servers:
        for row in server.rows:
            yield (
                (server.server_id, ids[row]),
                row,
                f"{collected.columns['device_id'][row]} of {server.server_id}",
            )


def _first_repeated(ids: list[str]) -> list[int]:
    counts = Counter(ids)
    name = next(name for name in ids if counts[name] > 1)
    first = ids.index(name)
    return [first, ids.index(name, first + 1)]


def _is_invented(server_id: str) -> bool:
    """Whether a server has an address that only simulated machines have, as the text of it shows."""
    return is_loopback(server_id) or is_simulated(server_id)


def _duplicate(
    collected: MergeState, what: str, places: Sequence[tuple[int, int | None]], key: str
) -> MergeConflictError:
    found = [
        ConflictLocation(collected.names[origin.table], origin.server, device, key)
        for index, device in places
        for origin in (collected.origins[index],)
    ]
    one, other = found[0].name, found[1].name
    if normpath(one) == normpath(other) and len({collected.origins[index].table for index, _ in places}) > 1:
        return MergeConflictError(f"{one} is specified twice", (), hint="specify each file once")
    where = f"{one} and {other}" if one != other else f"{one} twice"
    hint = "omit one of the tables, or correct it" if one != other else "correct the table"
    if one != other and all(_is_invented(collected.servers[index].server_id) for index, _ in places):
        hint += (
            "; tables of `gen --simulate` have the same invented addresses: with `--servers 2` it writes one "
            "table of two machines"
        )
    return MergeConflictError(f"{what} is in {where}", found, hint=hint)
