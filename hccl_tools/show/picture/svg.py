"""Write the picture of a table as SVG: one page of at most A4, landscape, and as high as it needs."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

from hccl_tools.notation.printable import escaped
from hccl_tools.show.picture.boxes import Selection
from hccl_tools.show.picture.layout import arranged
from hccl_tools.show.picture.overview import height as overview_height
from hccl_tools.show.picture.overview import overview
from hccl_tools.show.picture.places import Rect
from hccl_tools.show.picture.scene import scene
from hccl_tools.show.picture.svg_boxes import Badges, Boxes
from hccl_tools.show.picture.svg_elements import STYLE, add, clipped, number, text
from hccl_tools.show.picture.svg_foot import Foot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.show.picture.marks import Note
    from hccl_tools.show.picture.subject import Subject
    from hccl_tools.table.model import RankTable

#: A4, landscape, at 96 dots per inch.
WIDTH, HEIGHT = 1123.0, 794.0
_MARGIN, _HEAD = 20.0, 46.0
#: No box is enlarged beyond this.
_LARGEST = 1.6
#: The greatest number of lines between devices that did not communicate, of each kind.
_MOST_LINES = 64
#: Marks whose servers are not folded.
_IMPORTANT = {"cause", "error", "warning"}


def picture(subject: Subject) -> str:
    """Return the picture as an SVG file."""
    table = subject.table
    notes = subject.notes()
    badges = Badges(notes, subject.silent())
    important = _servers(table, [note for note in notes if note.kind in _IMPORTANT])
    content = scene(
        table,
        subject.product,
        Selection(subject.servers, important, _servers(table, notes), subject.unfold),
    )
    foot = Foot(content, notes, silent=bool(badges.silent))
    width, top = WIDTH - 2 * _MARGIN, _MARGIN + _HEAD
    strip = overview_height(len(subject.servers), width) if content.is_folded else 0.0
    room = Rect(_MARGIN, top, width, HEIGHT - top - _MARGIN - foot.height - strip)
    layout = arranged(content, room.width, room.height)
    scale = min(room.width / layout.width, room.height / layout.height, _LARGEST)
    room = room._replace(height=layout.height * scale)
    height = top + room.height + strip + foot.height + _MARGIN
    root = _page(subject, height)
    left = room.x + (room.width - layout.width * scale) / 2
    group = add(root, "g", transform=f"translate({number(left)} {number(top)}) scale({scale:.3f})")
    boxes = Boxes(table, badges)
    boxes.write(group, layout)
    for kind in ("consequence", "cause"):  # what is more important is drawn over the rest
        peers = (pair for mark in subject.marks if mark.kind == kind for pair in mark.peers)
        boxes.failed(group, islice(peers, _MOST_LINES), kind)
    if content.is_folded:
        area = Rect(_MARGIN, room.y + room.height + 8, room.width, strip - 8)
        overview(root, table, content, badges, area)
    foot.write(root, _MARGIN, height - _MARGIN - foot.height, width)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"


def _page(subject: Subject, height: float) -> ET.Element:
    """Return an empty page with its heading."""
    view = f"0 0 {WIDTH:.0f} {height:.0f}"
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "role": "img"})
    file, facts = subject.report.file, subject.facts()
    add(root, "title").text = escaped(f"The rank table {file}")
    add(root, "desc").text = escaped(facts)
    add(root, "style").text = STYLE
    add(root, "rect", width=WIDTH, height=number(height), class_="paper")
    text(root, _MARGIN, _MARGIN + 14, clipped(file, 90), "head")
    text(root, _MARGIN, _MARGIN + 33, facts, "line soft")
    return root


def _servers(table: RankTable, notes: Sequence[Note]) -> list[int]:
    """Return the servers that notes are about, those of the most important note first."""
    found: dict[int, None] = {}
    owner = table.server_of_row
    for note in notes:
        for mark in note.marks:
            found.update(dict.fromkeys(mark.servers))
            found.update(dict.fromkeys(owner[row] for row in (*mark.rows, *chain(*mark.peers))))
    return list(found)
