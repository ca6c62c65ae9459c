"""The links of a table for the page: devices and servers with equal links share a class.

The links of 65,536 devices to each other are four thousand million; those of the classes are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.show.picture.buses import buses
from hccl_tools.show.picture.scene import MOST_DEVICES
from hccl_tools.table.links import MEANINGS, Links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The greatest numbers of classes; the links of further ones are not in the page.
_MOST_INNER, _MOST_OUTER = 64, 128
#: The class of what is left out.
_NONE = -1
_WORDS = tuple(MEANINGS)


def link_classes(table: RankTable, product: Product, rows_of: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the links of some servers, ready for JSON.

    Args:
        rows_of: The rows of each server, in the order in which the page shows them.

    Returns:
        ``words``: the links with their meanings. ``inner``: for each class of servers a line of digits per
        device, each the index of a word, and the sets of devices that a link joins. ``innerOf``: the class of
        each server. ``outerOf``: the class of each device. ``across``: a line of digits per class of devices,
        or null.
    """
    links = Links(table, product)
    inner: dict[Any, int] = {}
    matrices: list[dict[str, Any]] = []
    inner_of = []
    for rows in rows_of:
        key = links.inner_key(rows) if len(rows) <= MOST_DEVICES else None
        if key is not None and key not in inner and len(inner) < _MOST_INNER:
            inner[key] = len(inner)
            words = links.within(rows)
            joined = [[_WORDS.index(bus.kind), bus.places] for bus in buses(words)]
            matrices.append({"words": [_digits(line) for line in words], "joined": joined})
        inner_of.append(inner.get(key, _NONE))
    outer: dict[Any, int] = {}
    outer_of = [outer.setdefault(links.outer_key(row), len(outer)) for rows in rows_of for row in rows]
    across = None
    if len(outer) <= _MOST_OUTER:
        across = [_digits([links.across(one, other) for other in outer]) for one in outer]
    return {
        "words": [[word, meaning] for word, meaning in MEANINGS.items()],
        "inner": matrices,
        "innerOf": shared(inner_of),
        "outerOf": shared(outer_of) if across is not None else None,
        "across": across,
    }


def _digits(words: Sequence[str]) -> str:
    return "".join(str(_WORDS.index(word)) for word in words)


def shared(values: list[Any]) -> Any:
    """Return the one value that all are equal to, else the list."""
    return values[0] if values and values.count(values[0]) == len(values) else values
