"""The links of a table as a matrix, in the shape of ``npu-smi info -t topo``.

A server is one matrix. Several servers have a matrix each, equal ones once, and a matrix of the links between
servers. With many servers those with equal links are one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError
from hccl_tools.notation import screen
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.table.links import MEANINGS, SELF, Links

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The greatest number of servers, or of kinds of servers, that have a row of their own.
MOST_ROWS = 16
#: The greatest number of devices of a server: no machine has as many.
MOST_DEVICES = 128
#: The width of a column, as of npu-smi.
_WIDTH = 11


class _Row(NamedTuple):
    """A row of the matrix of servers: indices of servers with equal links to all others."""

    key: Any
    indices: list[int]


def lines(table: RankTable, product: Product, indices: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the matrices of some servers, without the legend.

    Raises:
        TableError: A server has more than ``MOST_DEVICES`` devices.
    """
    _require_sizes(table, indices)
    links = Links(table, product)
    for position, (same, rows) in enumerate(_different(table, links, indices)):
        if len(indices) > 1:
            if position:
                yield ""
            yield _heading(table, same)
        yield from square(_names(table, rows), links.within(rows))
    if len(indices) > 1:
        yield ""
        yield "between servers"
        yield from _between(table, links, indices)


def legend(*notes: str) -> Iterator[str]:
    """Yield the lines that explain the words of a matrix, and notes."""
    yield "Legend:"
    meanings = [f"  {word:<5}= {meaning}" for word, meaning in MEANINGS.items()]
    for line in (*meanings, "  NPUn = the device with the physical id n"):
        yield from screen.wrapped(line, screen.width(), " " * 9)
    yield from screen.each_fitted((f"  {note}" for note in notes), screen.width())


def _require_sizes(table: RankTable, indices: Sequence[int]) -> None:
    for index in indices:
        if (size := len(table.servers[index].rows)) > MOST_DEVICES:
            raise TableError(
                f"server {table.servers[index].server_id} has {size:,} devices, too many for a matrix",
                hint=f"a matrix has at most {MOST_DEVICES} devices; use -f text",
            )


def _different(
    table: RankTable, links: Links, indices: Sequence[int]
) -> list[tuple[list[int], Sequence[int]]]:
    """Return the servers with equal links inside, and the rows of the first of them by device id."""
    found: dict[Any, tuple[list[int], Sequence[int]]] = {}
    numbers = table.device_numbers
    for index in indices:
        rows = sorted(table.servers[index].rows, key=lambda row: (numbers[row] is None, numbers[row], row))
        found.setdefault(links.inner_key(rows), ([], rows))[0].append(index)
    return list(found.values())


def _heading(table: RankTable, same: Sequence[int]) -> str:
    others = f" and {count(len(same) - 1, 'more server')}" if len(same) > 1 else ""
    return f"{table.servers[same[0]].server_id}{others}"


def _names(table: RankTable, rows: Sequence[int]) -> list[str]:
    return [
        f"NPU{'?' if number is None else number}" for number in map(table.device_numbers.__getitem__, rows)
    ]


def _between(table: RankTable, links: Links, indices: Sequence[int]) -> Iterator[str]:
    keys = [(index, links.server_key(table.servers[index])) for index in indices]
    if len(indices) <= MOST_ROWS:
        rows = [_Row(key, [index]) for index, key in keys]
    else:
        of_key: dict[Any, list[int]] = {}
        for index, key in keys:
            of_key.setdefault(key, []).append(index)
        rows = [_Row(key, own) for key, own in of_key.items()]
    shown = rows[:MOST_ROWS]
    cells = [[_cell(links, one, other) for other in shown] for one in shown]
    names = [_name(row.indices) for row in shown]
    yield from square(names, cells, ("Server", [server_text(table, row.indices) for row in shown]))
    if len(rows) > len(shown):
        yield f"... {len(rows) - len(shown):,} more rows, each with other links; --server ID shows one server"


def _cell(links: Links, one: _Row, other: _Row) -> str:
    if one is other and len(one.indices) == 1:
        return SELF
    return links.between(one.key, other.key)


def _name(indices: Sequence[int]) -> str:
    name = "S" + fold(indices)
    return name if len(name) < 2 * _WIDTH else f"S{indices[0]},..."


def server_text(table: RankTable, indices: Sequence[int]) -> str:
    """Return the name of the first of some servers, and the ranks of all of them."""
    ranks = table.rank_numbers
    own = (ranks[row] for index in indices for row in table.servers[index].rows)
    known = fold(sorted(rank for rank in own if rank is not None))
    listed = known if len(known) <= 2 * _WIDTH else f"{known[: 2 * _WIDTH].rpartition(',')[0]},..."
    name = table.servers[indices[0]].server_id
    others = f" and {len(indices) - 1:,} more" if len(indices) > 1 else ""
    return f"{name}{others}, ranks {listed}"


def square(
    names: Sequence[str], cells: Sequence[Sequence[str]], last: tuple[str, Sequence[str]] | None = None
) -> Iterator[str]:
    """Yield a header line that begins with a tab and three spaces, as that of npu-smi, and the rows.

    On a narrower screen, the columns are narrower, and those that do not fit have blocks of their own below.
    """
    longest = max([0, *map(len, names), *(len(cell) for row in cells for cell in row)])
    width = max(_WIDTH, longest + 2)
    title, texts = last or ("", [""] * len(names))
    room = screen.width()
    needed = width * (len(names) + 1) + max([len(title), *map(len, texts)])
    if room is not None and needed > room:
        yield from _blocks(names, cells, [title, *texts], longest + 1, room)
        return
    header = "".join(name.ljust(width) for name in names) + title
    yield "\t" + " " * (width - 8) + header.rstrip()
    for name, row, text in zip(names, cells, texts, strict=True):
        yield (name.ljust(width) + "".join(cell.ljust(width) for cell in row) + text).rstrip()


def _blocks(
    names: Sequence[str], cells: Sequence[Sequence[str]], last: Sequence[str], width: int, room: int
) -> Iterator[str]:
    """Yield the matrix with as many columns beside each other as a screen has room for."""
    columns = [[name, *(row[place] for row in cells)] for place, name in enumerate(names)]
    rows = ["", *names]
    widths = [width] * len(columns)
    if any(last):
        columns, widths = [*columns, list(last)], [*widths, max(map(len, last))]
    start = 0
    while start < len(columns):
        end, used = start, width
        while end < len(columns) and (end == start or used + widths[end] <= room):
            used += widths[end]
            end += 1
        if start:
            yield ""
        for place, name in enumerate(rows):
            parts = [column[place].ljust(width) for column in columns[start:end]]
            yield (name.ljust(width) + "".join(parts)).rstrip()
        start = end
