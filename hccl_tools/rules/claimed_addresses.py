"""Which of two servers with the same addresses has those of the other one (HCC404). This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.rules.address_columns import addresses_read, packed_addresses
from hccl_tools.rules.address_order import address_text
from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: The fewest other devices of the wrong server that show its own addresses, and of a server that has a shape.
_LEAST_REST, _LEAST_ROWS = 2, 3
_IPV4_LENGTH = 4


def right_addresses(subject: Subject, index: int, other: int) -> dict[int, str]:
    """Return the addresses that the rows of a server should have which has some of another server's; empty if it is not certain.

    The addresses of the other server are one series. Those of the server itself are none, but its other addresses begin
    a series like that, whose values no device has.
    """
    of_each = _by_device(subject)
    numbers, whole = of_each[index], of_each[other]
    if (
        numbers.keys() != whole.keys()
        or len(whole) < _LEAST_ROWS
        or not _is_series(whole)
        or _is_series(numbers)
    ):
        return {}
    taken = set(whole.values())
    rest = [device for device, number in numbers.items() if number not in taken]
    if len(rest) < _LEAST_REST or len({numbers[device] - whole[device] for device in rest}) != 1:
        return {}
    step = numbers[rest[0]] - whole[rest[0]]
    devices = subject.table.device_numbers
    expected = {
        row: whole[devices[row] or 0] + step
        for row in subject.table.servers[index].rows
        if numbers[devices[row] or 0] in taken
    }
    if not _used(subject).isdisjoint(expected.values()):
        return {}
    return {row: address_text(subject, one) for row, one in expected.items()}


@shared
def _used(subject: Subject) -> set[int]:
    return {number for own in _by_device(subject) for number in own.values()}


@shared
def _by_device(subject: Subject) -> list[dict[int, int]]:
    """Return the IPv4 addresses of each server's devices as numbers, by device_id; empty if some cannot be read."""
    return [_of_server(subject, index) for index in range(len(subject.table.servers))]


def _of_server(subject: Subject, index: int) -> dict[int, int]:
    read, known, devices = addresses_read(subject), packed_addresses(subject), subject.table.device_numbers
    found = dict[int, int]()
    for row in subject.table.servers[index].rows:
        address = known[read[row][0]] if len(read[row]) == 1 else None
        device = devices[row]
        if address is None or len(address) != _IPV4_LENGTH or device is None or device in found:
            return {}
        found[device] = int.from_bytes(address, "big")
    return found


def _is_series(numbers: dict[int, int]) -> bool:
    """Return whether each address is the one before it and a number that is the same for each device."""
    (first, begin), (second, following) = sorted(numbers.items())[:2]
    step, rest = divmod(following - begin, second - first)
    return not rest and all(number == begin + step * (device - first) for device, number in numbers.items())
