"""The boxes of a picture as SVG: super pods, servers, groups and devices, with their marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.show.picture.marks import KINDS
from hccl_tools.show.picture.places import LETTER, PAD
from hccl_tools.show.picture.svg_elements import add, box, rail, symbol, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

    from hccl_tools.show.picture.marks import Note
    from hccl_tools.show.picture.places import FoldPlace, Layout, NpuPlace, PodPlace, Rect, ServerPlace
    from hccl_tools.table.model import RankTable

#: The greatest number of symbols on a device or a server.
_MOST_SYMBOLS = 3
#: The part of the letters that fit if they are of a name, which is larger and bold.
_BOLD = 0.75


class Badges:
    """The numbers of the notes on each device and each server, and the ranks without a record."""

    def __init__(self, notes: Sequence[Note], silent: Sequence[int]) -> None:
        self.of_row: dict[int, list[Note]] = {}
        self.of_server: dict[int, list[Note]] = {}
        #: Devices at the ends of links that a note is about; they are not marked themselves.
        self.of_peer: dict[int, list[Note]] = {}
        self.silent = set(silent)
        for note in notes:
            for row in dict.fromkeys(row for mark in note.marks for row in mark.rows):
                self.of_row.setdefault(row, []).append(note)
            peers = (row for mark in note.marks for pair in mark.peers for row in pair)
            for row in dict.fromkeys(peers):
                self.of_peer.setdefault(row, []).append(note)
            for index in dict.fromkeys(index for mark in note.marks for index in mark.servers):
                self.of_server.setdefault(index, []).append(note)

    def of_device(self, row: int) -> str:
        """Return the most important kind of mark of a device; "" if it has none."""
        return kind(self.of_row.get(row, ())) or ("silent" if row in self.silent else "")


def kind(notes: Sequence[Note]) -> str:
    """Return the most important kind of some notes; "" if there are none."""
    return min((note.kind for note in notes), key=KINDS.index, default="")


class Boxes:
    """Writes the boxes of a layout, and the lines between devices that failed to communicate."""

    def __init__(self, table: RankTable, badges: Badges) -> None:
        self._table, self._badges = table, badges
        self._rects: dict[int, Rect] = {}

    def write(self, parent: ET.Element, layout: Layout) -> None:
        """Add all boxes to an element."""
        if layout.rail is not None:
            rail(parent, layout.rail)
        for pod in layout.pods:
            self._pod(add(parent, "g", transform=_moved(pod.rect.x, pod.rect.y)), pod)

    def failed(self, parent: ET.Element, pairs: Iterable[tuple[int, int]], mark: str) -> None:
        """Add a line between each pair of devices that are both drawn."""
        for pair in pairs:
            drawn = [self._rects[row] for row in pair if row in self._rects]
            if len(drawn) == 2:
                add(
                    parent, "path", class_=f"failed {mark}", d=_curve(*sorted(drawn, key=lambda rect: rect.y))
                )

    def _pod(self, group: ET.Element, place: PodPlace) -> None:
        if place.pod.name is not None:
            box(group, place.rect._replace(x=0, y=0), "pod")
            text(group, PAD, 14, f"super pod {place.pod.name}", "name", room=place.rect.width * 0.8)
        if place.rail is not None:
            rail(group, place.rail)
        for server in place.servers:
            self._server(
                add(group, "g", transform=_moved(server.rect.x, server.rect.y)),
                server,
                (place.rect.x + server.rect.x, place.rect.y + server.rect.y),
            )
        for one in place.folds:
            self._fold(group, one)

    def _fold(self, group: ET.Element, place: FoldPlace) -> None:
        rect, indices = place.rect, place.fold.indices
        table = self._table
        for offset in (6, 3, 0):  # a stack of boxes
            box(group, rect._replace(x=rect.x + offset, y=rect.y + offset, width=rect.width - 6), "fold")
        more = "more like this" if place.fold.alike else "more servers"
        names = [table.servers[indices[0]].server_id, table.servers[indices[-1]].server_id]
        ranks = [
            rank for one in indices for row in table.servers[one].rows
            if (rank := table.rank_numbers[row]) is not None
        ]  # fmt: skip
        lines = [
            (f"{len(indices):,} {more}", "name"),
            *((name, "soft") for name in (names[0], f"to {names[1]}")[: len(indices)]),
            (f"ranks {fold(sorted(ranks))}", "soft"),
            *([(f"{place.fold.marked:,} of them marked", "strong")] if place.fold.marked else []),
        ]
        for number, (words, style) in enumerate(lines):
            text(group, rect.x + 8, rect.y + 20 + 14 * number, words, style, room=rect.width - 16)

    def _server(self, group: ET.Element, place: ServerPlace, corner: tuple[float, float]) -> None:
        server = place.server
        ranks = [npu.rank for npu in server.npus if npu.rank is not None]
        title = f"server {server.server_id}\n{count(len(server.npus) + server.hidden, 'device')}"
        own = self._badges.of_server.get(server.number, ())[:_MOST_SYMBOLS]
        frame = f"server {kind(own)}".rstrip()
        box(group, place.rect._replace(x=0, y=0), frame, title)
        wide = place.rect.width
        listed = f"ranks {fold(sorted(ranks))}"
        text(group, PAD, 14, server.server_id, "name",
             room=(wide - 2 * PAD - min(len(listed), 16) * LETTER - 18 * len(own)) * _BOLD)  # fmt: skip
        left = wide - 2 * PAD - 18 * len(own) - (len(server.server_id) + 1) * LETTER / _BOLD
        text(group, wide - PAD - 18 * len(own), 14, listed, "end soft", room=max(left, 16 * LETTER))
        if place.prefix:
            text(group, PAD, 27, f"addresses {place.prefix}*", "soft", room=wide - 2 * PAD)
        for name, rect in place.groups:
            box(group, rect, "group")
            text(group, rect.x + 4, rect.y + 9.5, name, "soft")
        for one in place.rails:
            rail(group, one)
        for npu in place.npus:
            self._npu(group, npu)
            self._rects[npu.npu.row] = npu.rect.moved(*corner)
        if server.hidden:
            text(group, PAD, place.rect.height - 5, f"{server.hidden:,} more devices", "soft")
        for place_, note in enumerate(own):
            symbol(group, wide - PAD - 8 - 18 * place_, 11, note.kind, str(note.number))

    def _npu(self, group: ET.Element, place: NpuPlace) -> None:
        npu, rect = place.npu, place.rect
        mark = self._badges.of_device(npu.row)
        notes = self._badges.of_row.get(npu.row, [])
        name = f"rank {npu.rank}, device {npu.device}" + "".join(f", {one}" for one in npu.addresses[:8])
        said = "".join(f"\n{note.marks[0].label} {note.marks[0].sentence}" for note in notes[:_MOST_SYMBOLS])
        box(group, rect, f"npu {mark}".rstrip(), name + said)
        middle = rect.x + rect.width / 2
        text(group, middle, rect.y + 23, "?" if npu.rank is None else str(npu.rank), "rank")
        text(group, middle, rect.y + 36, f"NPU{'?' if npu.device is None else npu.device}", "middle soft")
        text(group, middle, rect.y + 48, place.address, "middle soft", room=rect.width - 2)
        for index, note in enumerate(notes[:_MOST_SYMBOLS]):
            symbol(
                group,
                rect.x + rect.width - 4 - 14 * index,
                rect.y + 1,
                note.kind,
                str(note.number),
                scale=0.8,
            )


def _moved(x: float, y: float) -> str:
    return f"translate({x:.1f} {y:.1f})"


def _curve(upper: Rect, lower: Rect) -> str:
    """Return the path from the lower edge of a box to the upper edge of another; in one row, over both."""
    x, to_x = upper.x + upper.width / 2, lower.x + lower.width / 2
    y, to_y = (upper.y if upper.y == lower.y else upper.y + upper.height), lower.y
    bend = y - 30 if y == to_y else (y + to_y) / 2
    return f"M{x:.1f} {y:.1f} C{x:.1f} {bend:.1f} {to_x:.1f} {bend:.1f} {to_x:.1f} {to_y:.1f}"
