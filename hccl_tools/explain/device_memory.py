"""A device without memory of which another process holds a large part, by torch_npu's own numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.knowledge.registry import messages

if TYPE_CHECKING:
    from hccl_tools.explain.case import Cause

_FULL, _HELD = "HCM657", "HCM659"
_SIZES = re.compile(
    r"(?P<total>[\d.]{1,12}) (?P<of_total>[KMG]iB) total capacity.*?"
    r"(?P<free>[\d.]{1,12}) (?P<of_free>[KMG]iB) free;"
    r" (?P<reserved>[\d.]{1,12}) (?P<of_reserved>[KMG]iB) reserved"
)
_IN_GIB = {"KiB": 1 / 1024**2, "MiB": 1 / 1024, "GiB": 1.0}
#: The part of a device that others must hold; the driver and the communicators take some of it.
_LARGE = 0.25


def with_others(first: Cause) -> Cause:
    """Return the cause with how much memory other processes hold, if that is a large part."""
    seen = first.seen
    if first.message.id != _FULL or seen is None or (found := _SIZES.search(seen.event.text)) is None:
        return first
    try:
        total, free, own = (
            float(found[name]) * _IN_GIB[found[f"of_{name}"]] for name in ("total", "free", "reserved")
        )
    except ValueError:
        return first
    others = total - free - own
    if others < _LARGE * total:
        return first
    message = messages()[_HELD]
    reason = f"this process has {own:.1f} GiB of {total:.1f} GiB, {free:.1f} GiB are free"
    reason += f": others hold about {others:.1f} GiB"
    reason = f"{first.reason}; {reason}" if first.reason else reason
    return first._replace(
        message=message, seen=seen._replace(event=seen.event._replace(message=message)), reason=reason
    )
