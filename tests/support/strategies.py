"""Hypothesis strategies: valid tables of every format, and the same with something broken."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("1.0", "1.2", "2.0", "group_list")
_COUNTS = {"1.0": (1, 2, 4, 8), "1.2": (1, 2, 8, 16), "2.0": (1, 2, 8), "group_list": (1, 2, 4, 8)}
#: Values that stand where they should not: every JSON type, numbers at limits, texts that look like others.
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e300, 2**64, [], {}, [[]], "", " ", "0", "1", "-1", "01", "1a", "9" * 30,
    "1.0", "2.0", "completed", "10.0.0.1", "::1", "fd00::1%eth0", "0.0.0.0", "x" * 200, "節", "\u0000",
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn, formats: tuple[str, ...] = FORMATS) -> Any:
    """A table without fault for its format's own product."""
    table_format = draw(st.sampled_from(formats))
    servers = draw(st.sampled_from((1, 2, 4)))
    devices = (
        8
        if servers > 1 and table_format in ("1.0", "group_list")
        else draw(st.sampled_from(_COUNTS[table_format]))
    )
    pods = draw(st.sampled_from((1, 2))) if servers > 1 else 1
    value = table(table_format, servers, devices, pods)
    if draw(st.booleans()):
        value["comment"] = draw(st.text(st.characters(codec="utf-8"), max_size=5))
    return value


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (holder, key) of a parsed document."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        holder = todo.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                todo.append(holder[key])
    return found


@st.composite
def damaged_tables(draw: st.DrawFn) -> Any:
    """A table with one to four random damages: a value replaced, dropped, or copied from elsewhere."""
    value = copy.deepcopy(draw(tables()))
    damage(draw, value)
    return value


def damage(draw: Callable[..., Any], value: Any) -> None:
    """Replace, drop or copy one to four values of a document."""
    for _ in range(draw(st.integers(1, 4))):
        spots = places(value)
        if not spots:
            break
        holder, key = spots[draw(st.integers(0, len(spots) - 1))]
        action = draw(st.sampled_from(("replace", "drop", "copy")))
        if action == "replace":
            holder[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
        elif action == "drop":
            del holder[key]
        else:
            other, name = spots[draw(st.integers(0, len(spots) - 1))]
            holder[key] = copy.deepcopy(other[name])
