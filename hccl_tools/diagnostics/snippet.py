"""The source line of a finding, cut to a window, with a marker below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import cells, cut
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.diagnostics.placing import SourceRange
    from hccl_tools.document.document import Document

#: The number of characters to show of the line; a table without line breaks may have millions.
_WINDOW = 110
_BYTES_A_CHARACTER = 4
_CUT = "..."
_CONTINUATION = bytes(range(0x80, 0xC0))


class Snippet(NamedTuple):
    """A source line and the line of carets below it."""

    source: str
    marker: str


def snippet(
    document: Document, place: SourceRange, *, ascii_only: bool = False, room: int | None = None
) -> Snippet | None:
    """Return the line in which a source range begins; the marker ends with that line.

    Args:
        room: The columns of the screen beside the number of the line; ``None`` without a screen.

    Returns:
        ``None`` if the line is blank or has NUL bytes.
    """
    start, end = document.line_bounds(place.begin)
    begin = min(place.begin, end)
    stop = max(begin, min(place.stop, end))
    window = _WINDOW if room is None else max(1, min(_WINDOW, room - 2 * len(_CUT)))
    around = document.data[max(start, begin - _WINDOW) : min(end, begin + _WINDOW)]
    if b"\0" in around or not around.strip():
        return None
    whole = end - start <= window
    before, cut_left = _last(document.data, start, begin, window if whole else window * 5 // 11)
    marked, cut_right = _first(document.data, begin, stop, window if whole else window * 4 // 11)
    after = ""
    if not cut_right:
        after, cut_right = _first(
            document.data, stop, end, window if whole else window - len(before + marked)
        )
    before, marked, after = (
        escaped(part.replace("\t", "    "), ascii_only=ascii_only) for part in (before, marked, after)
    )
    left = (_CUT if cut_left else "") + before
    source = cut(left + marked + after + (_CUT if cut_right else ""), room)
    return Snippet(source, " " * cells(left) + "^" * max(1, cells(marked)))


def _last(data: bytes, start: int, end: int, room: int) -> tuple[str, bool]:
    near = max(start, end - _BYTES_A_CHARACTER * room)
    part = data[near:end]
    text = (part.lstrip(_CONTINUATION) if near > start else part).decode(errors="replace")
    return text[-room:], near > start or len(text) > room


def _first(data: bytes, start: int, end: int, room: int) -> tuple[str, bool]:
    near = min(end, start + _BYTES_A_CHARACTER * room)
    text = data[start:near].decode(errors="replace")
    return text[:room], near < end or len(text) > room
