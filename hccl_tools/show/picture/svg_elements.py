"""Elements of an SVG file: shapes and texts with classes, the style sheet of the classes, and mark symbols.

All text passes through ``escaped`` and ElementTree, so that no name in a table becomes markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET  # written, never parsed  # nosec B405

from hccl_tools.notation.printable import escaped
from hccl_tools.show.picture.places import LETTER
from hccl_tools.table.links import HCCS, ROCE, SIO, UB

if TYPE_CHECKING:
    from hccl_tools.show.picture.places import Rail, Rect

#: The longest tooltip, in characters.
_LONGEST_TITLE = 400
#: Link -> its class. The classes differ in colour, width and dashes.
LINK_CLASSES = {HCCS: "hccs", SIO: "sio", UB: "ub", ROCE: "roce"}
OTHER_LINKS = "other"

STYLE = """
svg { --paper: #fff; --ink: #1a1a1a; --soft: #5c5c5c; --edge: #9a9a9a; --server: #f5f6f8; --npu: #fff;
 --pod: #fbfbfc; --hccs: #0067a5; --sio: #00734f; --ub: #7b3f9d; --roce: #b34700; --cause: #b00020;
 --cause-fill: #fbdadd; --warning: #8a5a00; --warning-fill: #fff1cc; --silent: #e3e3e3; }
@media (prefers-color-scheme: dark) {
svg { --paper: #16181c; --ink: #ececec; --soft: #b0b0b0; --edge: #70757d; --server: #21252b; --npu: #2b3038;
 --pod: #1b1e23; --hccs: #6cb8f0; --sio: #4fd1a5; --ub: #cf9cf0; --roce: #ff9d5c; --cause: #ff8080;
 --cause-fill: #5a1f26; --warning: #ffce5c; --warning-fill: #4a3a10; --silent: #3a3a3a; }
}
text { font: 10px Arial, Helvetica, "Liberation Sans", "DejaVu Sans", sans-serif; fill: var(--ink); }
.paper { fill: var(--paper); }
.head { font-size: 17px; font-weight: bold; }
.line { font-size: 12px; }
.sentence { font-size: 11.5px; }
.strong { font-weight: bold; }
.name { font-size: 12px; font-weight: bold; }
.soft { fill: var(--soft); }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.rank { font-size: 22px; font-weight: bold; text-anchor: middle; }
.pod { fill: var(--pod); stroke: var(--edge); stroke-width: 1.5; }
.server { fill: var(--server); stroke: var(--edge); }
.group { fill: none; stroke: var(--edge); stroke-dasharray: 2 2; }
.npu { fill: var(--npu); stroke: var(--edge); }
.fold { fill: none; stroke: var(--edge); stroke-dasharray: 6 3; }
.link { fill: none; stroke: var(--soft); stroke-width: 1.6; }
.hccs { stroke: var(--hccs); stroke-width: 2.2; }
.sio { stroke: var(--sio); stroke-width: 4; }
.ub { stroke: var(--ub); stroke-width: 2.2; stroke-dasharray: 9 2; }
.roce { stroke: var(--roce); stroke-dasharray: 5 3; }
.other { stroke-dasharray: 1.5 3; }
.npu.cause { fill: var(--cause-fill); stroke: var(--cause); stroke-width: 5; }
.npu.error { fill: var(--cause-fill); stroke: var(--cause); stroke-width: 2.5; }
.npu.warning { fill: var(--warning-fill); stroke: var(--warning); stroke-width: 2; stroke-dasharray: 7 2; }
.npu.consequence { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 3 2; }
.server.error, .server.cause { stroke: var(--cause); stroke-width: 3; }
.server.warning { stroke: var(--warning); stroke-width: 2.5; stroke-dasharray: 7 2; }
.npu.note { stroke: var(--soft); stroke-dasharray: 1.5 2; }
.npu.silent { fill: var(--silent); stroke-dasharray: 1 3; }
.failed { stroke: var(--cause); stroke-width: 3.5; stroke-dasharray: 8 4; fill: none; }
.failed.consequence { stroke: var(--soft); stroke-width: 1.2; }
.symbol { stroke: var(--cause); fill: var(--cause); }
.symbol.warning { stroke: var(--warning); fill: var(--warning); }
.symbol.consequence, .symbol.note { stroke: var(--soft); fill: var(--paper); }
.symbol.silent { stroke: var(--edge); fill: var(--silent); stroke-dasharray: 1 2; }
.number { font-weight: bold; text-anchor: middle; fill: var(--paper); }
.number.consequence, .number.note { fill: var(--soft); }
"""
#: Kind of a mark -> its shape around the origin, 16 wide.
_SHAPES = {
    "cause": "M0-9 L6.4-6.4 L9 0 L6.4 6.4 L0 9 L-6.4 6.4 L-9 0 L-6.4-6.4 Z",
    "error": "M-7-7 H7 V7 H-7 Z",
    "warning": "M0-9 L9.5 8 H-9.5 Z",
    "consequence": "M-7 0 A7 7 0 1 1 7 0 A7 7 0 1 1-7 0 Z",
    "note": "M0-8 L8 0 L0 8 L-8 0 Z",
    "silent": "M-7-7 H7 V7 H-7 Z",
}


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0").replace("-0", "0" if -0.05 < value < 0 else "-0")


def add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Add an element; a trailing ``_`` of an attribute is left out, numbers are rounded."""
    return ET.SubElement(
        parent,
        tag,
        {
            key.rstrip("_").replace("_", "-"): number(value) if isinstance(value, (int, float)) else value
            for key, value in attributes.items()
        },
    )


def box(parent: ET.Element, rect: Rect, class_: str, title: str = "") -> ET.Element:
    """Add a rounded box, with a tooltip if there is a title."""
    found = add(
        parent, "rect", x=rect.x, y=rect.y, width=rect.width, height=rect.height, rx=4, class_=class_
    )  # fmt: skip
    if title:
        add(found, "title").text = escaped(clipped(title, _LONGEST_TITLE), keep="\n")
    return found


def text(parent: ET.Element, x: float, y: float, words: str, class_: str = "", *, room: float = 0) -> None:
    """Add a text; with ``room``, it is cut to so many units of the small text."""
    shown = escaped(words)
    if room:
        shown = clipped(shown, max(2, int(room / LETTER)))
    add(parent, "text", x=x, y=y, **({"class_": class_} if class_ else {})).text = shown


def clipped(words: str, most: int) -> str:
    """Return at most so many characters of a text, with … in place of the rest."""
    return words if len(words) <= most else words[: most - 1] + "…"


def link_class(kind: str) -> str:
    """Return the classes of the lines of a link; mixed and unknown links have one of their own."""
    return f"link {LINK_CLASSES.get(kind, OTHER_LINKS)}"


def rail(parent: ET.Element, one: Rail) -> None:
    """Add the lines of a link and its name."""
    path = [f"M{number(start)} {number(y)} H{number(end)}" for start, end, y in one.bars]
    path += [f"M{number(x)} {number(top)} V{number(bottom)}" for x, top, bottom in one.ticks]
    if one.spine is not None and len(one.bars) > 1:
        first, last = one.bars[0][2], one.bars[-1][2]
        path.append(f"M{number(one.spine)} {number(first)} V{number(last)}")
    add(parent, "path", d=" ".join(path), class_=link_class(one.kind))
    _, end, y = one.bars[0]
    text(parent, end + 4, y + 3.5, one.kind, "soft")


def symbol(parent: ET.Element, x: float, y: float, kind: str, label: str, *, scale: float = 1) -> None:
    """Add the symbol of a mark with its number."""
    place = f"translate({number(x)} {number(y)})" + (f" scale({scale})" if scale != 1 else "")
    group = add(parent, "g", transform=place)
    add(group, "path", d=_SHAPES[kind], class_=f"symbol {kind}")
    low = 5.5 if kind == "warning" else 3.6
    add(group, "text", x=0, y=low, class_=f"number {kind}").text = label
