"""Nodes of a 2.0 table that are in rank_list again with other ranks (HCC334). This module declares no rules.

A loop over hosts, or a pasted block, writes all ranks of a node twice. The copy stands for nothing, or for a node that is
missing. Devices that the node does not have are never the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import listed_parts
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.levels import local_numbers
from hccl_tools.rules.moved_entries import right_devices
from hccl_tools.rules.rank_graph import has_first_layer
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

_MOST_NAMED = 4
#: The fewest nodes whose names show an order.
_LEAST_NUMBERED = 2
_COMPARED = frozenset({"device_id", "level_list", "local_id", "rank_id"})


class NodeAgain(NamedTuple):
    """A node of which all ranks are listed again.

    Attributes:
        node: The index of the node.
        again: The rows of the copies, each with the row that it repeats.
    """

    node: int
    again: dict[int, int]


@shared
def nodes_again(subject: Subject) -> list[NodeAgain]:
    """Return the nodes whose ranks repeat the ids and levels of all ranks before them in the same node.

    The devices that are listed once are those of a whole machine, or of another node: so no device of the node is missing.
    """
    if len({*subject.table.rank_numbers}) < len(subject.table):
        return []  # A remedy that keeps the ranks needs ranks of their own.
    ids, devices, levels = local_numbers(subject), right_devices(subject), subject.table.column("level_list")
    servers, found = subject.table.servers, list[NodeAgain]()
    own_sets = [
        frozenset(zip(map(ids.__getitem__, one.rows), map(devices.__getitem__, one.rows), strict=True))
        for one in servers
    ]
    once = {own for own, one in zip(own_sets, servers, strict=True) if len(own) == len(one.rows)}
    for index, (own, server) in enumerate(zip(own_sets, servers, strict=True)):
        size, rows = len(own), server.rows
        if size == len(rows) or len(rows) % size or not has_first_layer(levels[rows[0]]):
            continue
        again = {row: rows[place % size] for place, row in enumerate(rows) if place >= size}
        is_same = all(
            ids[row] == ids[seen] and devices[row] == devices[seen] and levels[row] == levels[seen]
            for row, seen in again.items()
        )
        is_whole = own in once or size in WHOLE_MACHINES
        if is_same and is_whole and levels[rows[0]][0].get("rank_addr_list"):
            found.append(NodeAgain(index, again))
    return found


def ranks_again(subject: Subject, found: Sequence[NodeAgain]) -> Finding:
    """Return the finding on nodes that are listed again."""
    (row, seen), *_ = _rows_again(found).items()
    message, remedy = _said(subject, found)
    return Finding(
        message,
        ("rank_list", row, "rank_id"),
        remedy,
        (Related(("rank_list", seen, "rank_id"), "the first of the two"),),
    )


def counted_once(subject: Subject) -> tuple[str, str] | None:
    """Return what is said of nodes that are listed again and that rank_count counts once; None if there are none."""
    if subject.table.format != "2.0" or not subject.damaged.isdisjoint(_COMPARED):
        return None
    declared, found = (subject.table.declared or {}).get("rank_count"), nodes_again(subject)
    if not found or declared != len(subject.table) - len(_rows_again(found)):
        return None
    return _said(subject, found)


def _rows_again(found: Sequence[NodeAgain]) -> dict[int, int]:
    return {row: seen for one in found for row, seen in one.again.items()}


def _said(subject: Subject, found: Sequence[NodeAgain]) -> tuple[str, str]:
    """Return message and hint on nodes that are listed again."""
    numbers, servers, again = subject.table.rank_numbers, subject.table.servers, _rows_again(found)
    own, others = (
        rank_list(sorted({number for row in rows if (number := numbers[row]) is not None}))
        for rows in (again.keys(), again.values())
    )
    names = listed_parts([quoted(servers[one.node].server_id[:64]) for one in found], _MOST_NAMED)
    message = (
        f"{own} {'is' if len(again) == 1 else 'are'} {others} again (node{'' if len(found) == 1 else 's'} {names}): device_id, "
        "local_id and addresses are the same, and only the rank_id differs"
    )
    return message, f"remove {own}{_counted(subject, again)}; {_instead(subject, found, own)}"


def _counted(subject: Subject, again: dict[int, int]) -> str:
    """Return what changes with the removal of the copies: rank_count, and the ranks if a gap is left."""
    left, declared = len(subject.table) - len(again), (subject.table.declared or {}).get("rank_count")
    numbers = subject.table.rank_numbers
    rest = [numbers[row] for row in range(len(numbers)) if row not in again]
    changes = [] if declared == left else [f'write "rank_count": {left}']
    changes += [] if rest == [*range(left)] else ["number the ranks without a gap"]
    right = ": rank_count is then right" if declared == left else ""
    first = f", {changes.pop(0)}," if changes[1:] else ""
    return first + "".join(f" and {one}" for one in changes) + right


def _instead(subject: Subject, found: Sequence[NodeAgain], own: str) -> str:
    """Return what to do if the ranks stand for other nodes, which are missing."""
    servers, name = subject.table.servers, _missing_name(subject, found)
    is_one = len(found) == 1 and 2 * len(found[0].again) == len(servers[found[0].node].rows)
    others, whose, host = (
        ("another node is", "its", "on it") if is_one else ("other nodes are", "their", "on each")
    )
    likely = ""
    if name is not None:
        likely, host = f" (by the order of the others, it can be {quoted(name)})", f"on {shown_host(name)}"
    what = f"{whose} net_instance_id in layer 0 and {whose} addresses in {own} (`hccl-tools gen` {host} prints them)"
    size = len(subject.table)
    count = (
        "" if (subject.table.declared or {}).get("rank_count") == size else f', write "rank_count": {size}'
    )
    return f"only if {others} in the job and missing here{likely}, write {what}{count}, and keep the ranks"


def _missing_name(subject: Subject, found: Sequence[NodeAgain]) -> str | None:
    """Return the name of the only node that can be missing, if the names of all nodes are numbered without another gap."""
    table, (node, again) = subject.table, found[0]
    names = [server.server_id for server in table.servers]
    ends = [one for name in names if (one := number_at_end(name)) is not None]
    if len(found) > 1 or 2 * len(again) != len(table.servers[node].rows) or len(names) < _LEAST_NUMBERED:
        return None
    begin = ends[0][0] if ends else ""
    numbers = {number for _, number in ends}
    if names != [f"{begin}{number}" for _, number in ends] or len(numbers) < len(names):
        return None  # Other names, or numbers that are padded with zeros.
    first, end = min(numbers), max(numbers) + 1
    if end - first == len(numbers) and max(again) == len(table) - 1:
        return f"{begin}{end}"
    return f"{begin}{sum(range(first, end)) - sum(numbers)}" if end - first == len(numbers) + 1 else None
