"""The pings between the devices of a table as matrices, below those of ``show -f matrix``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.show import matrix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.doctor.ping_results import Measured
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

    Pairs = dict[tuple[int, int], list[Measured]]

#: The greatest number of pairs of servers with lost packets whose devices are listed.
_MOST_PAIRS = 16


def render(
    table: RankTable, product: Product, found: Iterable[Measured], *, ascii_only: bool = False
) -> Iterator[str]:
    """Yield the text: the links that the table states, then what the pings found.

    Raises:
        TableError: A server has too many devices for a matrix.
    """
    for line in _lines(table, product, list(found)):
        yield escaped(line, keep="\t", ascii_only=ascii_only) + "\n"


def _lines(table: RankTable, product: Product, found: Sequence[Measured]) -> Iterator[str]:
    yield from matrix.lines(table, product, range(len(table.servers)))
    pairs: Pairs = defaultdict(list)
    for one in found:
        if one.source >= 0:
            pairs[one.source, one.target].append(one)
    lossy = {
        ends: own for ends, own in pairs.items() if any(one.answer.received < one.answer.sent for one in own)
    }
    yield ""
    if not pairs:
        yield "no device was pinged"
    elif len(table.servers) <= matrix.MOST_ROWS:
        yield "pings answered"
        yield from _servers(table, pairs)
    else:
        yield f"pings answered: {_share(found)}, lost packets between {count(len(lossy), 'pair')} of servers"
    for (source, target), own in list(lossy.items())[:_MOST_PAIRS]:
        yield ""
        yield f"packets received from {table.servers[target].server_id} by {table.servers[source].server_id}"
        yield from _devices(own)
    if len(lossy) > _MOST_PAIRS:
        yield f"... and {count(len(lossy) - _MOST_PAIRS, 'more pair')} of servers; the findings name all"
    yield ""
    yield from matrix.legend(
        "pings    = from the row to the column: n/m is n of m, - is none sent",
        f"product: {product.name}",
    )


def _share(own: Sequence[Measured]) -> str:
    """Return how many of some pings were answered, at least in part."""
    return f"{sum(one.answer.received > 0 for one in own):,}/{len(own):,}"


def _servers(table: RankTable, pairs: Pairs) -> Iterator[str]:
    indices = range(len(table.servers))
    cells = [
        [
            "X" if one == other else _share(pairs[one, other]) if (one, other) in pairs else "-"
            for other in indices
        ]
        for one in indices
    ]
    texts = [matrix.server_text(table, [index]) for index in indices]
    yield from matrix.square([f"S{index}" for index in indices], cells, ("Server", texts))


def _devices(own: Sequence[Measured]) -> Iterator[str]:
    numbers = sorted({end for one in own for end in (one.device, one.peer)})
    found = {(one.device, one.peer): f"{one.answer.received}/{one.answer.sent}" for one in own}
    cells = [[found.get((device, peer), "-") for peer in numbers] for device in numbers]
    yield from matrix.square([f"NPU{number}" for number in numbers], cells)
