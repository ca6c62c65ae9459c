"""The name that is missing in a row of numbered server_ids. This module declares no rules.

The counts of a group say that an instance is missing, and its ranks do not say which: HCCL numbers them itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.value_order import number_at_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest names that show a row beside the one that is missing.
_LEAST = 3


def _missing(names: Sequence[str]) -> tuple[str, int] | None:
    """Return the only name that is missing in a row, and the place of the one after it."""
    found = list[tuple[str, int]]()
    parts = [number_at_end(name) for name in names]
    for place, (before, own) in enumerate(pairwise(parts), 1):
        if before is None or own is None or before[0] != own[0] or names[place] != f"{own[0]}{own[1]}":
            return None
        step = own[1] - before[1]
        if step not in {1, 2}:
            return None
        if step > 1:
            found.append((f"{own[0]}{own[1] - 1}", place))
    return found[0] if len(names) >= _LEAST and len(found) == 1 else None


def in_row(subject: Subject, servers: Sequence[int]) -> tuple[str, tuple[Related, ...]]:
    """Return which instance is probably missing, as a phrase, and the place of the next one; nothing if no name is."""
    names = [subject.table.servers[index].server_id for index in servers]
    found = _missing(names)
    if found is None:
        return "", ()
    name, place = found
    before, after = (quoted(one) for one in names[place - 1 : place + 1])
    return (
        f", probably that of {quoted(name)} between {before} and {after}",
        (Related(subject.server_path(servers[place], "server_id"), "the one after it"),),
    )
