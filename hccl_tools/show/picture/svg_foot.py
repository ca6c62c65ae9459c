"""The lower part of a picture: its notes, and the legend of its links."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.boxes import ServerBox
from hccl_tools.show.picture.marks import MEANINGS as MARK_MEANINGS
from hccl_tools.show.picture.svg_elements import add, clipped, link_class, number, symbol, text
from hccl_tools.table.links import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

    from hccl_tools.show.picture.boxes import Scene
    from hccl_tools.show.picture.marks import Note

_LINE, _NOTE_LINE = 15.0, 17.0
_ABOVE = 14.0
#: Notes that are listed, the characters of one of their lines, and the lines of a cause.
_MOST_NOTES, _NOTE_WIDTH = 8, 165
_CAUSE_WIDTH, _MOST_CAUSE_LINES = 140, 3
_KEY = "Large: the rank. NPUn: the device with the physical id n. Below it: its address."


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
