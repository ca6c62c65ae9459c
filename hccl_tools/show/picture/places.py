"""The boxes and lines of a picture with their coordinates, in units in which the small text is 10 high."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.show.picture.boxes import Fold, Npu, PodBox, ServerBox

#: The width of a character of the small text; that of most fonts is a little less.
LETTER = 6.2
#: Between boxes, and between a box and what is in it.
GAP, PAD = 8.0, 8.0
#: The height of the line of a link, below the boxes that it joins.
BUS = 13.0


class Rect(NamedTuple):
    """A box by its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, x: float, y: float) -> Rect:
        """Return the box at another place."""
        return Rect(self.x + x, self.y + y, self.width, self.height)


class NpuPlace(NamedTuple):
    """A device and the text of its address."""

    npu: Npu
    rect: Rect
    address: str


class Rail(NamedTuple):
    """The lines of a link: horizontal bars, and the ticks from there up to what they join.

    The bars of one rail are joined by a line at ``spine``, if there are several.
    """

    kind: str
    bars: list[tuple[float, float, float]]
    ticks: list[tuple[float, float, float]]
    spine: float | None


class ServerPlace(NamedTuple):
    """A server, its groups by name, its devices and links, all relative to its corner ``rect``."""

    server: ServerBox
    rect: Rect
    prefix: str
    groups: list[tuple[str, Rect]]
    npus: list[NpuPlace]
    rails: list[Rail]


class FoldPlace(NamedTuple):
    """Servers that are not drawn."""

    fold: Fold
    rect: Rect


class PodPlace(NamedTuple):
    """A super pod, with its servers relative to its corner; a table without super pods has one, unframed."""

    pod: PodBox
    rect: Rect
    servers: list[ServerPlace]
    folds: list[FoldPlace]
    rail: Rail | None


class Layout(NamedTuple):
    """All boxes, and the size that they need."""

    pods: list[PodPlace]
    rail: Rail | None
    width: float
    height: float
