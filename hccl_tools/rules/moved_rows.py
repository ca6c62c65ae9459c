"""Columns whose values are those of a regular table in another order (HCC631, HCC632). This module declares no rules.

The values of a regular table are a number of each server plus a number of each device. If the values of a table can be put
together in this way, and one exchange or move leads from there to the table, that is what probably happened to it. Two
servers are enough: no majority of them is needed.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_columns import packed_addresses
from hccl_tools.rules.address_order import READ, address_numbers, are_in_place
from hccl_tools.rules.registry import shared
from hccl_tools.rules.server_places import LEAST_SERVERS, host_numbers, owners_by_order
from hccl_tools.rules.value_order import regular_bases, schemes_of, sdid_scheme, super_device_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest devices of a server that show a scheme, and the fewest rows that are moved if a value is lost.
_LEAST_DEVICES, _LEAST_MOVED = 3, 3
#: The number of addresses of a usual network; two servers alone have one distance.
_NETWORK, _TWO = 256, 2


class MovedRows(NamedTuple):
    """Rows of several servers whose values are those of each other.

    Attributes:
        rows: These rows in the order of the file.
        right: The values that they have in a regular table.
        step: 1 if each has the value of the next one, and the last that of the first; -1 if each has that of the one before;
            0 if they are exchanged.
        is_half: Whether they are half of the devices of two servers, of which the other half may be exchanged instead.
        is_lost: Whether one of the values is lost, and another one stands in the last of these rows, or in the first.
    """

    rows: list[int]
    right: dict[int, int]
    step: int
    is_half: bool = False
    is_lost: bool = False


@shared
def moved_addresses(subject: Subject) -> MovedRows | None:
    """Return the rows of several servers whose addresses are exchanged or moved by one row; None if others explain more."""
    numbers, ips = address_numbers(subject), subject.table.device_ips
    if numbers is None or not are_in_place(subject) or regular_bases(subject, numbers) is not None:
        return None
    if [*ips] == sorted(ips) != [*_in_order(ips, numbers)]:
        return None  # HCC645 reports a column that was sorted as text.
    found = moved_rows(subject, numbers) or with_a_lost_value(subject, numbers)
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
    if None in known:
        return None
    numbers = cast("list[int]", known)  # None of them is None: no copy of a long list.
    if (
        regular_bases(subject, numbers) is not None
        or len({*numbers}) < len(numbers)
        or [*texts] == sorted(texts)
    ):
        return None
    return moved_rows(subject, numbers, sdid_scheme) or with_a_lost_value(subject, numbers, sdid_scheme)


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
    found = list[MovedRows]()
    for scheme in _schemes(subject, values, known, is_steady=is_steady):
        right = _regular(values, scheme)
        if right is None:
            continue
        if (rows := [row for row, value in enumerate(values) if right[row] != value]) == []:
            return None  # The table is regular.
        if (event := _event(subject, values, right, rows)) is not None:
            found.append(event)
    return min(found, key=lambda one: len(one.rows), default=None)


def _schemes(
    subject: Subject, values: Sequence[int], known: Callable[[int], int] | None, *, is_steady: bool = False
) -> list[list[int]]:
    """Return the numbers of the devices of each server to try; empty for a regular table, or one of other servers."""
    devices, servers = subject.table.devices_of_each, subject.table.servers
    if devices is None or len(devices) < _LEAST_DEVICES or len(servers) < 2 or len({*devices}) < len(devices):
        return []
    if regular_bases(subject, values) is not None:
        return []
    schemes = [{one: known(one or 0) for one in devices}] if known else []
    schemes += schemes_of(subject, values, is_steady=is_steady)
    return [[scheme.get(one, 0) for one in devices] for scheme in schemes]


def with_a_lost_value(
    subject: Subject, values: Sequence[int], known: Callable[[int], int] | None = None
) -> MovedRows | None:
    """Return the rows that are moved by one because a value was deleted or inserted; None if that does not explain all.

    The value that is left over is the only one of its network, or the last or first one.
    """
    if regular_bases(subject, values) is not None:
        return None
    networks = Counter(value // _NETWORK for value in values)
    alone = [row for row, value in enumerate(values) if networks[value // _NETWORK] == 1]
    last = len(values) - 1
    for scheme in _schemes(subject, values, known):
        for surplus in dict.fromkeys([*(alone if len(alone) == 1 else ()), last, 0]):
            rest = [*values[:surplus], *values[surplus + 1 :]]
            whole = dict(_completed(rest, scheme))
            if surplus in whole or any(right[at] == values[surplus] for at, right in whole.items()):
                return None  # This value alone is another one, or none is lost.
            found = [
                MovedRows(
                    [*range(min(at, surplus), max(at, surplus) + 1)],
                    dict(enumerate(right)),
                    1 if at < surplus else -1,
                    is_lost=True,
                )
                for at, right in whole.items()
                if abs(at - surplus) >= _LEAST_MOVED
            ]
            # A value that is deleted or inserted moves all rows below it.
            for is_likely in (lambda one: one.rows[-1] == last, lambda one: _are_even(subject, one.right)):
                found = [one for one in found if len(found) == 1 or is_likely(one)]
            if found:
                return found[0] if len(found) == 1 else None
    return None


def inserted_address(subject: Subject, row: int) -> MovedRows | None:
    """Return the rows from a repeated address on if they have the addresses of the rows above; None if they have not.

    A cell was inserted there with the value of the cell above it, and the last address of the column is lost.
    """
    texts = subject.table.device_ips
    if not subject.damaged.isdisjoint(READ) or not all(isinstance(text, str) for text in texts):
        return None
    known = [packed_addresses(subject)[text] for text in texts]
    if len({len(one or b"") for one in known}) > 1 or not known[0]:
        return None
    values = [int.from_bytes(one or b"", "big") for one in known]
    values[row] = (max(values) // _NETWORK + 2) * _NETWORK  # As if it were the only one of its network.
    found = with_a_lost_value(subject, values)
    is_it = found is not None and found.is_lost and found.step < 0 and found.rows[0] == row
    return found if found is not None and is_it and found.rows[-1] == len(values) - 1 else None


def _are_even(subject: Subject, right: Mapping[int, int]) -> bool:
    """Return whether the servers have even distances; of two servers, these are a whole network or the devices of one."""
    servers = subject.table.servers
    first = [right[server.rows[0]] for server in servers]
    steps = {after - before for before, after in pairwise(first)}
    return len(steps) == 1 and (
        len(servers) > _TWO or steps <= {len(servers[0].rows)} or not steps.pop() % _NETWORK
    )


def _completed(rest: Sequence[int], scheme: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the rows at which one more value makes a column regular, with this column."""
    size, number = len(scheme), (len(rest) + 1) // len(scheme)
    before = [rest[row] - scheme[row % size] for row in range(len(rest))]
    after = [rest[row] - scheme[(row + 1) % size] for row in range(len(rest))]
    whole_before = [len({*before[size * one : size * (one + 1)]}) == 1 for one in range(number)]
    whole_after = [len({*after[size * one - 1 : size * (one + 1) - 1]}) == 1 for one in range(1, number)]
    end = next((one for one, is_whole in enumerate(whole_before) if not is_whole), number - 1)
    begin = next((one for one in range(number - 1, 0, -1) if not whole_after[one - 1]), 0)
    known = {*rest}
    for one in range(begin, end + 1):
        upper, lower = before[size * one : size * (one + 1)], after[size * one : size * (one + 1) - 1]
        highest = _equal_at_begin(upper)
        lowest = len(lower) - _equal_at_begin(lower[::-1])
        for at in range(lowest, min(highest, size - 1) + 1):
            bases = {*upper[: min(at, 1)], *(lower[-1:] if at < len(lower) else ())}
            if len(bases) == 1 and (value := bases.pop() + scheme[at]) not in known:
                yield size * one + at, [*rest[: size * one + at], value, *rest[size * one + at :]]


def _equal_at_begin(values: Sequence[int]) -> int:
    """Return how many values at the begin are equal."""
    return next((at for at, value in enumerate(values) if value != values[0]), len(values))


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
