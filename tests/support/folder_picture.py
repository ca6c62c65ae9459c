"""The picture of the folders in ``docs/architecture.md``, drawn from the imports.

Each row holds folders that do not import each other. A line leads from a folder to those it imports from. A
line that a longer path implies is left out, as are the lines into ``errors``, ``records`` and ``version``.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from tests.support.import_graph import LAYERS, folders

_ROW, _BOX, _MARGIN, _WIDTH = 62, 30, 14, 940
_GAP, _LETTER, _PADDING, _LANE = 18, 7.4, 20, 10
_SWEEPS = 40
#: Between the middles of the folders of the lowest row.
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
    """A folder in its row, or the place where the line between two folders crosses a row."""

    row: int
    folder: str
    target: str = ""

    @property
    def width(self) -> float:
        """Its width in pixels."""
        return _LANE if self.target else len(self.folder) * _LETTER + _PADDING


def picture() -> str:
    """Return the picture as SVG."""
    above = _reduced({folder: set(below) - set(LAYERS[0]) for folder, below in folders().items()})
    row_of = _rows(above)
    ways = [_way(folder, other, row_of) for folder, below in above.items() for other in sorted(below)]
    x = _positions(row_of, ways)
    left = min(x[node] - node.width / 2 for node in x) - _MARGIN
    width = max(x[node] + node.width / 2 for node in x) + _MARGIN - left
    height = _MARGIN * 2 + _ROW * max(row_of.values()) + _BOX
    view = f'viewBox="{left:.0f} 0 {width:.0f} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {view}>',
            "<title>The folders of hccl_tools and what each imports from</title>",
            f"<style>{_STYLE}</style>",
            f'<rect x="{left:.0f}" width="{width:.0f}" height="{height}" class="paper"/>',
            *(_line(way, x, height) for way in ways),
            *(_box(Node(row, folder), x, height) for folder, row in sorted(row_of.items())),
            "</svg>\n",
        ]
    )


def _reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what a folder also reaches through another one that it imports from."""

    def reached(folder: str) -> set[str]:
        return set().union(*({other} | reached(other) for other in graph[folder]))

    reach = {folder: reached(folder) for folder in graph}
    return {
        folder: {other for other in below if not any(other in reach[between] for between in below)}
        for folder, below in graph.items()
    }


def _rows(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the row of each folder, 0 for the lowest: one above the highest that it imports from."""
    rows: dict[str, int] = {}
    for folder in (folder for layer in LAYERS for folder in layer):
        rows[folder] = 1 + max((rows[other] for other in graph[folder]), default=-1)
    for folder in LAYERS[0]:
        rows[folder] = 0
    return {folder: row + (folder not in LAYERS[0]) for folder, row in rows.items()}


def _way(folder: str, other: str, row_of: dict[str, int]) -> list[Node]:
    """Return the nodes of the line from a folder down to another."""
    between = range(row_of[folder] - 1, row_of[other], -1)
    middle = [Node(row, folder, other) for row in between]
    return [Node(row_of[folder], folder), *middle, Node(row_of[other], other)]


def _positions(row_of: dict[str, int], ways: list[list[Node]]) -> dict[Node, float]:
    """Return the middle of each node, so that lines are short and nodes of a row do not overlap."""
    neighbours: dict[Node, list[Node]] = defaultdict(list)
    for way in ways:
        for upper, lower in pairwise(way):
            neighbours[upper].append(lower)
            neighbours[lower].append(upper)
    nodes = {Node(row, folder) for folder, row in row_of.items()} | set(neighbours)
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
    for place, folder in enumerate(LAYERS[0]):  # Without lines: in the middle.
        x[Node(0, folder)] = middle + (place - (len(LAYERS[0]) - 1) / 2) * _APART
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
    is_inner = node.folder.startswith(_IN_LAUNCH)
    return (
        f'<g class="{"launch" if is_inner else "folder"}">'
        f'<rect x="{left:.0f}" y="{top}" width="{node.width:.0f}" height="{_BOX}" rx="4"/>'
        f'<text x="{x[node]:.0f}" y="{top + _BOX / 2:.0f}">{node.folder}</text></g>'
    )


def _top(node: Node, height: int) -> int:
    return height - _MARGIN - _BOX - _ROW * node.row
