"""To which of two ranks or nodes the addresses belong that both have in a 2.0 table. This module declares no rules.

The later one in the file is not more likely the wrong one: the order of the other ranks and nodes may say it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules.level_exchanges import number_of
from hccl_tools.rules.registry import shared_each
from hccl_tools.rules.value_order import order_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.value_order import Order

#: The most ranks of a table whose addresses are compared with the order of the others.
_MOST_RANKS = 4096
#: The fewest nodes whose addresses show how those of another node go on.
_LEAST_NODES = 2


class Pair(NamedTuple):
    """An address of two ranks: the rank that has it first in the file, the other one, and its places in both."""

    first: int
    later: int
    first_path: Path
    later_path: Path


def wrong_one(subject: Subject, pairs: Sequence[Pair]) -> str:
    """Return which ranks of pairs with the same addresses do not follow the order: "first", "later", or "" for unknown."""
    if len(subject.table) > _MOST_RANKS:
        return ""
    said = {_by_ranks(subject, pair) for pair in pairs}
    if len(said) == 1 and (found := said.pop()):
        return found
    return _by_nodes(subject, pairs)


def _values(subject: Subject, place: tuple[Any, Any]) -> list[int] | None:
    """Return the addresses of all ranks at a place of their levels as numbers; None if a rank has none there."""
    try:
        entries = [
            levels[place[0]]["rank_addr_list"][place[1]] for levels in subject.table.column("level_list")
        ]
    except IndexError:
        return None
    numbers = [number_of(entry) for entry in entries]
    return None if None in numbers else [number or 0 for number in numbers]


@shared_each
def _order(subject: Subject, place: tuple[Any, Any]) -> Order | None:
    """Return the order of the addresses at a place: the index of their level, and that in its list."""
    values = _values(subject, place)
    return None if values is None else order_of(subject, values, is_steady=True)


def _by_ranks(subject: Subject, pair: Pair) -> str:
    places = ((pair.first, pair.first_path), (pair.later, pair.later_path))
    orders = [_order(subject, (path[3], path[5])) for _, path in places]
    outside = [
        order is not None and (row in order.single or any(row in rows for rows in order.groups))
        for (row, _), order in zip(places, orders, strict=True)
    ]
    if outside[0] == outside[1]:
        return ""
    return "first" if outside[0] else "later"


def _by_nodes(subject: Subject, pairs: Sequence[Pair]) -> str:
    """Return which of two nodes with the same addresses is wrong, if the others are numbered on without it only."""
    owner, paths = subject.table.server_of_row, {(pair.first_path[3], pair.first_path[5]) for pair in pairs}
    one, other = owner[pairs[0].first], owner[pairs[0].later]
    values = _values(subject, min(paths))
    if one == other or values is None:
        return ""
    bases = [min(values[row] for row in server.rows) for server in subject.table.servers]
    sizes = [
        max(values[row] for row in server.rows) - base
        for server, base in zip(subject.table.servers, bases, strict=True)
    ]
    if bases[one] != bases[other]:
        return ""
    fits = [*map(partial(_fits_without, bases, max(sizes)), (one, other))]
    if fits[0] == fits[1]:
        return ""
    return "first" if fits[0] else "later"


def _fits_without(bases: Sequence[int], size: int, wrong: int) -> bool:
    """Return whether the other nodes are numbered on by one step, and leave a place for the wrong one."""
    rest = [(index, base) for index, base in enumerate(bases) if index != wrong]
    if len(rest) < _LEAST_NODES:
        return False
    (index, base), (last, end) = rest[0], rest[-1]
    step, left = divmod(end - base, last - index)
    if left or any(value != base + step * (place - index) for place, value in rest):
        return False
    return abs(step) > size
