"""Nodes of a 2.0 table whose ranks have the addresses of another node (HCC644). This module declares no rules.

The addresses of a cluster are numbered as its nodes are. If those of one layer have another order than the nodes and the
other layers, they are exchanged; if those of all layers have, the names of the nodes may be exchanged instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import listed_parts
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.registry import Finding
from hccl_tools.rules.server_places import LEAST_SERVERS, Displaced, displaced, host_numbers, owners_by_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.rules.registry import Subject

#: The most nodes that a finding names, and the fewest steps between the addresses of two nodes that are numbered one by one.
_MOST_NAMED, _LEAST_STEP = 8, 256


def displaced_nodes(
    subject: Subject, columns: Mapping[Any, Sequence[Sequence[int]]], paths: Mapping[Any, tuple[Any, ...]]
) -> Iterator[Finding]:
    """Yield the finding on nodes that have the addresses of other nodes.

    Args:
        columns: For each layer, the numbers that the nodes add to those of their devices, for each place of an address.
        paths: The path of the first address of each layer in a rank.
    """
    hosts = host_numbers(subject)
    if hosts is None or len(hosts) < 2:
        return
    owners = {layer: _owner(hosts, bases) for layer, bases in columns.items()}
    wrong = {layer: owner for layer, owner in owners.items() if owner not in (None, [*range(len(hosts))])}
    orders = {tuple(owner or ()) for owner in wrong.values()}
    if len(orders) != 1 or None in owners.values() or (found := displaced(orders.pop())) is None:
        return
    is_whole = len(wrong) == len(owners)
    if len(hosts) < LEAST_SERVERS and not _are_numbered(hosts, columns):
        return
    yield _finding(subject, found, {layer: paths[layer] for layer in wrong}, is_whole=is_whole)


def _owner(hosts: Sequence[int], columns: Sequence[Sequence[int]]) -> list[int] | None:
    """Return for each node the one to which its addresses of a layer belong; None if they are not numbered as the nodes are."""
    found = [owners_by_order(hosts, bases) for bases in columns]
    return found[0] if found and all(one == found[0] for one in found) else None


def _are_numbered(hosts: Sequence[int], columns: Mapping[Any, Sequence[Sequence[int]]]) -> bool:
    """Return whether few nodes are numbered one by one, and all their addresses have the same distance, a power of two."""
    steps = {(max(bases) - min(bases)) // (len(hosts) - 1) for own in columns.values() for bases in own}
    (step, *others) = steps
    is_power = step >= _LEAST_STEP and step & (step - 1) == 0
    return not others and is_power and max(hosts) - min(hosts) == len(hosts) - 1


def _finding(
    subject: Subject, found: Displaced, paths: Mapping[Any, tuple[Any, ...]], *, is_whole: bool
) -> Finding:
    servers = subject.table.servers
    names = [quoted(servers[index].server_id[:64]) for index in found.right]
    where = " and ".join(f"layer {layer}" for layer in paths)
    node = next(iter(found.right))
    holder = next(one for one, right in found.right.items() if right == node)
    what = "exchanged" if len(found.right) == 2 else "moved by one node" if found.step else "mixed up"
    rank, other = (subject.rank_name(servers[index].rows[0]) for index in (node, holder))
    gen = f"`hccl-tools gen` on {shown_host(servers[node].server_id)} prints the addresses of its ranks"
    path = next(iter(paths.values()))
    rows = [servers[index].rows[0] for index in found.right]
    remedy = (
        f"exchange the addresses of the ranks of these nodes in {where}, each with those of the same local_id"
    )
    if is_whole:
        said = (
            f": probably either the addresses are {what}, or the net_instance_ids of these nodes in layer 0"
        )
        remedy = f"either {remedy}, so that each rank stays on its node, or exchange the net_instance_ids, so that each rank keeps its addresses"
    else:
        said = f", which the other layers do: they are probably {what}"
    return Finding(
        f"the addresses of nodes {listed_parts(names, _MOST_NAMED)} in {where} do not follow the order of the nodes{said}",
        ("rank_list", rows[0], *path),
        f"{gen}: if it prints those that {other} has here, and not those of {rank}, {remedy}",
        tuple(Related(("rank_list", row, *path), "and here") for row in rows[1:_MOST_NAMED]),
    )
