"""super_device_ids that slipped by one row in a server, as in a spreadsheet. This module declares no rules.

One device has none, and each other device has that of its neighbour. Only the empty one is an error for HCCL, and a remedy
for it alone would leave all others wrong.
"""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import count
from hccl_tools.rules.commands import how_super_device
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.value_order import DEVICE_BITS, super_device_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

#: The least number of neighbours whose values show that a column has slipped.
_LEAST = 3


@shared
def slipped_ids(subject: Subject) -> dict[int, int]:
    """Return the rows without a super_device_id in whose servers all others have that of a neighbour.

    The result has 1 for a row if the others have that of the next device, -1 if that of the device before.
    """
    table, numbers = subject.table, super_device_numbers(subject)
    if None not in numbers or None in table.device_numbers:
        return {}
    found = {}
    for index, server in enumerate(table.servers):
        rows = list(server.rows)
        empty = [row for row in rows if numbers[row] is None]
        if len(empty) != 1 or empty[0] not in (rows[0], rows[-1]) or len(rows) <= _LEAST:
            continue
        step = 1 if empty[0] == rows[-1] else -1
        if _has_slipped(subject, index, rows[:-1] if step > 0 else rows[1:], step):
            found[empty[0]] = step
    return found


def _has_slipped(subject: Subject, index: int, rows: Sequence[int], step: int) -> bool:
    """Return whether the super_device_ids of rows fit their neighbours, and not themselves."""
    known, devices = super_device_numbers(subject), subject.table.device_numbers
    values = [known[row] or 0 for row in rows]
    own = [devices[row] or 0 for row in rows]
    others = [devices[row + step] or 0 for row in rows]
    low = [value & DEVICE_BITS for value in values]
    if low == others and low != own:
        return not _has_other_bits(subject, index)
    for other in subject.table.servers:
        schemes = {devices[row]: known[row] for row in other.rows}
        if other is subject.table.servers[index] or None in schemes.values():
            continue
        steps = [[schemes.get(one) for one in each] for each in (others, own)]
        if any(None in each for each in steps):
            continue
        beside, itself = ({*map(sub, values, [one or 0 for one in each])} for each in steps)
        return len(beside) == 1 and len(itself) > 1
    return False


def _has_other_bits(subject: Subject, index: int) -> bool:
    """Return whether another server has super_device_ids of which the low bits are not the device_id."""
    known, devices = super_device_numbers(subject), subject.table.device_numbers
    return any(
        (number := known[row]) is not None and number & DEVICE_BITS != devices[row]
        for other, server in enumerate(subject.table.servers)
        if other != index
        for row in server.rows[:_LEAST]
    )


def slipped_finding(subject: Subject, row: int, *, is_absent: bool = False) -> Finding:
    """Return the finding on a row of ``slipped_ids``."""
    table, step = subject.table, slipped_ids(subject)[row]
    server = table.servers[table.server_of_row[row]]
    beside = "next device" if step > 0 else "device before"
    first, last = server.rows[0], server.rows[-1]
    known = last if step > 0 else first
    move = "down" if step > 0 else "up"
    return Finding(
        f"the super_device_ids of server {quoted(server.server_id)} have slipped by one row: device {table.device_ids[known]} has none, and each "
        f"other device has that of the {beside}",
        subject.device_path(row, *(() if is_absent else ("super_device_id",))),
        f"do not fill in device {table.device_ids[known]} alone: move all {count(len(server.rows) - 1, 'id')} {move} by one device, and write the "
        f"lost id of device {table.device_ids[first if step > 0 else last]}; {how_super_device(subject, first if step > 0 else last)}, and so on for each "
        "device",
    )
