"""Rules on the network levels of 2.0 tables that HCCL's parser accepts, and its rank graph then rejects.

HCCL builds the rank graph from the table and the topology file when it creates a communicator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.exchanged_layers import exchanged_finding, exchanged_layers, out_of_order
from hccl_tools.rules.levels import all_levels, each_level
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What HCCL takes for a level without net_type.
DEFAULT_TYPE = "CLOS"
FIRST_TYPE = "TOPO_FILE_DESC"
#: The net_types that the parser knows and for which the rank graph has no network instance.
_UNSUPPORTED = frozenset({"1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER"})


def type_of(level: dict[str, Any]) -> str:
    """Return the net_type of a level as HCCL reads it."""
    kind: str = level.get("net_type", DEFAULT_TYPE)
    return kind


def has_first_layer(levels: list[dict[str, Any]]) -> bool:
    """Whether a rank has layer 0 as its first level; HCCL refuses levels in another order."""
    return bool(levels) and read_integer(levels[0]["net_layer"]) == 0


@shared
def first_layer_types(subject: Subject) -> dict[str, dict[str, int]]:
    """Return the net_types on layer 0 of each network instance, each with its first row."""
    column = subject.table.column("level_list")
    found: dict[str, dict[str, int]] = {}
    if all_begin_with_layer_0(subject):
        servers = subject.table.servers  # Their ranks have these first network instances.
        different = {levels[0].get("net_type", DEFAULT_TYPE) for levels in column}
        if len(different) == 1:
            return {server.server_id: dict.fromkeys(different, server.rows[0]) for server in servers}
        for server in servers:
            kinds = [column[row][0].get("net_type", DEFAULT_TYPE) for row in server.rows]
            found[server.server_id] = {kind: server.rows[kinds.index(kind)] for kind in dict.fromkeys(kinds)}
        return found
    for row, levels in enumerate(column):
        if has_first_layer(levels):
            found.setdefault(levels[0]["net_instance_id"], {}).setdefault(type_of(levels[0]), row)
    return found


@shared
def all_begin_with_layer_0(subject: Subject) -> bool:
    """Whether layer 0 is the first level of every rank."""
    column = subject.table.column("level_list")
    return {levels[0]["net_layer"] if levels else None for levels in column} == {0}


@rule("HCC463", "no-first-layer", "fails-later", source="rank_graph.cc:73")
def no_first_layer(subject: Subject) -> Iterator[Finding]:
    """A rank has no level with net_layer 0, which HCCL's rank graph needs for every rank.

    Example: /rank_list/0/level_list = []
    Instead: table
    Hint: add the level with net_layer 0: the addresses of the device inside its node
    """
    if all_begin_with_layer_0(subject):
        return
    for row, levels in enumerate(subject.table.column("level_list")):
        if not any(read_integer(level["net_layer"]) == 0 for level in levels):
            found = f"begins with layer {levels[0]['net_layer']}" if levels else "has no network level"
            yield Finding(
                f"{subject.rank_name(row)} {found}; HCCL needs layer 0 of every rank",
                ("rank_list", row, "level_list"),
                "add the level with net_layer 0: the addresses of the device inside its node",
            )


@rule("HCC464", "unsupported-net-type", "fails-later", source="rank_graph.cc:43, rank_graph_builder.cc:390")
def unsupported_net_type(subject: Subject) -> Iterator[Finding]:
    """A level has a net_type that HCCL's parser knows and its rank graph does not support.

    1DMESH, 2DMESH, A3_SERVER and A2_AX_SERVER fail on every layer. TOPO_FILE_DESC fails on the layers from 1 on,
    although the guide allows it there.

    Example: /rank_list/0/level_list/0/net_type = "1DMESH"
    Instead: /rank_list/0/level_list/0/net_type = "TOPO_FILE_DESC"
    Hint: write TOPO_FILE_DESC on layer 0
    """
    kinds = {(level.get("net_type", DEFAULT_TYPE), level["net_layer"]) for level in all_levels(subject)}
    if kinds <= {(FIRST_TYPE, 0), *((DEFAULT_TYPE, layer) for layer in range(8))}:
        return
    exchanged, disordered = exchanged_layers(subject), out_of_order(subject)
    for path, level in each_level(subject):
        kind, layer = type_of(level), read_integer(level["net_layer"])
        if kind == FIRST_TYPE and (row := int(path[1])) in exchanged:
            if row not in disordered:  # Else HCC451 reports it.
                yield exchanged_finding(subject, row)
            continue
        if kind in _UNSUPPORTED or (kind == FIRST_TYPE and layer != 0):
            yield Finding(
                f"HCCL cannot create a communicator with net_type {kind} on layer {layer}",
                (*path, "net_type"),
                f"write {FIRST_TYPE if layer == 0 else DEFAULT_TYPE} on layer {layer}",
            )


@rule("HCC465", "mixed-first-layer", "fails-later", source="rank_graph.cc:73")
def mixed_first_layer(subject: Subject) -> Iterator[Finding]:
    """The ranks of one network instance have different net_types on layer 0.

    HCCL takes the type of the first rank for the instance, and rejects the ranks with another one.

    Example: /rank_list/1/level_list/0/net_type = "CLOS"
    Instead: table
    Hint: write the same net_type for all ranks of the instance
    """
    for name, rows in first_layer_types(subject).items():
        (first, where), *others = rows.items()
        for kind, row in others:
            if row in exchanged_layers(subject):
                continue  # HCC451 or HCC464 reports it.
            related = (Related(("rank_list", where, "level_list", 0), f"net_type {first} here"),)
            yield Finding(
                f"layer 0 of network instance {quoted(name)} has net_type {kind}; its first rank has {first}",
                ("rank_list", row, "level_list", 0),
                "write the same net_type for all ranks of the instance",
                related,
            )
