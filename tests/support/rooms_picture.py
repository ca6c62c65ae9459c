"""The picture of the rooms in ``docs/architecture.md``, drawn from the imports.

Each row holds rooms that do not import each other. A line leads from a room to those it imports from; a line
that a longer way implies is left out, as are the lines into ``errors``, ``records`` and ``version``.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from tests.support.import_graph import FLOORS, rooms

_ROW, _BOX, _MARGIN, _WIDTH = 62, 30, 14, 940
_GAP, _LETTER, _PADDING, _LANE = 18, 7.4, 20, 10
_SWEEPS = 40
#: Between the middles of the rooms of the lowest row.
_APART = 140
_IN_LAUNCH = "launch."
_STYLE = """
.paper { fill: #ffffff; stroke: none; }
text { font: 13px ui-monospace, monospace; fill: #1f2328; text-anchor: middle; dominant-baseline: central; }
rect { fill: #eef2f7; stroke: #8c99a8; }
.launch rect { fill: #fdf3e1; stroke: #c39b4a; }
path { fill: none; stroke: #8c99a8; stroke-width: 1.2; }
"""


class Node(NamedTuple):
    """A room in its row, or the place where the line between two rooms crosses a row."""

    row: int
    room: str
    target: str = ""

    @property
    def width(self) -> float:
        """Its width in pixels."""
        return _LANE if self.target else len(self.room) * _LETTER + _PADDING


def picture() -> str:
    """Return the picture as SVG."""
    above = _reduced({room: set(below) - set(FLOORS[0]) for room, below in rooms().items()})
    row_of = _rows(above)
    ways = [_way(room, other, row_of) for room, below in above.items() for other in sorted(below)]
    x = _positions(row_of, ways)
    left = min(x[node] - node.width / 2 for node in x) - _MARGIN
    width = max(x[node] + node.width / 2 for node in x) + _MARGIN - left
    height = _MARGIN * 2 + _ROW * max(row_of.values()) + _BOX
    view = f'viewBox="{left:.0f} 0 {width:.0f} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {view}>',
            "<title>The rooms of hccl_tools and what each imports from</title>",
            f"<style>{_STYLE}</style>",
            f'<rect x="{left:.0f}" width="{width:.0f}" height="{height}" class="paper"/>',
            *(_line(way, x, height) for way in ways),
            *(_box(Node(row, room), x, height) for room, row in sorted(row_of.items())),
            "</svg>\n",
        ]
    )


def _reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what a room also reaches through another one that it imports from."""

    def reached(room: str) -> set[str]:
        return set().union(*({other} | reached(other) for other in graph[room]))

    reach = {room: reached(room) for room in graph}
    return {
        room: {other for other in below if not any(other in reach[between] for between in below)}
        for room, below in graph.items()
    }


def _rows(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the row of each room, 0 for the lowest: one above the highest that it imports from."""
    rows: dict[str, int] = {}
    for room in (room for floor in FLOORS for room in floor):
        rows[room] = 1 + max((rows[other] for other in graph[room]), default=-1)
    for room in FLOORS[0]:
        rows[room] = 0
    return {room: row + (room not in FLOORS[0]) for room, row in rows.items()}


def _way(room: str, other: str, row_of: dict[str, int]) -> list[Node]:
    """Return the nodes of the line from a room down to another."""
    between = range(row_of[room] - 1, row_of[other], -1)
    middle = [Node(row, room, other) for row in between]
    return [Node(row_of[room], room), *middle, Node(row_of[other], other)]


def _positions(row_of: dict[str, int], ways: list[list[Node]]) -> dict[Node, float]:
    """Return the middle of each node, so that lines are short and nodes of a row do not overlap."""
    neighbours: dict[Node, list[Node]] = defaultdict(list)
    for way in ways:
        for upper, lower in pairwise(way):
            neighbours[upper].append(lower)
            neighbours[lower].append(upper)
    nodes = {Node(row, room) for room, row in row_of.items()} | set(neighbours)
    rows: dict[int, list[Node]] = defaultdict(list)
    for node in sorted(nodes):
        rows[node.row].append(node)
    x = {
        node: _WIDTH * (place + 1) / (len(row) + 1) for row in rows.values() for place, node in enumerate(row)
    }
    for sweep in range(_SWEEPS):
        for number in sorted(rows, reverse=sweep % 2 == 0):
            for node in rows[number]:
                if near := [x[other] for other in neighbours[node]]:
                    x[node] = sum(near) / len(near)
            _spread(sorted(rows[number], key=lambda node: (x[node], node)), x)
    middle = (min(x.values()) + max(x.values())) / 2
    for place, room in enumerate(FLOORS[0]):  # Without lines: in the middle.
        x[Node(0, room)] = middle + (place - (len(FLOORS[0]) - 1) / 2) * _APART
    return x


def _spread(row: list[Node], x: dict[Node, float]) -> None:
    """Move the nodes of a row apart, first to the right, then back from the margin to the left."""
    edge = float(_MARGIN)
    for node in row:
        x[node] = max(x[node], edge + node.width / 2)
        edge = x[node] + node.width / 2 + _GAP
    edge = float(_WIDTH - _MARGIN)
    for node in reversed(row):
        x[node] = min(x[node], edge - node.width / 2)
        edge = x[node] - node.width / 2 - _GAP


def _line(way: list[Node], x: dict[Node, float], height: int) -> str:
    upper = way[0]
    path = [f"M {x[upper]:.0f} {_top(upper, height) + _BOX}"]
    for node in way[1:]:
        start, end = _top(upper, height) + _BOX, _top(node, height)
        middle = (start + end) / 2
        path.append(f"C {x[upper]:.0f} {middle:.0f} {x[node]:.0f} {middle:.0f} {x[node]:.0f} {end}")
        if node.target:
            path.append(f"V {end + _BOX}")
        upper = node
    return f'<path d="{" ".join(path)}"/>'


def _box(node: Node, x: dict[Node, float], height: int) -> str:
    top, left = _top(node, height), x[node] - node.width / 2
    is_inner = node.room.startswith(_IN_LAUNCH)
    return (
        f'<g class="{"launch" if is_inner else "room"}">'
        f'<rect x="{left:.0f}" y="{top}" width="{node.width:.0f}" height="{_BOX}" rx="4"/>'
        f'<text x="{x[node]:.0f}" y="{top + _BOX / 2:.0f}">{node.room}</text></g>'
    )


def _top(node: Node, height: int) -> int:
    return height - _MARGIN - _BOX - _ROW * node.row
