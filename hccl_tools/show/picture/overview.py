"""The strip below a folded picture: one small cell per server, so that the whole job is seen at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.show.picture.marks import KINDS
from hccl_tools.show.picture.places import LETTER, Rect
from hccl_tools.show.picture.svg_elements import add, box, symbol, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

    from hccl_tools.show.picture.boxes import Scene
    from hccl_tools.show.picture.marks import Note
    from hccl_tools.show.picture.svg_boxes import Badges
    from hccl_tools.table.model import RankTable

#: The greatest height of the strip.
_HEIGHT = 250.0
_TITLE, _BELOW = 16.0, 8.0
_MOST_CELLS = 1024
_LEAST_HEIGHT, _MOST_HEIGHT = 6.0, 30.0
#: The smallest cell that has a text.
_TEXT_HEIGHT = 13.0
#: The width of the symbol of a note, and the scale below which its number cannot be read.
_SYMBOL, _LEGIBLE = 16.0, 0.6


def height(servers: int, width: float) -> float:
    """Return the height of the strip for a number of servers."""
    cells = -(-servers // -(-servers // _MOST_CELLS))
    columns, _, tall = _cell_size(cells, width)
    return _TITLE + -(-cells // columns) * tall + _BELOW


def overview(root: ET.Element, table: RankTable, content: Scene, badges: Badges, area: Rect) -> None:
    """Add a cell for each server; with very many servers, a cell is several of them."""
    indices = content.servers
    per_cell = -(-len(indices) // _MOST_CELLS)
    cells = [indices[start : start + per_cell] for start in range(0, len(indices), per_cell)]
    group = add(root, "g")
    size = "each cell is a server" if per_cell == 1 else f"each cell is {count(per_cell, 'server')}"
    hidden = f"; {count(content.unseen, 'super pod')} not drawn above" if content.unseen else ""
    words = f"all {len(indices):,} servers with their ranks: {size}{hidden}"
    text(group, area.x, area.y + 10, words, "soft")
    columns, wide, tall = _cell_size(len(cells), area.width)
    for place, own in enumerate(cells):
        x = area.x + place % columns * wide
        y = area.y + _TITLE + place // columns * tall
        _cell(group, table, own, badges, Rect(x, y, wide - 2, tall - 2))


def _cell_size(number: int, width: float) -> tuple[int, float, float]:
    """Return how many cells are in a row, and the size of each: wide enough for ranks if possible."""
    for columns in (8, 12, 16, 20, 24, 32, 48, 64, 96, 128):
        tall = (_HEIGHT - _TITLE - _BELOW) / -(-number // columns)
        if tall >= (_TEXT_HEIGHT + 2 if columns <= 16 else _LEAST_HEIGHT):
            return columns, width / columns, min(tall, _MOST_HEIGHT)
    return 128, width / 128, (_HEIGHT - _TITLE - _BELOW) / -(-number // 128)


def _cell(group: ET.Element, table: RankTable, own: Sequence[int], badges: Badges, rect: Rect) -> None:
    rows = [row for index in own for row in table.servers[index].rows]
    ranks = fold(sorted(rank for row in rows if (rank := table.rank_numbers[row]) is not None))
    name = table.servers[own[0]].server_id
    notes = _notes(own, rows, badges)
    mark = notes[0].kind if notes else "silent" if badges.silent.issuperset(rows) else ""
    box(group, rect, f"npu {mark}".rstrip(), f"{name}\nranks {ranks}")
    scale = min(1, rect.height / 18)
    shown = notes[: max(1, int(rect.width / (_SYMBOL * scale)) - 1)]
    used = _SYMBOL * scale * len(shown)
    if rect.height >= _TEXT_HEIGHT and rect.width - used > 3 * LETTER:
        text(group, rect.x + 4, rect.y + rect.height / 2 + 3.5, ranks, "soft", room=rect.width - 6 - used)
    for place, note in enumerate(reversed(shown)):
        x = rect.x + rect.width - _SYMBOL * scale * (place + 0.5)
        words = str(note.number) if scale >= _LEGIBLE else ""
        symbol(group, x, rect.y + rect.height / 2, note.kind, words, scale=scale)


def _notes(own: Sequence[int], rows: Sequence[int], badges: Badges) -> list[Note]:
    """Return the notes on servers, their devices and their links, each once, the most important first."""
    found = [note for index in own for note in badges.of_server.get(index, ())]
    for row in rows:
        found += (*badges.of_row.get(row, ()), *badges.of_peer.get(row, ()))
    unique = {note.number: note for note in found}
    return sorted(unique.values(), key=lambda note: (KINDS.index(note.kind), note.number))
