"""Entries of a rank_list that are there twice with all their values (HCC203, HCC204). This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.rules.registry import Finding, shared

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

_READ = frozenset({"device_id", "level_list", "local_id", "rank_id"})


@shared
def entries_again(subject: Subject) -> dict[int, int]:
    """Return the rows of a 2.0 table that repeat an earlier entry with its rank, with that row.

    The result is empty unless the ranks are 0 to N-1 without these rows: only then it is certain that they are too much.
    """
    table = subject.table
    numbers = table.rank_numbers
    if table.format != "2.0" or not subject.damaged.isdisjoint(_READ) or len({*numbers}) == len(numbers):
        return {}
    columns = [table.column(key) for key in ("local_id", "device_id", "level_list")]
    first: dict[Any, int] = {}
    found = {
        row: seen
        for row, number in enumerate(numbers)
        if (seen := first.setdefault(number, row)) != row and all(one[row] == one[seen] for one in columns)
    }
    rest = {number for row, number in enumerate(numbers) if row not in found}
    return found if rest == {*range(len(numbers) - len(found))} else {}


def are_counted_once(subject: Subject) -> bool:
    """Return whether rank_count is right without the entries that are there twice: HCC204 reports them then."""
    found = entries_again(subject)
    return bool(found) and (subject.table.declared or {}).get("rank_count") == len(subject.table) - len(found)


def said_of_entries(subject: Subject) -> tuple[str, str]:
    """Return message and hint on the entries that are there twice."""
    found, numbers = entries_again(subject), subject.table.rank_numbers
    one, left = len(found) == 1, len(subject.table) - len(found)
    ranks = rank_list(sorted({numbers[row] or 0 for row in found}))
    nodes = {subject.table.server_of_row[row] for row in found}
    node = f" of node {quoted(subject.table.servers[nodes.pop()].server_id[:64])}" if len(nodes) == 1 else ""
    which = f"entr{'y' if one else 'ies'} {fold(row + 1 for row in found)} of rank_list"
    count = ": rank_count is then right" if are_counted_once(subject) else f' and write "rank_count": {left}'
    return (
        f"{which} {'is' if one else 'are'} {ranks}{node} again, with all values",
        f"remove {'it' if one else 'them'}{count}",
    )


def of_entries(subject: Subject) -> Finding:
    """Return the finding on the entries that are there twice."""
    (row, seen), *_ = entries_again(subject).items()
    message, hint = said_of_entries(subject)
    related = (Related(("rank_list", seen, "rank_id"), "the first of the two"),)
    return Finding(message, ("rank_list", row, "rank_id"), hint, related)
