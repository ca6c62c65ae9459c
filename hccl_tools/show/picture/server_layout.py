"""Where the devices, groups and links of a server are, relative to its upper left corner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.boxes import ServerBox
from hccl_tools.show.picture.places import BUS, GAP, LETTER, PAD, NpuPlace, Rail, Rect, ServerPlace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.show.picture.boxes import Npu, Scene

_NPU_WIDTH, _NPU_HEIGHT = 46.0, 54.0
_WIDEST_NPU = 130.0
#: The width of a digit of a rank.
_DIGIT = 15.5
_GROUP_HEAD = 13.0
#: Room for the name of a link beside the last device.
_LABEL = 6.0
_SERVER_HEAD, _PREFIX_HEAD = 19.0, 31.0


class Style(NamedTuple):
    """What all servers of an arrangement share; ``prefixes``: server -> the beginning of its addresses."""

    per_row: int
    whole: bool
    prefixes: dict[int, str]
    npu_width: float


def style(scene: Scene, per_row: int, *, whole: bool) -> Style:
    """Return the sizes that all servers share, so that equal things look equal."""
    servers = [item for pod in scene.pods for item in pod.items if isinstance(item, ServerBox)]
    prefixes = {} if whole else {server.number: _prefix(server.npus) for server in servers}
    wide = [_NPU_WIDTH]
    for server in servers:
        for npu in server.npus:
            text = _address(npu, prefixes.get(server.number, ""), whole=whole)
            wide += [len(text) * LETTER + 8, len(str(npu.rank)) * _DIGIT + 4]
    return Style(per_row, whole, prefixes, min(_WIDEST_NPU, max(wide)))


def placed(server: ServerBox, style: Style) -> ServerPlace:
    """Return the places of a server's parts."""
    prefix = style.prefixes.get(server.number, "")
    levels = {kind: level for level, kind in enumerate(dict.fromkeys(bus.kind for bus in server.buses))}
    head = _GROUP_HEAD if any(name for name, _ in server.groups) else 0.0
    tall = head + _NPU_HEIGHT + 4 + BUS * len(levels)
    places: list[NpuPlace] = []
    groups, width = [], 0.0
    y = _PREFIX_HEAD if prefix else _SERVER_HEAD
    for row in _rows(server.groups, style.per_row):
        x = PAD
        for name, size in row:
            start = x
            for npu in server.npus[len(places) : len(places) + size]:
                rect = Rect(x, y + head, style.npu_width, _NPU_HEIGHT)
                places.append(NpuPlace(npu, rect, _address(npu, prefix, whole=style.whole)))
                x += style.npu_width + 4
            x += _LABEL if levels else 0
            groups.append((name, Rect(start - 3, y, x - start + 2, tall)))
            x += GAP
        width = max(width, x - GAP - 4 + PAD)
        y += tall + 5
    rails = [
        _rail(bus.kind, [places[one].rect for one in bus.places], levels[bus.kind]) for bus in server.buses
    ]
    width = max(width, min(len(server.server_id), 40) * (LETTER + 1) + 90)
    bottom = y + (14 if server.hidden else 0)
    shown = [group for group in groups if group[0]]
    return ServerPlace(server, Rect(0, 0, width, bottom), prefix, shown, places, rails)


def _rows(groups: Sequence[tuple[str, int]], per_row: int) -> Iterator[list[tuple[str, int]]]:
    """Yield rows of groups; a group that is wider than a row is divided."""
    row: list[tuple[str, int]] = []
    for name, size in groups:
        if row and sum(own for _, own in row) + size > per_row:
            yield row
            row = []
        rest = size
        while rest > per_row:
            yield [(name, per_row)]
            rest -= per_row
        row.append((name, rest))
    if row:
        yield row


def _rail(kind: str, rects: Sequence[Rect], level: int) -> Rail:
    """Return the rail of a link between devices of a server, below each of their rows."""
    rows: dict[float, list[Rect]] = {}
    for rect in rects:
        rows.setdefault(rect.y, []).append(rect)
    bars, ticks = [], []
    for y, own in rows.items():
        line = y + _NPU_HEIGHT + 7 + level * BUS
        centres = [rect.x + rect.width / 2 for rect in own]
        ticks += [(x, y + _NPU_HEIGHT, line) for x in centres]
        bars.append((PAD / 2 if len(rows) > 1 else centres[0], centres[-1], line))
    return Rail(kind, bars, ticks, PAD / 2 if len(rows) > 1 else None)


def _prefix(npus: Sequence[Npu]) -> str:
    """Return what the first addresses of all devices begin with, up to a separator; "" if nothing."""
    texts = [npu.addresses[0] for npu in npus if npu.addresses]
    if len(texts) < 2:
        return ""
    low, high = min(texts), max(texts)
    same = next((n for n, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    end = max(low.rfind(mark, 0, same) for mark in ".:")
    return low[: end + 1] if end > 2 else ""


def _address(npu: Npu, prefix: str, *, whole: bool) -> str:
    if not npu.addresses:
        return ""
    more = f" +{len(npu.addresses) - 1}" if len(npu.addresses) > 1 else ""
    text = npu.addresses[0]
    if whole:
        return text + more
    if prefix:
        return prefix[-1] + text[len(prefix) :] + more
    return (text if len(text) <= 8 else "…" + text[-7:]) + more
