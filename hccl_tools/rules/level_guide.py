"""Rules that HCCL does not check in 2.0 tables: requirements of the Ascend 950 guide, and late failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.copies import absent_devices
from hccl_tools.rules.entries_again import entries_again
from hccl_tools.rules.exchanged_layers import exchanged_layers
from hccl_tools.rules.level_owners import Pair, wrong_one
from hccl_tools.rules.levels import each_address, level_addresses, local_numbers
from hccl_tools.rules.moved_entries import exchanged, right_devices
from hccl_tools.rules.nodes_again import counted_once, nodes_again, ranks_again
from hccl_tools.rules.rank_graph import DEFAULT_TYPE, first_layer_types, has_first_layer
from hccl_tools.rules.rank_restarts import half_again
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.addresses import is_unset
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Path

    #: By rank: the rank that has the same EID before it in the file, and the places in both.
    _Seen = dict[int, tuple[int, Path, Path]]

#: In a chassis of several hosts, local ids continue over the hosts, and device ids start at 0 on each host.
_NPUS_OF_A_HOST = 8
#: What is said of ranks with the same level_list.
_COPIED = "the level_list of one of the two was probably copied"
_REMOVED = "; an entry that stands for no device is removed, with a lower rank_count, and the ranks after it are numbered on"
#: The most pairs of nodes with equal EIDs that are compared with the order of all others.
_MOST_COMPARED = 16


@rule("HCC333", "unsorted-rank-list", "fails-later", needs=("rank_id",), source="rank_graph_builder.cc:282")
def unsorted_rank_list(subject: Subject) -> Iterator[Finding]:
    """rank_list is not sorted by rank_id.

    HCCL uses the n-th entry for rank n without sorting, so a rank gets the addresses of another rank.

    Example: /rank_list/0/rank_id = 1; /rank_list/1/rank_id = 0
    Instead: table
    Hint: sort rank_list by rank_id
    """
    if exchanged(subject):
        return  # HCC203 reports it.
    for row, number in enumerate(subject.table.rank_numbers):
        if number is not None and number != row:
            known = [one for one in subject.table.rank_numbers if one is not None]
            if known == sorted(known) or len(set(known)) < len(known):
                return  # A rank is missing or occurs twice, which is another finding.
            yield Finding(
                f"entry {row + 1} of rank_list is rank {number}, not rank {row}",
                ("rank_list", row, "rank_id"),
                "sort rank_list by rank_id",
            )
            return


@rule(
    "HCC334",
    "duplicate-device",
    "fails-later",
    needs=("device_id", "local_id"),
    source="hccl_rules, not checked in 2.0: local_id and device_id inside a server",
)
def duplicate_device(subject: Subject) -> Iterator[Finding]:
    """Two ranks of one node have the same device_id or local_id, which HCCL does not check.

    If layer 0 spans the hosts of a chassis (local ids above 7), each host numbers its devices from 0.

    Example: /rank_list/1/device_id = 0
    Instead: /rank_list/1/device_id = 1
    Hint: give every rank of a node its own device_id
    """
    if half_again(subject):
        return  # HCC204 reports it.
    if entries_again(subject):
        return  # HCC203 or HCC204 reports them.
    is_reported = counted_once(subject) is not None  # By HCC204, too.
    local_ids = local_numbers(subject)
    device_ids = right_devices(subject)
    levels = subject.table.column("level_list")
    servers = [
        (index, server)
        for index, server in enumerate(subject.table.servers)
        if any(len({ids[row] for row in server.rows}) < len(server.rows) for ids in (local_ids, device_ids))
    ]
    again_whole = nodes_again(subject) if servers else []
    if again_whole and not is_reported:
        yield ranks_again(subject, again_whole)
    of_another_node = {one.node for one in again_whole}
    for index, server in servers:
        if index not in of_another_node and has_first_layer(levels[server.rows[0]]):
            again = _repeated_ranks(server.rows, local_ids, device_ids)
            if again:
                of_another_node.add(index)
                yield _ranks_of_another_node(subject, server.server_id, again)
    for key, numbers in (("local_id", local_ids), ("device_id", device_ids)):
        for index, server in servers:
            if index in of_another_node or not has_first_layer(levels[server.rows[0]]):
                continue  # Its ranks are of one network, and perhaps not of one node.
            # A node with local ids above those of one board may be a chassis of several hosts.
            if key == "device_id" and any((local_ids[row] or 0) >= _NPUS_OF_A_HOST for row in server.rows):
                continue
            if len({numbers[row] for row in server.rows}) == len(server.rows):
                continue
            first: dict[int | None, int] = {}
            for row in server.rows:
                if (seen := first.setdefault(numbers[row], row)) != row:
                    related = (Related(("rank_list", seen, key), "first used here"),)
                    yield Finding(
                        f"{key} {numbers[row]} is used twice in node {quoted(server.server_id)}",
                        ("rank_list", row, key),
                        f"give every rank of a node its own {key}",
                        related,
                    )


def _repeated_ranks(
    rows: Sequence[int], local_ids: list[int | None], device_ids: list[int | None]
) -> dict[int, int]:
    """Return the rows that repeat both ids of an earlier row, with that row; none if other ids repeat as well."""
    first: dict[tuple[int | None, int | None], int] = {}
    again = {
        row: seen for row in rows if (seen := first.setdefault((local_ids[row], device_ids[row]), row)) != row
    }
    others = first.values()
    are_unique = all(len({ids[row] for row in others}) == len(others) for ids in (local_ids, device_ids))
    return again if are_unique else {}


def _ranks_of_another_node(subject: Subject, name: str, again: dict[int, int]) -> Finding:
    """Return the finding on ranks that repeat the ids of others of their node: they are of another node."""
    numbers, levels = subject.table.rank_numbers, subject.table.column("level_list")
    own, others = (
        rank_list(sorted({number for row in rows if (number := numbers[row]) is not None}))
        for rows in (again.keys(), again.values())
    )
    row, seen = next(iter(again.items()))
    if (by_order := _strays(subject, again)) is not None:
        return _stray_ranks(subject, name, by_order, again)
    related = (Related(("rank_list", seen, "level_list", 0, "net_instance_id"), "the same node here"),)
    message = f"{own} and {others} have the same local_ids and device_ids in node {quoted(name)}"
    addresses = [[entry["addr"] for entry in levels[one][0]["rank_addr_list"]] for one in (row, seen)]
    if addresses[0] and addresses[0] == addresses[1]:
        return _copied_entry(subject, name, again, (own, others))
    message += ": a node has each id once, so their net_instance_id is probably that of another node"
    hint = f"write the net_instance_id of their own node in layer 0 of {own}; `hccl-tools gen` on that node shows it"
    return Finding(message, ("rank_list", row, "level_list", 0, "net_instance_id"), hint, related)


def _copied_entry(subject: Subject, name: str, again: dict[int, int], ranks: tuple[str, str]) -> Finding:
    """Return the finding on ranks whose entries are those of other ranks but for the rank; ``ranks`` names both."""
    (row, seen), (own, others) = next(iter(again.items())), ranks
    rows = subject.table.servers[subject.table.server_of_row[row]].rows
    absent, one = absent_devices(subject, rows), len(again) == 1
    message = (
        f"{own} {'is a copy' if one else 'are copies'} of {others} with another rank_id: device_id, local_id and addresses "
        f"are the same in node {quoted(name)}"
    )
    whose, what = "its own device", "device_id, local_id and addresses"
    if len(absent) == len(again):
        missing = f"device{'' if one else 's'} {fold(absent)}"
        message += f", and no rank of the node has {missing}"
        whose = missing
    left = len(subject.table) - len(again)
    return Finding(
        message,
        ("rank_list", row, "device_id"),
        f"write the {what} of {whose} in {own} (`hccl-tools gen` on {shown_host(name)} prints them); or, if {own} "
        f"{'is' if one else 'are'} not in the job, remove {'its entry' if one else 'their entries'}, write "
        f'"rank_count": {left}, and number the ranks without a gap',
        (Related(("rank_list", seen, "device_id"), "the first of the two"),),
    )


def _strays(subject: Subject, again: dict[int, int]) -> tuple[dict[int, int], int] | None:
    """Return the rows that are of another node by the order of the ranks, each with the one of its node, and that node.

    A row is of the node of the neighbours that its local_id continues, if that node lacks the local_id. The
    result is ``None`` if the order does not decide for each pair, or if the rows are of several nodes.
    """
    strays, nodes = dict[int, int](), set[int]()
    for row, seen in again.items():
        right = {one: node for one in (row, seen) if (node := _node_by_order(subject, one)) is not None}
        if len(right) != 1:
            return None
        ((stray, node),) = right.items()
        strays[stray] = seen if stray == row else row
        nodes.add(node)
    return (strays, nodes.pop()) if len(nodes) == 1 else None


def _node_by_order(subject: Subject, row: int) -> int | None:
    """Return another node whose ranks before and after a row its local_id continues, if that node lacks the id."""
    ids, owner, own = local_numbers(subject), subject.table.server_of_row, local_numbers(subject)[row]
    if own is None:
        return None
    around = {
        owner[one] for one, local_id in ((row - 1, own - 1), (row + 1, own + 1))
        if 0 <= one < len(ids) and ids[one] == local_id
    }  # fmt: skip
    if len(around) != 1 or owner[row] in around:
        return None
    node = around.pop()
    return None if (node, own) in _ids_of_nodes(subject) else node


@shared
def _ids_of_nodes(subject: Subject) -> set[tuple[int, int | None]]:
    """Return each node with each local_id that it has."""
    return set(zip(subject.table.server_of_row, local_numbers(subject), strict=True))


def _stray_ranks(
    subject: Subject, name: str, strays: tuple[dict[int, int], int], again: dict[int, int]
) -> Finding:
    """Return the finding on ranks that are in another node than the ranks around them."""
    rows, node = strays
    numbers = subject.table.rank_numbers
    own, others = (
        rank_list(sorted({number for row in each if (number := numbers[row]) is not None}))
        for each in (rows.keys(), rows.values())
    )
    row, other = next(iter(rows.items()))
    right = quoted(subject.table.servers[node].server_id)
    ids = fold(sorted({local_numbers(subject)[one] or 0 for one in rows}))
    has, local_ids = ("is", "local_id") if len(again) == 1 else ("are", "local_ids")
    return Finding(
        f"{own} {has} in node {quoted(name)}, where {others} {'has' if len(again) == 1 else 'have'} {local_ids} {ids} "
        f"already; by the order of the ranks {own} {has} of node {right}, which has no {local_ids} {ids}",
        ("rank_list", row, "level_list", 0, "net_instance_id"),
        f'write "net_instance_id": {right} in layer 0 of {own}',
        (Related(("rank_list", other, "level_list", 0, "net_instance_id"), "the same node here"),),
    )


@rule("HCC462", "first-layer", "forbidden", source="rank_table_config_a5.md, `net_layer`, `net_type`")
def first_layer(subject: Subject) -> Iterator[Finding]:
    """Layer 0 of a network instance has net_type CLOS, and the guide requires TOPO_FILE_DESC there.

    A level without net_type is CLOS.

    Example: /rank_list/0/level_list/0/net_type = "CLOS"; /rank_list/1/level_list/0/net_type = "CLOS"
    Instead: table
    Hint: the guide requires TOPO_FILE_DESC on layer 0
    """
    instances = {name for name, kinds in first_layer_types(subject).items() if [*kinds] == [DEFAULT_TYPE]}
    for row, levels in enumerate(subject.table.column("level_list") if instances else ()):
        if has_first_layer(levels) and levels[0]["net_instance_id"] in instances:
            if row in exchanged_layers(subject):
                continue  # HCC464 reports it.
            found = DEFAULT_TYPE if "net_type" in levels[0] else f"{DEFAULT_TYPE} by default"
            yield Finding(
                f"layer 0 has net_type {found}",
                ("rank_list", row, "level_list", 0),
                "the guide requires TOPO_FILE_DESC on layer 0",
            )


@rule(
    "HCC615",
    "same-eid-twice",
    "advice",
    formats=("2.0",),
    source="an EID belongs to one device (mind-cluster, parse_eid.py)",
)
def same_eid_twice(subject: Subject) -> Iterator[Finding]:
    """Two devices have the same EID, or devices of two nodes have the same IP address.

    Base: 2.0 1x2
    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "EID"; /rank_list/1/level_list/0/rank_addr_list/0/addr_type = "EID"; /rank_list/0/level_list/0/rank_addr_list/0/addr = "000000000000002000100000dfdf0001"; /rank_list/1/level_list/0/rank_addr_list/0/addr = "000000000000002000100000DFDF0001"
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "EID"; /rank_list/1/level_list/0/rank_addr_list/0/addr_type = "EID"; /rank_list/0/level_list/0/rank_addr_list/0/addr = "000000000000002000100000dfdf0001"; /rank_list/1/level_list/0/rank_addr_list/0/addr = "000000000000002000100000dfdf0002"
    Hint: `hccl-tools gen` on node0 reads the EIDs of the devices from the root info: write those that rank 0 or rank 1 has there
    """
    texts = [entry["addr"].lower() for entry in level_addresses(subject)]
    if len({*texts}) == len(texts):
        return
    first: dict[tuple[str, str], Path] = {}
    again: dict[tuple[int, int, int | None, str], _Seen] = {}
    owner, levels = subject.table.server_of_row, subject.table.column("level_list")
    ids = subject.table.column("local_id")
    for path, entry in each_address(subject):
        kind = "EIDs" if entry["addr_type"] == "EID" else "addresses"
        where = first.setdefault((kind, entry["addr"].lower()), path)
        row, seen = int(path[1]), int(where[1])
        if row == seen or (owner[row] == owner[seen] and ids[row] == ids[seen]):
            continue  # HCC334 reports an entry that was copied.
        if kind != "EIDs" and (owner[row] == owner[seen] or is_unset(entry["addr"])):
            continue  # The devices of a node may use one port of the host.
        layer = read_integer(levels[row][int(path[3])]["net_layer"])
        again.setdefault((owner[row], owner[seen], layer, kind), {}).setdefault(row, (seen, path, where))
    together: dict[tuple[Any, ...], list[tuple[int | None, _Seen]]] = {}
    for (one, other, layer, kind), found in again.items():  # A copied level_list has the EIDs of each layer.
        rows = tuple((row, seen) for row, (seen, _, _) in found.items())
        together.setdefault((one, other, rows, kind), []).append((layer, found))
    for (*_, kind), layers in together.items():
        is_compared = kind == "EIDs" and len(again) <= _MOST_COMPARED
        yield _those_of_others(subject, layers, kind, is_compared=is_compared)


def _those_of_others(
    subject: Subject, layers: list[tuple[int | None, _Seen]], kind: str, *, is_compared: bool
) -> Finding:
    """Return the finding on ranks of a node that have the EIDs, or the addresses, of other ranks in some layers."""
    numbers = subject.table.rank_numbers
    each = [
        [Pair(seen, row, where, path) for row, (seen, path, where) in found.items()] for _, found in layers
    ]
    pairs, said = each[0], {wrong_one(subject, one) if is_compared else "" for one in each}
    wrong = said.pop() if len(said) == 1 else ""
    sides = ([pair.later for pair in pairs], [pair.first for pair in pairs])
    paths = (pairs[0].later_path, pairs[0].first_path)
    if wrong == "first":
        sides, paths = sides[::-1], paths[::-1]
    own, others = (rank_list(sorted({numbers[row] or 0 for row in rows})) for rows in sides)
    hosts = [
        shown_host(subject.table.servers[subject.table.server_of_row[rows[0]]].server_id) for rows in sides
    ]
    related = (Related((*paths[1], "addr"), "the same here" if wrong == "first" else "first used here"),)
    has = "has" if len(pairs) == 1 else "have"
    where = f"layer{'s' if layers[1:] else ''} {' and '.join(str(layer) for layer, _ in layers)}"
    column = subject.table.column("level_list")
    copied = all(column[one] == column[other] for one, other in zip(*sides, strict=True))
    if not wrong:
        on = f"on {hosts[0]}" if hosts[0] == hosts[1] else f"on {hosts[1]} and on {hosts[0]}"
        return Finding(
            f"{others} and {own} have the same {kind} in {where}: {_COPIED if copied else 'those of one of the two are wrong'}",
            (*paths[0], "addr"),
            f"`hccl-tools gen` {on} reads the {kind} of the devices from the root info: write those that {others} or {own} "
            f"{has} there{_REMOVED if copied else ''}",
            related,
        )
    how = ""
    if copied:
        how = f", as if {'its level_list was' if len(pairs) == 1 else 'their level_lists were'} copied"
    return Finding(
        f"{own} {has} {kind} of {others} in {where}{how}: by the order of the others, the {kind} of {own} are probably wrong",
        (*paths[0], "addr"),
        f"write the {kind} of the devices themselves in {own}: `hccl-tools gen` on {hosts[0]} reads them from the root info",
        related,
    )
