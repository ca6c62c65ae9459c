"""Columns whose values are those of a regular table in another order (HCC631, HCC632). This module declares no rules.

The values of a regular table are a number of each server plus a number of each device. If the values of a table can be put
together in this way, and one exchange or move leads from there to the table, that is what probably happened to it. Two
servers are enough: no majority of them is needed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_order import READ, address_numbers, are_in_place
from hccl_tools.rules.registry import shared
from hccl_tools.rules.server_places import LEAST_SERVERS, host_numbers, owners_by_order
from hccl_tools.rules.value_order import regular_bases, schemes_of, sdid_scheme, super_device_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest devices of a server that show a scheme.
_LEAST_DEVICES = 3


class MovedRows(NamedTuple):
    """Rows of several servers whose values are those of each other.

    Attributes:
        rows: These rows in the order of the file.
        right: The values that they have in a regular table.
        step: 1 if each has the value of the next one, and the last that of the first; -1 if each has that of the one before;
            0 if they are exchanged.
        is_half: Whether they are half of the devices of two servers, of which the other half may be exchanged instead.
    """

    rows: list[int]
    right: dict[int, int]
    step: int
    is_half: bool = False


@shared
def moved_addresses(subject: Subject) -> MovedRows | None:
    """Return the rows of several servers whose addresses are exchanged or moved by one row; None if others explain more."""
    numbers, ips = address_numbers(subject), subject.table.device_ips
    if numbers is None or not are_in_place(subject) or [*ips] == sorted(ips) != [*_in_order(ips, numbers)]:
        return None  # HCC645 reports a column that was sorted as text.
    found = moved_rows(subject, numbers)
    return _of_the_right_half(subject, numbers, found) if found is not None and found.is_half else found


def _of_the_right_half(subject: Subject, values: Sequence[int], found: MovedRows) -> MovedRows:
    """Return the half that is exchanged by the server_ids, if these are numbered as the other servers are."""
    servers, owner = subject.table.servers, subject.table.server_of_row
    hosts, (one, other) = host_numbers(subject), sorted({owner[row] for row in found.rows})
    if hosts is None or len(servers) < LEAST_SERVERS:
        return found
    usual = [found.right.get(server.rows[0], values[server.rows[0]]) for server in servers]
    if owners_by_order(hosts, usual) == [*range(len(servers))]:
        return found._replace(is_half=False)
    usual[one], usual[other] = usual[other], usual[one]
    if owners_by_order(hosts, usual) != [*range(len(servers))]:
        return found
    pairs = [*zip(servers[one].rows, servers[other].rows, strict=True)]
    rest = {row: beside for pair in pairs if pair[0] not in found.right for row, beside in (pair, pair[::-1])}
    return MovedRows(sorted(rest), {row: values[beside] for row, beside in rest.items()}, 0)


def _in_order(texts: Sequence[str], numbers: Sequence[int]) -> list[str]:
    return [texts[row] for row in sorted(range(len(texts)), key=numbers.__getitem__)]


@shared
def moved_sdids(subject: Subject) -> MovedRows | None:
    """Return the rows of several servers whose super_device_ids are exchanged or moved by one row."""
    texts = subject.table.columns.get("super_device_id")
    if texts is None or None in texts or not subject.damaged.isdisjoint(READ):
        return None
    known = super_device_numbers(subject)
    if None in known or len({*known}) < len(known) or [*texts] == sorted(texts):
        return None
    return moved_rows(subject, [one or 0 for one in known], sdid_scheme)


def moved_rows(
    subject: Subject,
    values: Sequence[int],
    known: Callable[[int], int] | None = None,
    *,
    is_steady: bool = False,
) -> MovedRows | None:
    """Return the rows of several servers whose values are exchanged or moved by one row; None if no single event explains them.

    Args:
        values: The values of all rows, no two of which are equal.
        known: The scheme of the product.
        is_steady: As in ``order_of``.
    """
    devices, servers = subject.table.devices_of_each, subject.table.servers
    if devices is None or len(devices) < _LEAST_DEVICES or len(servers) < 2 or len({*devices}) < len(devices):
        return None
    if regular_bases(subject, values) is not None:
        return None
    schemes = [{one: known(one or 0) for one in devices}] if known else []
    found = list[MovedRows]()
    for scheme in (*schemes, *schemes_of(subject, values, is_steady=is_steady)):
        right = _regular(values, [scheme.get(one, 0) for one in devices])
        if right is None:
            continue
        if (rows := [row for row, value in enumerate(values) if right[row] != value]) == []:
            return None  # The table is regular.
        if (event := _event(subject, values, right, rows)) is not None:
            found.append(event)
    return min(found, key=lambda one: len(one.rows), default=None)


def _regular(values: Sequence[int], scheme: Sequence[int]) -> list[int] | None:
    """Return the regular column with the same values in which each server keeps most of its own; None if there is none."""
    low, left, base_of = min(scheme), {*values}, dict[int, int]()
    if len(left) < len(values):
        return None
    for value in sorted(values):
        if value in left:
            own = [value - low + number for number in scheme]
            if not left.issuperset(own) or len({*own}) < len(own):
                return None
            left.difference_update(own)
            base_of |= dict.fromkeys(own, value - low)
    size, bases = len(scheme), list[int]()
    for first in range(0, len(values), size):
        bases.append(Counter(map(base_of.__getitem__, values[first : first + size])).most_common(1)[0][0])
    if len({*bases}) < len(bases):
        return None
    return [base + number for base in bases for number in scheme]


def _event(
    subject: Subject, values: Sequence[int], right: Sequence[int], rows: list[int]
) -> MovedRows | None:
    """Return the one exchange or move that explains the rows with other values than in a regular column, if there is one."""
    owner, devices = subject.table.server_of_row, subject.table.device_numbers
    counts = Counter(owner[row] for row in rows)
    if len(counts) < 2:
        return None  # The order of the values explains what happened in one server.
    own, expected = [values[row] for row in rows], {row: right[row] for row in rows}
    usual = [right[row] for row in rows]
    if len(rows) == 2:
        return MovedRows(rows, expected, 0)
    if rows == [*range(rows[0], rows[0] + len(rows))]:
        if own == [*usual[1:], usual[0]]:
            return MovedRows(rows, expected, 1)
        if own == [usual[-1], *usual[:-1]]:
            return MovedRows(rows, expected, -1)
    if len(counts) != 2 or len({*counts.values()}) != 1:
        return None
    half = len(rows) // 2
    pairs = zip(rows[:half], rows[half:], strict=True)
    are_pairs = all(
        devices[one] == devices[other] and values[one] == right[other] and values[other] == right[one]
        for one, other in pairs
    )
    is_half = 2 * half == len(subject.table.servers[owner[rows[0]]].rows)
    return MovedRows(rows, expected, 0, is_half) if are_pairs else None
