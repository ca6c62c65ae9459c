"""Arrange the boxes of a picture: coordinates only, no writing.

The arrangement is the one of a few that can be drawn largest on the page: how many devices are in a row, and
how many servers side by side.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.boxes import Fold, ServerBox
from hccl_tools.show.picture.places import (
    BUS,
    GAP,
    LETTER,
    PAD,
    FoldPlace,
    Layout,
    NpuPlace,
    PodPlace,
    Rail,
    Rect,
    ServerPlace,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.show.picture.boxes import Npu, PodBox, Scene


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


def style_of(scene: Scene, per_row: int, *, whole: bool) -> Style:
    """Return the sizes that all servers share, so that equal things look equal."""
    servers = [item for pod in scene.pods for item in pod.items if isinstance(item, ServerBox)]
    prefixes = {} if whole else {server.number: _prefix(server.npus) for server in servers}
    wide = [_NPU_WIDTH]
    for server in servers:
        for npu in server.npus:
            text = _address(npu, prefixes.get(server.number, ""), whole=whole)
            wide += [len(text) * LETTER + 8, len(str(npu.rank)) * _DIGIT + 4]
    return Style(per_row, whole, prefixes, min(_WIDEST_NPU, max(wide)))


def placed(server: ServerBox, style_of: Style) -> ServerPlace:
    """Return the places of a server's parts."""
    prefix = style_of.prefixes.get(server.number, "")
    levels = {kind: level for level, kind in enumerate(dict.fromkeys(bus.kind for bus in server.buses))}
    head = _GROUP_HEAD if any(name for name, _ in server.groups) else 0.0
    tall = head + _NPU_HEIGHT + 4 + BUS * len(levels)
    places: list[NpuPlace] = []
    groups, width = [], 0.0
    y = _PREFIX_HEAD if prefix else _SERVER_HEAD
    for row in _rows(server.groups, style_of.per_row):
        x = PAD
        for name, size in row:
            start = x
            for npu in server.npus[len(places) : len(places) + size]:
                rect = Rect(x, y + head, style_of.npu_width, _NPU_HEIGHT)
                places.append(NpuPlace(npu, rect, _address(npu, prefix, whole=style_of.whole)))
                x += style_of.npu_width + 4
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


_POD_HEAD = 20.0
_FOLD_WIDTH, _FOLD_HEIGHT = 156.0, 90.0
_PER_ROW = (128, 16, 8, 4)
#: An address of more characters is not drawn as a whole.
_LONGEST_WHOLE = 19
#: The scale beyond which a larger picture is not better.
_LARGE = 1.5
#: With more servers, fewer arrangements are tried.
_MANY = 64


def arranged(scene: Scene, width: float, height: float) -> Layout:
    """Return the arrangement of a scene that fits a page of the given size best."""
    servers = [item for pod in scene.pods for item in pod.items if isinstance(item, ServerBox)]
    most = max((len(pod.items) for pod in scene.pods), default=1)
    best, best_scale = Layout([], None, 1, 1), 0.0
    for whole, per_row in product(_ways(servers), _per_row(servers)):
        style = style_of(scene, per_row, whole=whole)
        drawn = {server.number: placed(server, style) for server in servers}
        for columns, pods in product(_columns(most), _columns(len(scene.pods))):
            found = _layout(scene, drawn, columns, pods)
            # Whole addresses are worth a somewhat smaller picture, beyond a good size nothing is.
            scale = min(width / found.width, height / found.height, _LARGE) * (1.1 if whole else 1)
            if scale > best_scale * 1.001:
                best, best_scale = found, scale
    return best


def _ways(servers: Sequence[ServerBox]) -> tuple[bool, ...]:
    """Return whether addresses can be drawn as a whole, and in part."""
    if len(servers) > _MANY:
        return (False,)
    addresses = (text for server in servers for npu in server.npus for text in npu.addresses[:1])
    return (True, False) if all(len(text) <= _LONGEST_WHOLE for text in addresses) else (False,)


def _per_row(servers: Sequence[ServerBox]) -> list[int]:
    """Return how many devices may be in a row, the most first; a group stays in one row."""
    largest = max((len(server.npus) for server in servers), default=1)
    least = max((size for server in servers for name, size in server.groups if name), default=1)
    found = [largest, *(number for number in _PER_ROW if least <= number < largest)]
    return found[:2] if len(servers) > _MANY else found


def _columns(count: int) -> list[int]:
    return sorted({min(count, number) for number in (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 64, 128)}) or [1]


def _layout(scene: Scene, drawn: Mapping[int, ServerPlace], columns: int, pods: int) -> Layout:
    placed = [_pod(pod, drawn, columns) for pod in scene.pods]
    spots, rail, width, height = _grid(
        [one.rect for one in placed], pods, scene.link if len(placed) > 1 else ""
    )
    moved = [one._replace(rect=one.rect.moved(x, y)) for one, (x, y) in zip(placed, spots, strict=True)]
    return Layout(moved, rail, max(width, 1), max(height, 1))


def _pod(pod: PodBox, drawn: Mapping[int, ServerPlace], columns: int) -> PodPlace:
    framed = pod.name is not None
    pad, head = (PAD, _POD_HEAD) if framed else (0.0, 0.0)
    own = [drawn[item.number].rect.height for item in pod.items if isinstance(item, ServerBox)]
    tall = max(own, default=_FOLD_HEIGHT)
    boxes = [
        FoldPlace(item, Rect(0, 0, _FOLD_WIDTH, min(tall, _FOLD_HEIGHT)))
        if isinstance(item, Fold)
        else drawn[item.number]
        for item in pod.items
    ]
    spots, rail, width, height = _grid([box.rect for box in boxes], columns, pod.link)
    servers, folds = [], []
    for box, (x, y) in zip(boxes, spots, strict=True):
        rect = box.rect.moved(x + pad, y + head)
        if isinstance(box, FoldPlace):
            folds.append(box._replace(rect=rect))
        else:
            servers.append(box._replace(rect=rect))
    rail = None if rail is None else _shifted(rail, pad, head)
    return PodPlace(pod, Rect(0, 0, width + 2 * pad, height + head + pad), servers, folds, rail)


def _grid(
    rects: Sequence[Rect], columns: int, link: str
) -> tuple[list[tuple[float, float]], Rail | None, float, float]:
    """Place boxes in rows; return their corners, the rail below each row, and the size."""
    left = GAP if link and len(rects) > columns else 0.0  # room for the spine
    below = BUS + 4 if link else 0.0
    spots: list[tuple[float, float]] = []
    bars, ticks = [], []
    y = width = 0.0
    for start in range(0, len(rects), columns):
        row = rects[start : start + columns]
        tall = max(rect.height for rect in row)
        x = left
        line = y + tall + below - 4
        for rect in row:
            spots.append((x, y))
            ticks.append((x + rect.width / 2, y + rect.height, line))
            x += rect.width + GAP
        width = max(width, x - GAP)
        first = 0.0 if left else ticks[start][0]
        bars.append((first, ticks[-1][0], line))
        y += tall + below + GAP
    rail = Rail(link, bars, ticks, 0.0 if left else None) if link and rects else None
    return spots, rail, width, y - GAP


def _shifted(rail: Rail, x: float, y: float) -> Rail:
    return Rail(
        rail.kind,
        [(start + x, end + x, at + y) for start, end, at in rail.bars],
        [(at + x, top + y, bottom + y) for at, top, bottom in rail.ticks],
        None if rail.spine is None else rail.spine + x,
    )
