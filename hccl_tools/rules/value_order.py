"""The order in which the values of a table follow its devices, and the values outside it. This module declares no rules.

The addresses and super_device_ids of a cluster are assigned by a scheme: the value of a device is a number of its server
plus a number of its device. A value that does not follow the scheme of nearly all others was exchanged or mistyped.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise, repeat
from operator import and_, sub
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import shared
from hccl_tools.table.hccl_numbers import read_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.rules.registry import Subject

#: The schemes of a table with few servers, which has no majority: one network, and four networks of two devices.
USUAL: tuple[Callable[[int], int], ...] = (
    lambda device: device,
    lambda device: device % 4 * 256 + device // 4,
    lambda device: device % 4 * 256 - device // 4,
)
#: The devices of one NPU of an A3, each of which is a die of it.
_DIES = 2


def sdid_scheme(device: int) -> int:
    """Return the number of a device in a super_device_id of an A3: its NPU, its die and its device_id."""
    return device // _DIES << 18 | device % _DIES << 16 | device


#: The number of most frequent schemes that are tried.
_TRIED = 2
#: The least number of devices of a server that can show its scheme, and of values that follow it in a table.
_LEAST_DEVICES, _LEAST_VALUES = 3, 6
#: A server in whose devices the values of no more than a half are others follows the scheme.
_HALF = 2
#: The bits of a super_device_id that are the device_id in a usual cluster.
DEVICE_BITS = 0xFFFF
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.ASCII | re.DOTALL)


class Order(NamedTuple):
    """The scheme of the values of a table.

    Attributes:
        first: For each server that follows the scheme, the number that it adds to those of its devices.
        expected: For each row outside the scheme, the value that it has by the scheme.
        groups: The rows whose values changed places among themselves, as lists; each list is one event.
        single: The other rows outside the scheme.
        moved_up: The runs of servers whose values are those of the next row of the file, as first and last index.
        moved_down: The runs of servers whose values are those of the row before.
    """

    first: dict[int, int]
    expected: dict[int, int]
    groups: list[list[int]]
    single: list[int]
    moved_up: list[tuple[int, int]]
    moved_down: list[tuple[int, int]]


def order_of(
    subject: Subject,
    values: Sequence[int],
    known: Callable[[int], int] | None = None,
    *,
    is_steady: bool = False,
) -> Order | None:
    """Return the scheme of the values of all rows; None if they follow none.

    Args:
        values: The values of all rows, in file order.
        known: The scheme of the product, of which fewer values are needed to show that it is used.
        is_steady: Whether the values of a single server differ by one step, so that its values alone are not a scheme.
    """
    table = subject.table
    devices = table.device_numbers
    if None in devices or len(table) < _LEAST_VALUES or len(values) != len(table):
        return None
    if (bases := regular_bases(subject, values)) is not None:
        return Order(bases, {}, [], [], [], [])
    return (_by_known(subject, values, known) if known else None) or _with_exceptions(
        subject, values, is_steady
    )


def regular_bases(subject: Subject, values: Sequence[int]) -> dict[int, int] | None:
    """Return the numbers of the servers of a table without exceptions, checked without a call per device."""
    devices = subject.table.devices_of_each
    if devices is None or len(devices) < _LEAST_DEVICES or len(subject.table.servers) < 3:
        return None
    columns = [values[index :: len(devices)] for index in range(len(devices))]
    if any(len(set(map(sub, column, columns[0]))) > 1 for column in columns):
        return None
    return dict(enumerate(columns[0]))


def _by_known(subject: Subject, values: Sequence[int], known: Callable[[int], int]) -> Order | None:
    """Return the order by the scheme of the product; None if less than half of the values of all servers follow it."""
    numbers, servers = subject.table.device_numbers, subject.table.servers
    if any(len({numbers[row] for row in server.rows}) < len(server.rows) for server in servers):
        return None
    order, follow = _by(subject, values, {one: known(one or 0) for one in {*numbers}})
    is_used = len(order.first) == len(servers) and follow * _HALF >= len(values) and follow >= _LEAST_VALUES
    return order if is_used else None


def _with_exceptions(subject: Subject, values: Sequence[int], is_steady: bool) -> Order | None:
    numbers, servers = subject.table.device_numbers, subject.table.servers
    if any(len({numbers[row] for row in server.rows}) < len(server.rows) for server in servers):
        return None  # A device_id is wrong, which other rules report.
    found = [_by(subject, values, scheme) for scheme in schemes_of(subject, values, is_steady=is_steady)]
    order, follow = max(found, key=lambda one: one[1])
    number = sum(len(servers[index].rows) for index in order.first)
    is_usual = len(order.first) * 3 >= len(servers) * 2 and follow * 3 >= number * 2
    return order if follow >= _LEAST_VALUES and is_usual else None


def _by(subject: Subject, values: Sequence[int], scheme: dict[int | None, int]) -> tuple[Order, int]:
    """Return the table by a scheme, and how many values the scheme explains."""
    numbers, servers = subject.table.device_numbers, subject.table.servers
    first, follow = _fitting(subject, values, scheme)
    outside = {
        row: base + scheme[numbers[row]]
        for index, base in first.items()
        for row in servers[index].rows
        if numbers[row] in scheme and values[row] != base + scheme[numbers[row]]
    }
    up, down = _moved(subject, values, scheme, outside)
    owner = subject.table.server_of_row
    of_runs = {index for begin, last in (*up, *down) for index in range(begin, last + 1)}
    others = {row: value for row, value in outside.items() if owner[row] not in of_runs}
    groups = _groups(subject, values, others)
    grouped = {row for rows in groups for row in rows}
    single = [row for row in others if row not in grouped]
    order = Order(first, others, groups, single, up, down)
    return order, follow + len(outside) - len(others)


def schemes_of(subject: Subject, values: Sequence[int], *, is_steady: bool) -> list[dict[int | None, int]]:
    """Return the schemes to try: for each device id the number that is added to that of its server."""
    numbers = subject.table.device_numbers
    shapes = Counter(
        tuple((numbers[row], values[row] - values[server.rows[0]]) for row in server.rows)
        for server in subject.table.servers
        if len(server.rows) >= _LEAST_DEVICES
    )
    different = set(numbers)
    usual: list[dict[int | None, int]] = [{one: scheme(one or 0) for one in different} for scheme in USUAL]
    steps = Counter(
        (values[row] - values[before]) // (device - last)
        for server in subject.table.servers
        for before, row in pairwise(server.rows)
        if (device := numbers[row] or 0) != (last := numbers[before] or 0)
        and (values[row] - values[before]) % (device - last) == 0
    )
    step = max(steps, key=steps.__getitem__) if steps else 1
    if step not in (0, 1):
        usual.append({one: step * (one or 0) for one in different})
    if is_steady and len(subject.table.servers) == 1:
        return usual
    return [*usual, *(dict(shape) for shape, _ in shapes.most_common()[:_TRIED])]


def _fitting(
    subject: Subject, values: Sequence[int], scheme: dict[int | None, int]
) -> tuple[dict[int, int], int]:
    """Return the numbers of the servers that follow a scheme, and how many devices follow it."""
    numbers, first, follow = subject.table.device_numbers, {}, 0
    for index, server in enumerate(subject.table.servers):
        rest = [values[row] - scheme[numbers[row]] for row in server.rows if numbers[row] in scheme]
        if len(rest) < _LEAST_DEVICES:
            continue
        base, count = Counter(rest).most_common(1)[0]
        if count == len(rest):
            first[index], follow = base, follow + count
            continue
        mean = sum(rest) // len(rest)
        own = [(scheme[numbers[row]], values[row]) for row in server.rows if numbers[row] in scheme]
        if sorted(mean + one for one, _ in own) == sorted(value for _, value in own):
            base, count = mean, rest.count(mean)  # The values are those of the server, in another order.
        elif count * _HALF < len(rest):
            continue
        first[index], follow = base, follow + count
    return first, follow


def _groups(subject: Subject, values: Sequence[int], outside: dict[int, int]) -> list[list[int]]:
    """Return the rows that have the values of each other: those of the same servers together."""
    right = {value: row for row, value in outside.items()}
    owner, groups, seen = subject.table.server_of_row, dict[frozenset[int], list[int]](), set[int]()
    for row in outside:
        chain = list[int]()
        at: int | None = row
        while at is not None and at not in seen:
            seen.add(at)
            chain.append(at)
            at = right.get(values[at])
        if len(chain) > 1 and at == row:
            groups.setdefault(frozenset(owner[one] for one in chain), []).extend(chain)
    return [sorted(rows) for rows in groups.values()]


def _moved(
    subject: Subject, values: Sequence[int], scheme: dict[int | None, int], outside: dict[int, int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the runs of servers whose values are moved by one row, up and down."""
    servers = subject.table.servers
    step = scheme.get(1, 0) - scheme.get(0, 0)
    if not step or not outside:
        return [], []
    up, down = list[int](), list[int]()
    for index in range(len(servers) - 1):
        last, first = servers[index].rows[-1], servers[index + 1].rows[0]
        if values[first] != values[last] + step:
            continue
        before, after = values[last] - step, values[first] + step
        up += [index] if last in outside and values[servers[index].rows[-2]] != before else []
        down += [index + 1] if first in outside and values[servers[index + 1].rows[1]] != after else []
    return [(begin, last + 1) for begin, last in _runs(up)], [
        (begin - 1, last) for begin, last in _runs(down)
    ]


def _runs(indexes: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for index in indexes:
        if found and index == found[-1][1] + 1:
            found[-1] = (found[-1][0], index)
        else:
            found.append((index, index))
    return found


def number_at_end(name: str) -> tuple[str, int] | None:
    """Return the number at the end of a name, and what stands before it; None for a name without one."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


class Names(NamedTuple):
    """How the server_ids of a table are numbered beside the values of their devices.

    Attributes:
        begin: What stands before the number of each name.
        width: The number of digits that each number is padded to with zeros; 0 without padding.
        numbers: The number of each server_id; None for one of another kind.
        step: The difference of the values of two servers whose numbers differ by 1.
        base: The value of a server with the number 0.
    """

    begin: str
    width: int
    numbers: list[int | None]
    step: int
    base: int

    def name_of(self, value: int) -> str | None:
        """Return the server_id of the server that has a value by the scheme; None if there is none."""
        number, rest = divmod(value - self.base, self.step)
        return None if rest or number < 0 else f"{self.begin}{str(number).zfill(self.width)}"


def names_of(subject: Subject, first: dict[int, int]) -> Names | None:
    """Return how the server_ids follow the values of their devices; None if they do not.

    Args:
        first: The number of each server, as in ``Order``.
    """
    parts = [_NUMBERED.fullmatch(server.server_id) for server in subject.table.servers]
    begins = Counter(one[1] for one in parts if one is not None)
    if not begins or len(first) < _LEAST_DEVICES:
        return None
    begin = begins.most_common(1)[0][0]
    digits = [one[2] if one is not None and one[1] == begin else None for one in parts]
    width = max((len(one) for one in digits if one is not None and one[0] == "0"), default=0)
    numbers = [None if one is None else int(one) for one in digits]
    known = [(number, value) for index, value in first.items() if (number := numbers[index]) is not None]
    in_order = zip(sorted(number for number, _ in known), sorted(value for _, value in known), strict=True)
    steps = Counter(
        (value - before) // (number - last)
        for (last, before), (number, value) in pairwise(in_order)
        if number > last and (value - before) % (number - last) == 0
    )
    step = steps.most_common(1)[0][0] if steps else 0
    if step <= 0:
        return None
    base, count = Counter(value - step * number for number, value in known).most_common(1)[0]
    is_usual = count > 1 and count * _HALF >= len(first)
    return Names(begin, width, numbers, step, base) if is_usual else None


def other_names(names: Names, first: dict[int, int]) -> list[int]:
    """Return the servers whose server_ids do not follow the values of their devices."""
    return [
        index
        for index, value in first.items()
        if (number := names.numbers[index]) is None or value != names.base + names.step * number
    ]


def other_devices(subject: Subject, numbers: Sequence[int | None]) -> dict[int, None]:
    """Return the rows whose super_device_ids have other low bits than their device_id; empty if many have."""
    devices = subject.table.device_numbers
    wrong = dict.fromkeys(
        row
        for row, (number, device) in enumerate(zip(numbers, devices, strict=True))
        if number is not None and number & DEVICE_BITS != device
    )
    return wrong if len(wrong) * 2 <= len(devices) >= _LEAST_VALUES else {}


@shared
def super_device_numbers(subject: Subject) -> list[int | None]:
    """Return the super_device_ids as numbers, in file order; the table must have this column."""
    return read_column(subject.table.column("super_device_id"))


def rows_of_other_bits(subject: Subject, numbers: Sequence[int]) -> list[int]:
    """Return the rows whose super_device_ids have the low bits of other devices, if all are there in another order.

    The result is empty if most super_device_ids have the low bits of their own device, and are not in the order of text.
    """
    devices = subject.table.device_numbers
    bits = [*map(and_, numbers, repeat(DEVICE_BITS))]
    if bits == [*devices]:
        return []
    texts = subject.table.column("super_device_id")
    rows = [row for row, (one, device) in enumerate(zip(bits, devices, strict=True)) if one != device]
    if [*texts] == sorted(texts) and [*numbers] != sorted(numbers):
        return rows if len(rows) >= _LEAST_DEVICES else []  # The column was sorted as text.
    each = subject.table.servers
    are_all = all(
        {bits[row] for row in server.rows} == {devices[row] for row in server.rows} for server in each
    )
    return rows if are_all and len(rows) * _HALF > len(devices) >= _LEAST_VALUES else []
