"""Advice on ranks of a 2.0 table whose levels differ from those of the other ranks. HCCL accepts such a table."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.exchanged_layers import exchanged_layers, exchanged_names, exchanged_names_finding
from hccl_tools.rules.level_exchanges import Outside, number_of, within_ranks
from hccl_tools.rules.level_nodes import displaced_nodes
from hccl_tools.rules.levels import (
    address_types,
    all_ports,
    each_address,
    instance_names,
    layers_used,
)
from hccl_tools.rules.moved_rows import moved_rows
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.rules.value_order import order_of
from hccl_tools.table.addresses import V2_CHECKS
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SOURCE = "the levels of the other ranks of the table (rank_table_config_a5.md, `level_list`)"
#: The fewest ranks that agree for a finding on one that does not, and the most such ranks.
_LEAST_OTHERS, _MOST_ODD = 3, 4
#: Signs between ports that are written in one text.
_BETWEEN_PORTS = re.compile(r"[0-9]\s*[,; |]\s*[0-9]")


def _ranks(subject: Subject, rows: Iterable[int]) -> str:
    return rank_list(sorted({subject.table.rank_numbers[row] or 0 for row in rows}))


def _gen(subject: Subject, row: int) -> str:
    node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
    return f"`hccl-tools gen` on {shown_host(node)}"


@rule("HCC634", "odd-network-instance", "advice", source=_SOURCE)
def odd_network_instance(subject: Subject) -> Iterator[Finding]:
    """A rank is in another network instance of a layer than all other ranks of its node.

    Ranks of different network instances are not connected in this layer, so that HCCL takes a slower way or fails.

    Base: 2.0 2x4
    Example: /rank_list/0/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/1/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/2/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/3/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "1", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]
    Instead: table
    Hint: write "net_instance_id": "0" in layer 1 of rank 3: `hccl-tools gen` on node0 shows it
    """
    for row in (exchanges := exchanged_names(subject) if len(layers_used(subject)) > 1 else {}):
        yield exchanged_names_finding(subject, row)
    if exchanges or len(instance_names(subject)) <= len(subject.table.servers):
        return  # The nodes alone, or nodes and few networks: a rank of another network adds one.
    owner, odd = subject.table.server_of_row, list[tuple[int, int, str]]()
    instances: dict[tuple[int, int | None], Counter[str]] = {}
    for row, levels in enumerate(subject.table.column("level_list")):
        for level in levels:
            key = (owner[row], read_integer(level["net_layer"]))
            instances.setdefault(key, Counter())[level["net_instance_id"]] += 1
    usual = {
        key: names.most_common(1)[0][0]
        for key, names in instances.items()
        if names.total() - (most := names.most_common(1)[0][1]) <= most // _LEAST_OTHERS and len(names) > 1
    }
    for row, levels in enumerate(subject.table.column("level_list") if usual else ()):
        for place, level in enumerate(levels):
            layer = read_integer(level["net_layer"])
            right = usual.get((owner[row], layer)) if layer else None  # Layer 0 makes the node itself.
            if right is None or level["net_instance_id"] == right:
                continue
            if row not in exchanged_layers(subject):  # HCC451 or HCC464 reports these.
                odd.append((row, place, right))
    for row, place, right in odd if len(odd) <= _MOST_ODD else ():
        level = subject.table.column("level_list")[row][place]
        layer, found = level["net_layer"], quoted(level["net_instance_id"])
        yield Finding(
            f"{subject.rank_name(row)} is in network instance {found} of layer {layer}, and all other ranks of its node are in {quoted(right)}",
            ("rank_list", row, "level_list", place, "net_instance_id"),
            f'write "net_instance_id": {quoted(right)} in layer {layer} of {subject.rank_name(row)}: {_gen(subject, row)} shows it',
        )


@rule("HCC635", "layer-of-the-others-missing", "advice", source=_SOURCE)
def layer_missing(subject: Subject) -> Iterator[Finding]:
    """Ranks lack a layer that most ranks have, so that no network connects them with the other nodes there.

    Such an entry is that of a table of one node alone.

    Base: 2.0 2x2
    Example: /rank_list/0/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/1/level_list = [{"net_layer": 0, "net_instance_id": "node0", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/2/level_list = [{"net_layer": 0, "net_instance_id": "node1", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}, {"net_layer": 1, "net_instance_id": "0", "net_type": "CLOS", "net_attr": "", "rank_addr_list": []}]; /rank_list/3/level_list = [{"net_layer": 0, "net_instance_id": "node1", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": []}]
    Instead: table
    Hint: add layer 1 to rank 3: `hccl-tools gen` on node1, as for a job of several nodes, prints it
    """
    if not subject.table.servers:
        return
    levels = subject.table.column("level_list")
    found = [*_lacking(subject, levels)]
    if (
        len(subject.table.servers) > 1
        and not found
        and (apart := _apart(subject)) is not None
        and not _are_exchanged(subject)
    ):
        found = [apart]
    yield from found


def _are_exchanged(subject: Subject) -> bool:
    """Whether other rules report levels with exchanged values."""
    return bool(exchanged_layers(subject) or exchanged_names(subject))


def _lacking(subject: Subject, levels: list[Any]) -> Iterator[Finding]:
    """Yield the findings on ranks that lack a layer of most ranks."""
    if not levels or set(map(len, levels)) == {len(layers_used(subject))}:
        return  # Each rank has each layer; HCC451 reports a rank that has one twice.
    layers = [tuple(level["net_layer"] for level in own) for own in levels]
    times = Counter(layers)
    usual, most = times.most_common(1)[0]
    if len(times) == 1 or 2 * most <= len(levels):
        return
    lacking: dict[tuple[Any, ...], list[int]] = {}
    for row, own in enumerate(layers):
        missing = tuple(layer for layer in usual if layer not in own)
        if missing and len(set(own)) == len(own):  # Else HCC451 reports the layers.
            lacking.setdefault(missing, []).append(row)
    for missing, rows in lacking.items():
        if 0 in missing:
            continue  # HCC463 reports ranks without layer 0.
        shown = " and ".join(f"layer {layer}" for layer in missing)
        who = _ranks(subject, rows)
        yield Finding(
            f"{who} {'has' if len(rows) == 1 else 'have'} no {shown}, which {count(most, 'other rank')} have",
            ("rank_list", rows[0], "level_list"),
            f"add {shown} to {who}: {_gen(subject, rows[0])}, as for a job of several nodes, prints it",
        )


def _apart(subject: Subject) -> Finding | None:
    """Return the finding on nodes that have no network instance in common with the first one, in any layer."""
    servers, levels = subject.table.servers, subject.table.column("level_list")
    if not all(levels):
        return None  # HCC463 reports a rank without layers.
    if len(layers_used(subject)) < 2 or not _not_joined(subject, (one.rows[:1] for one in servers)):
        return None  # Nodes with layer 0 alone, or a rank of each node shows that they are joined.
    odd = _not_joined(subject, (one.rows for one in servers))
    if not odd or 2 * len(odd) > len(servers):
        return None  # With many nodes apart the order of the networks is unknown.
    rows = [row for index in odd for row in servers[index].rows]
    others = [row for index in range(len(servers)) if index not in odd for row in servers[index].rows]
    row = rows[0]
    place = len(levels[row]) - 1
    layer = levels[row][place]["net_layer"]
    seen = levels[others[0]][-1]
    is_same = place > 0 and seen["net_layer"] == layer
    right = (
        f"write the same net_instance_id in layer {layer} of all ranks, such as {quoted(seen['net_instance_id'])}, if one "
        f"network connects them: {_gen(subject, row)} shows it"
        if is_same
        else f"add the layer that connects the nodes to {_ranks(subject, rows)}: {_gen(subject, row)}, as for a job of several "
        "nodes, prints it"
    )
    return Finding(
        f"{_ranks(subject, rows)} and {_ranks(subject, others)} have no common network instance in any layer: they cannot "
        "communicate",
        ("rank_list", row, "level_list", place, "net_instance_id"),
        right,
        (
            Related(
                ("rank_list", others[0], "level_list", len(levels[others[0]]) - 1, "net_instance_id"),
                "the network of the others",
            ),
        ),
    )


def _not_joined(subject: Subject, rows_of: Iterable[Iterable[int]]) -> set[int]:
    """Return the nodes that no chain of network instances joins with the largest group of nodes."""
    levels = subject.table.column("level_list")
    group_of, first_of = list[int](), dict[tuple[int | None, str], int]()

    def root(node: int) -> int:
        while group_of[node] != node:
            group_of[node] = node = group_of[group_of[node]]
        return node

    for node, rows in enumerate(rows_of):
        group_of.append(node)
        for row in rows:
            for level in levels[row]:
                key = read_integer(level["net_layer"]), level["net_instance_id"]
                group_of[root(node)] = root(first_of.setdefault(key, node))
    roots = [root(node) for node in range(len(group_of))]
    largest = Counter(roots).most_common(1)[0][0]
    return {node for node, one in enumerate(roots) if one != largest}


@rule("HCC636", "mixed-addr-types", "advice", source=_SOURCE)
def mixed_addr_types(subject: Subject) -> Iterator[Finding]:
    """Ranks have addresses of other types in a network instance than most ranks of it, such as IPV4 beside EID.

    Base: 2.0 1x4
    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "EID"; /rank_list/0/level_list/0/rank_addr_list/0/addr = "000000000000002000100000dfdf0001"
    Instead: table
    Hint: write addresses of the type IPV4 for rank 0: `hccl-tools gen` on node0 prints them
    """
    if len(address_types(subject)) < 2:
        return
    if not address_types(subject) <= V2_CHECKS.keys():
        return  # HCC455 reports a type that is unknown.
    types: dict[tuple[int | None, str], Counter[tuple[str, ...]]] = {}
    places: dict[tuple[int | None, str, tuple[str, ...]], list[tuple[int, int]]] = {}
    for row, levels in enumerate(subject.table.column("level_list")):
        for place, level in enumerate(levels):
            entries = level["rank_addr_list"]
            own = tuple(
                sorted({one["addr_type"] for one in entries if V2_CHECKS[one["addr_type"]](one["addr"])})
            )
            key = (read_integer(level["net_layer"]), level["net_instance_id"])
            types.setdefault(key, Counter())[own] += 1
            places.setdefault((*key, own), []).append((row, place))
    for key, times in types.items():
        usual = max(times, key=lambda own: (times[own], own))
        for own in times:
            if own == usual or not own or not usual or times[usual] < 2 * times[own]:
                continue
            found = places[(*key, own)]
            row, place = found[0]
            who = _ranks(subject, [row for row, _ in found])
            other = places[(*key, usual)][0]
            yield Finding(
                f"{who} {'has' if len(found) == 1 else 'have'} addresses of the type {' and '.join(own)} in network instance "
                f"{quoted(key[1])} of layer {key[0]}, and {count(times[usual], 'other rank')} of the type {' and '.join(usual)}",
                ("rank_list", row, "level_list", place, "rank_addr_list"),
                f"write addresses of the type {' and '.join(usual)} for {who}: {_gen(subject, row)} prints them",
                (
                    Related(
                        ("rank_list", other[0], "level_list", other[1], "rank_addr_list"),
                        "those of the others",
                    ),
                ),
            )


@rule(
    "HCC637",
    "several-ports-in-one",
    "advice",
    source="a port is the die and the port of it, as in 0/4; HCCL takes each text for one port (address_info.cc:77-92)",
)
def several_ports_in_one(subject: Subject) -> Iterator[Finding]:
    """A port is a text with several ports, which HCCL takes for one port.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["0/4,0/5"]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["0/4", "0/5"]
    Hint: write a text for each port: "0/4", "0/5"
    """
    several = {port for port in all_ports(subject) if _BETWEEN_PORTS.search(port)}
    alike: tuple[str, str] | None = None
    for path, entry in each_address(subject) if several else ():
        for index, port in enumerate(entry["ports"]):
            if port in several:
                parts = ", ".join(f'"{part}"' for part in re.split(r"[,; |]+", port) if part)
                hint = f"write a text for each port: {parts}"
                alike = alike or ("ports are several ports in one text", hint)
                yield Finding(
                    f"port {quoted(port)} is several ports in one text",
                    (*path, "ports", index),
                    hint,
                    alike=alike,
                )


#: The most ranks of a table whose addresses are compared with the order of the others, one address after the other.
_MOST_RANKS = 4096


@rule("HCC644", "level-addresses-outside-order", "advice", needs=("device_id",), source=_SOURCE)
def level_addresses_outside_order(subject: Subject) -> Iterator[Finding]:
    """The addresses of a few ranks do not follow the order of all others: those of two ranks are probably exchanged.

    The addresses of one rank may also be exchanged among themselves, or have a mistyped digit, and two nodes may have the
    addresses of each other. Tables with more than 4,096 ranks are not examined.

    Base: 2.0 3x4
    Example: /rank_list/5/level_list/0/rank_addr_list/0/addr = "10.0.1.7"; /rank_list/6/level_list/0/rank_addr_list/0/addr = "10.0.1.6"
    Instead: table
    Hint: `hccl-tools gen` on node1 prints the addresses of ranks 5-6: if they are others than here, exchange those of these ranks in layer 0
    """
    groups: dict[_Event, dict[Any, tuple[Any, ...]]] = {}
    single: dict[tuple[int, int], list[Outside]] = {}
    nodes, paths = dict[Any, list[list[int]]](), dict[Any, tuple[Any, ...]]()
    for layer, place, entries in _columns(subject):
        found = [number_of(entry) for entry in entries]
        numbers = [] if None in found else [number or 0 for number in found]
        order = order_of(subject, numbers, is_steady=True) if numbers else None
        moved = moved_rows(subject, numbers, is_steady=True) if numbers else None
        if moved is not None:
            groups.setdefault(_Event(tuple(moved.rows), moved.step, moved.is_half), {}).setdefault(
                layer, place
            )
        if order is None or moved is not None:
            continue
        paths.setdefault(layer, place)
        nodes.setdefault(layer, []).append(
            [order.first.get(one, 0) for one in range(len(subject.table.servers))]
        )
        for rows in order.groups:
            groups.setdefault(_Event(tuple(rows)), {}).setdefault(layer, place)
        for row in order.single:
            outside = Outside(place, numbers[row], order.expected[row])
            single.setdefault((row, place[1]), []).append(outside)
    yield from within_ranks(subject, single)
    yield from displaced_nodes(subject, nodes, paths) if not groups else ()
    ids = subject.table.column("local_id"), subject.table.column("device_id")
    for event, layers in groups.items():
        if all(ids[0][row] != ids[1][row] for row in event.rows):
            continue  # HCC648 reports the ids.
        yield _of_event(subject, event, layers)


class _Event(NamedTuple):
    """Ranks that have the addresses of each other; see ``MovedRows``."""

    rows: tuple[int, ...]
    step: int = 0
    is_half: bool = False


def _of_event(subject: Subject, event: _Event, layers: dict[Any, tuple[Any, ...]]) -> Finding:
    rows, path = event.rows, next(iter(layers.values()))
    who, where = _ranks(subject, rows), " and ".join(f"layer {layer}" for layer in layers)
    what = f"they are probably {'exchanged' if not event.step else 'moved by one rank'}"
    remedy = f"exchange those of these ranks in {where}"
    if event.step:
        way, ends = ("down", "last rank to the first") if event.step > 0 else ("up", "first rank to the last")
        remedy = f"move those of these ranks in {where} {way} by one rank, those of the {ends} one"
    elif event.is_half:
        owner = subject.table.server_of_row
        rest = {row for server in {owner[row] for row in rows} for row in subject.table.servers[server].rows}
        others = _ranks(subject, rest - {*rows})
        what = f"probably either they are exchanged, or those of {others}"
        remedy += f"; else do so with {others}"
    return Finding(
        f"the addresses of {who} in {where} do not follow the order of all others: {what}",
        ("rank_list", rows[0], *path),
        f"{_gen(subject, rows[0])} prints the addresses of {who}: if they are others than here, {remedy}",
        tuple(Related(("rank_list", row, *path), "and here") for row in rows[1:_MOST_ODD]),
    )


def _columns(subject: Subject) -> Iterator[tuple[Any, tuple[Any, ...], list[dict[str, Any]]]]:
    """Yield the addresses of all ranks at the same place of their levels, with the layer and the place."""
    levels = subject.table.column("level_list")
    if len(levels) > _MOST_RANKS:
        return
    shapes = {tuple((level["net_layer"], len(level["rank_addr_list"])) for level in own) for own in levels}
    if len(shapes) != 1:
        return
    for index, (layer, size) in enumerate(shapes.pop()):
        for place in range(size):
            path = ("level_list", index, "rank_addr_list", place, "addr")
            yield layer, path, [own[index]["rank_addr_list"][place] for own in levels]
