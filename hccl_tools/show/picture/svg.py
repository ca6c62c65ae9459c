"""Write the picture of a table as SVG: one page of at most A4, landscape, and as high as it needs."""

from __future__ import annotations

from itertools import chain, islice
from textwrap import wrap
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

from hccl_tools.notation.printable import escaped
from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.boxes import Selection, ServerBox
from hccl_tools.show.picture.layout import arranged
from hccl_tools.show.picture.marks import MEANINGS as MARK_MEANINGS
from hccl_tools.show.picture.overview import height as overview_height
from hccl_tools.show.picture.overview import overview
from hccl_tools.show.picture.places import Rect
from hccl_tools.show.picture.scene import scene
from hccl_tools.show.picture.svg_boxes import Badges, Boxes
from hccl_tools.show.picture.svg_elements import STYLE, add, clipped, link_class, number, symbol, text
from hccl_tools.table.links import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.show.picture.boxes import Scene
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

_LINE, _NOTE_LINE = 15.0, 17.0
_ABOVE = 14.0
#: Notes that are listed, the characters of one of their lines, and the lines of a cause.
_MOST_NOTES, _NOTE_WIDTH = 8, 165
_CAUSE_WIDTH, _MOST_CAUSE_LINES = 140, 3
_KEY = "Large: the rank. NPUn: the device with the physical id n. Below it: its address."


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


class Line(NamedTuple):
    """A line of a note; the first line of each note has the note itself, for its symbol."""

    note: Note | None
    words: str
    style: str


class Foot:
    """The notes and the legend of a scene.

    Attributes:
        height: The height that they need.
    """

    def __init__(self, content: Scene, notes: Sequence[Note], *, silent: bool) -> None:
        self._lines = list(_lines(notes))
        self._links = _links(content)
        self._silent = silent
        rows = -(-len(self._links) // 2) + 1 + silent
        self.height = len(self._lines) * _NOTE_LINE + rows * _LINE + _ABOVE

    def write(self, root: ET.Element, left: float, top: float, width: float) -> None:
        """Add them to an element."""
        y = top + _ABOVE
        for note, words, style in self._lines:
            if note is not None:
                symbol(root, left + 9, y - 4, note.kind, str(note.number))
            text(root, left + 26, y, words, style)
            y += _NOTE_LINE
        if self._silent:
            symbol(root, left + 9, y - 4, "silent", "")
            text(root, left + 26, y, f"grey: {MARK_MEANINGS['silent']}", "sentence")
            y += _LINE
        for place, (kind, meaning) in enumerate(self._links):
            x = left + place % 2 * width / 2
            add(root, "path", d=f"M{number(x)} {number(y - 3)} h40", class_=link_class(kind))
            text(root, x + 50, y, kind, "strong")
            text(root, x + 84, y, meaning)
            y += _LINE if place % 2 or place == len(self._links) - 1 else 0
        text(root, left, y, _KEY, "soft")


def _links(content: Scene) -> list[tuple[str, str]]:
    """Return the links that are drawn, with their meanings, in the order of a legend."""
    kinds = {bus.kind for pod in content.pods for item in pod.items if isinstance(item, ServerBox)
             for bus in item.buses}  # fmt: skip
    kinds |= {
        word for link in (content.link, *(pod.link for pod in content.pods)) for word in link.split("/")
    }
    return [(kind, meaning) for kind, meaning in MEANINGS.items() if kind in kinds]


def _lines(notes: Sequence[Note]) -> Iterator[Line]:
    for note in notes[:_MOST_NOTES]:
        mark = note.marks[0]
        others = len(note.marks) + note.omitted - 1
        where = f" ({mark.place})" if mark.place else ""
        label = f"{mark.label}, {note.kind}" if mark.label else note.kind
        more = f", and {others:,} more" if others else ""
        more += f"; only the first {len(note.marks):,} are marked" if note.omitted else ""
        words = f"{label}: {mark.sentence}{where}{more}"
        if note.kind == "cause":
            cut = wrap(escaped(words), _CAUSE_WIDTH) or [""]
            lines = [*cut[: _MOST_CAUSE_LINES - 1], *(" ".join(cut[_MOST_CAUSE_LINES - 1 :]),)][: len(cut)]
            for place, line in enumerate(lines):
                yield Line(None if place else note, clipped(line, _CAUSE_WIDTH), "sentence strong")
        else:
            yield Line(note, clipped(words, _NOTE_WIDTH), "sentence")
    if len(notes) > _MOST_NOTES:
        yield Line(None, f"and {len(notes) - _MOST_NOTES:,} more", "sentence soft")
