"""Tables and lists of servers that were joined by hand, seen from their text and their ranks.

The tables of single hosts all have ranks from 0 on, so that a file of several needs new numbers, which
``hccl-tools merge`` gives.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.document import one_edit

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The longest text whose values are read again.
_LONGEST = 1 << 24
#: The characters of an id that a sentence shows.
_SHOWN = 64


def ranks_on(servers: Any) -> str:
    """Return how the ranks of servers are to be numbered on, as the end of a hint; "" if none repeats."""
    seen, before = set[Any](), 0
    for server in servers if type(servers) is list else ():
        devices = server.get("device") if type(server) is dict else None
        listed = [one for one in devices if type(one) is dict] if type(devices) is list else []
        own = [rank for one in listed if type(rank := one.get("rank_id")) in (str, int)]
        if before and own and not seen.isdisjoint(own):
            name = str(server.get("server_id", "?"))[:_SHOWN]
            return (
                f'; then continue the rank numbers with {before} in server "{name}": its ranks are those of '
                "a server before it"
            )
        seen.update(own)
        before += len(own)
    return ""


def ranks_on_after(text: str) -> str:
    """Return the same for the table that a corrected text has."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return ranks_on(value.get("server_list")) if type(value) is dict else ""


def entries_of(text: str) -> list[Any] | None:
    """Return all entries of objects and lists that stand one after the other; None for other texts."""
    if len(text) > _LONGEST:
        return None
    inner = re.sub(r"\]\s*,?\s*\[", ",", text.strip().strip("[]").strip())
    try:
        found = json.loads("[" + re.sub(r"}\s*,?\s*{", "},{", inner) + "]")
    except (ValueError, RecursionError):
        return None
    return found if type(found) is list else None


def first_of_two(text: str, start: int) -> str | None:
    """Return the brackets that the first of two tables lacks; None if its servers are all in the second.

    Args:
        start: The offset of the second table, which is whole.
    """
    closers, _ = one_edit.at_end(text[:start], start)
    try:
        first, second = json.loads(text[:start].rstrip().rstrip(",") + closers), json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    names = [_names(one) for one in (first, second)]
    return None if not names[0] or names[0] <= names[1] else closers


def _names(table: Any) -> set[str]:
    servers: Sequence[Any] = table.get("server_list") or () if type(table) is dict else ()
    return {
        str(one["server_id"])
        for one in servers
        if type(one) is dict and "server_id" in one and one.get("device")
    }
