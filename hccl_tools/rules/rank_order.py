"""The ranks that devices have by the order of the others. This module declares no rules.

A rank that occurs twice belongs to one of two devices, and a rank that no device has is not always that of the device
on which a rule finds the fault. In most tables the ranks follow the order of the devices, which tells the two apart.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.numbers import as_read
from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

#: The least number of ranks that show an order, and the most servers of which a hint names the ranks.
_LEAST, _MOST_NAMED = 4, 3


@shared
def ranks_by_order(subject: Subject) -> dict[int, int]:
    """Return the rows whose ranks are not those that they have by the order of the others, with these ranks.

    The result is empty if the other ranks show no order.
    """
    numbers = subject.table.rank_numbers
    if len(numbers) < _LEAST or "device_id" in subject.damaged:
        return {}
    own = _by_their_servers(subject)
    expected: Sequence[int] = own if own is not None else range(len(numbers))
    if any(
        len({*subject.table.device_ids[one.rows[0] : one.rows[-1] + 1]}) < len(one.rows)
        for one in subject.table.servers
        if one.rows
    ):
        return {}  # An entry occurs twice, and the others after it are moved.
    odd = {
        row: right
        for row, (number, right) in enumerate(zip(numbers, expected, strict=True))
        if number != right
    }
    return odd if len(odd) * 2 <= len(numbers) or _shift(subject, odd) else {}


def _by_their_servers(subject: Subject) -> list[int] | None:
    """Return the ranks of all rows by most ranks of their servers; None if these do not make up all ranks."""
    numbers, expected = subject.table.rank_numbers, list[int]()
    for server in subject.table.servers:
        bases = Counter(
            number - place for place, row in enumerate(server.rows) if (number := numbers[row]) is not None
        )
        base, times = bases.most_common(1)[0] if bases else (0, 0)
        if times * 2 <= len(server.rows) or [*server.rows] != [
            *range(len(expected), len(expected) + len(server.rows))
        ]:
            return None
        expected += range(base, base + len(server.rows))
    return expected if sorted(expected) == [*range(len(numbers))] else None


def _shift(subject: Subject, odd: dict[int, int]) -> int:
    """Return by how much all these ranks are too high, if they are those of the last rows; else 0."""
    numbers, rows = subject.table.rank_numbers, [*odd]
    if not rows or rows != [*range(rows[0], len(numbers))]:
        return 0
    shifts = {number - right if (number := numbers[row]) is not None else None for row, right in odd.items()}
    return shifts.pop() or 0 if len(shifts) == 1 else 0


@shared
def right_ranks(subject: Subject) -> str:
    """Return the hint that names the right ranks, "" if the order of the ranks does not show them."""
    odd, table = ranks_by_order(subject), subject.table
    of_server: dict[int, list[int]] = {}
    for row in odd:
        of_server.setdefault(table.server_of_row[row], []).append(row)
    first = next(iter(odd), 0)
    if len(of_server) > 1 and (shift := _shift(subject, odd)):
        which = "too high" if shift > 0 else "too low"
        return (
            f"the ranks from {named_devices(subject, [first])} on are each {which} by {abs(shift)}: by the order of the others they are "
            f"{odd[first]}-{odd[[*odd][-1]]}"
        )
    shown = [
        f"{named_devices(subject, rows)} {'has' if len(rows) == 1 else 'have'} {rank_list(odd[row] for row in rows)}"
        for rows in of_server.values()
    ]
    return f"by the order of the others, {and_more(shown, _MOST_NAMED)}" if shown else ""


def named_devices(subject: Subject, rows: list[int]) -> str:
    """Return devices of one server with it: ``devices 0-7 of server 2 ("10.0.0.2")``."""
    table = subject.table
    index = table.server_of_row[rows[0]]
    ids = [number for row in rows if (number := table.device_numbers[row]) is not None]
    noun = "device" if len(ids) == 1 else "devices"
    listed = fold(ids, ", ") if ids == sorted(ids) else ", ".join(map(str, ids))
    return f"{noun} {listed} of {named_host(subject, index)}"


def named_host(subject: Subject, index: int) -> str:
    """Return a server, or the node of a 2.0 table, as messages name it."""
    if subject.table.format == "2.0":
        return f"node {quoted(subject.table.servers[index].server_id)}"
    return named_server(subject, index)


def first_of_run(numbers: list[int | None]) -> int:
    """Return the first rank of a table whose ranks are consecutive, and 0 for others."""
    known = {number for number in numbers if number is not None}
    start = min(known, default=0)
    return start if known == set(range(start, start + len(numbers))) and None not in numbers else 0


def is_between(subject: Subject, absent: tuple[int, ...]) -> bool:
    """Whether the ranks after the absent ones follow each other, so that those alone are missing."""
    numbers, size = subject.table.rank_numbers, len(subject.table)
    return set(numbers) | set(absent) == set(range(size + len(absent)))


@shared
def absent_phrase(subject: Subject) -> str:
    """Return the ranks that no device has as a phrase; "" if every rank has a device."""
    size, numbers = len(subject.table), set(subject.table.rank_numbers)
    absent = [str(rank) for rank in range(size) if rank not in numbers]
    return f"no device has rank{'' if len(absent) == 1 else 's'} {and_more(absent)}" if absent else ""


def shown_rank(subject: Subject, row: int) -> str:
    """Return the rank id of a device as messages show it, with its number if that is not its text."""
    value, number = subject.table.rank_ids[row], subject.table.rank_numbers[row]
    return as_read(value, number) if isinstance(value, str) else str(value)
