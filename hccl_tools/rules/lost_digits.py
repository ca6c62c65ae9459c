"""Numbers and names of which a cut of text took a digit (HCC632, HCC633). This module declares no rules.

What is left is still a number or an address, so that HCCL accepts it. The low 16 bits of a super_device_id are the
device_id, and the server_ids of a cluster follow each other: both show what is missing.
"""

from __future__ import annotations

import re
from itertools import repeat
from operator import and_, sub
from typing import TYPE_CHECKING, cast

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import how_super_device, shown_host
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.server_places import host_numbers
from hccl_tools.rules.value_order import DEVICE_BITS, number_at_end, super_device_numbers
from hccl_tools.table.addresses import is_private, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.rules.registry import Subject

_READ = frozenset({"device_id", "server_id", "super_device_id"})
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)
#: The fewest devices whose numbers show a lost digit, and the fewest servers whose names do, by the network or by their order.
_LEAST_DEVICES, _LEAST_ADDRESSES, _LEAST_NAMES, _LEAST_ORDER = 2, 2, 3, 4
#: The second digits of the addresses of private networks that begin with 1 and are addresses without it.
_SECOND_DIGITS = ("7", "9")
_ENDS: dict[str, Callable[[str, str], str]] = {
    "last": lambda text, digit: text + digit,
    "first": lambda text, digit: digit + text,
}


class LostDigits(NamedTuple):
    """A server whose super_device_ids lost a digit.

    Attributes:
        end: Which digit it is: ``first`` or ``last``.
        right: The whole number of each row of which it is certain, in the order of the file; None for others.
    """

    end: str
    right: list[str | None]


@shared
def lost_sdid_digits(subject: Subject) -> dict[int, LostDigits]:
    """Return the servers whose super_device_ids have the device_ids in their low bits if a digit is added to each, by index."""
    table, texts = subject.table, subject.table.columns.get("super_device_id")
    if texts is None or table.format != "1.2" or not subject.damaged.isdisjoint(_READ):
        return {}
    numbers, devices = super_device_numbers(subject), table.device_numbers
    if None not in numbers and [*map(and_, cast("list[int]", numbers), repeat(DEVICE_BITS))] == devices:
        return {}
    found = dict[int, LostDigits]()
    for index, server in enumerate(table.servers):
        if not server.rows or _is_of(texts[server.rows[0]], devices[server.rows[0]]):
            continue
        own = [(texts[row], devices[row]) for row in server.rows]
        if len(own) < _LEAST_DEVICES or any(_is_of(text, device) for text, device in own):
            continue
        for end, whole in _ENDS.items():
            right = [
                [one for digit in "0123456789" if _is_of(one := whole(str(text), digit), device)]
                for text, device in own
            ]
            if all(right):
                found[index] = LostDigits(end, [one[0] if len(one) == 1 else None for one in right])
                break
    return found


def _is_of(text: object, device: int | None) -> bool:
    """Return whether the low bits of a number are the device_id."""
    return isinstance(text, str) and _DIGITS.fullmatch(text) is not None and int(text) & DEVICE_BITS == device


@shared
def rows_without_digit(subject: Subject) -> frozenset[int]:
    """Return the rows of servers whose super_device_ids lost a digit."""
    return frozenset(row for index in lost_sdid_digits(subject) for row in subject.table.servers[index].rows)


def sdids_without_digit(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on super_device_ids that lost a digit."""
    found, table = lost_sdid_digits(subject), subject.table
    for end in _ENDS:
        indexes = [index for index, one in found.items() if one.end == end]
        if not indexes:
            continue
        first, rows = found[indexes[0]], table.servers[indexes[0]].rows
        at, right = next(((at, one) for at, one in enumerate(first.right) if one is not None), (0, None))
        row = rows[at]
        likely = (
            ""
            if right is None
            else f": with it, that of device {table.device_ids[row]} is probably {quoted(right)}"
        )
        which = f"server{'' if len(indexes) == 1 else 's'} {fold(one + 1 for one in indexes)}"
        yield Finding(
            f"the super_device_ids of {which} probably lack their {end} digit: their low 16 bits are not the device_ids, and are with "
            f"one digit more{likely}",
            subject.device_path(row, "super_device_id"),
            f"{how_super_device(subject, row)}: write the SDIDs that the host shows in all devices of {which}",
        )


def name_without_digit(subject: Subject) -> Finding | None:
    """Return the finding on the only server_id that is that of a server in the row of the others but for a lost digit."""
    if (whole := _all_names(subject)) is not None:
        return whole
    found = _lost_name(subject)
    if found is None:
        return None
    index, right = found
    own, other = subject.table.servers[index].server_id, 0 if index else 1
    return Finding(
        f"server_id {quoted(own)} of server {index + 1} does not follow the others, and does with one digit more: {quoted(right)}",
        subject.server_path(index, "server_id"),
        f"if {quoted(own)} is a host of the job (`hostname -I` on it prints its addresses), nothing is wrong; if {shown_host(right)} is the host "
        f"of these devices, write {quoted(right)} wherever the table has {quoted(own)}",
        (Related(subject.server_path(other, "server_id"), "another server_id"),),
    )


def _all_names(subject: Subject) -> Finding | None:
    """Return the finding on public addresses of which each is that of a private network with the digit 1 before it."""
    if not subject.damaged.isdisjoint(_READ) or not subject.table.servers[0].server_id.startswith(
        _SECOND_DIGITS
    ):
        return None
    names = [server.server_id for server in subject.table.servers]
    for name in names:
        own, whole = packed(name), packed(f"1{name}")
        if own is None or whole is None or is_private(own) or not is_private(whole):
            return None
    first, right = quoted(names[0]), quoted(f"1{names[0]}")
    return Finding(
        f"the server_ids are public addresses, and with the digit 1 before them those of a private network: {first} is perhaps {right}",
        subject.server_path(0, "server_id"),
        f"`hostname -I` on each host prints its addresses: if they are such as {right}, write these wherever the table has the others; if "
        f"they are such as {first}, nothing is wrong",
    )


def _lost_name(subject: Subject) -> tuple[int, str] | None:
    hosts = host_numbers(subject)
    if hosts is not None and len({*map(sub, hosts, range(len(hosts)))}) == 1:
        return None  # They follow each other.
    names = [server.server_id for server in subject.table.servers]
    ends = [number_at_end(name) for name in names]
    if len(names) < _LEAST_ADDRESSES or None in ends or not subject.damaged.isdisjoint(_READ):
        return None
    parts = [end for end in ends if end is not None]
    taken = {*names}
    begins = [begin for begin, _ in parts]
    if (index := _of_one(begins)) is not None:
        begin = next(one for one in begins if one != begins[index])
        right = f"{begin}{parts[index][1]}"
        is_address = packed(right) is not None
        is_enough = len(names) >= (_LEAST_ADDRESSES if is_address else _LEAST_NAMES)
        is_lost = begin[1:] == begins[index] and begin[0].isdigit()
        return (index, right) if is_enough and is_lost and right not in taken else None
    numbers = [number - place for place, (_, number) in enumerate(parts)]
    if len(names) < _LEAST_ORDER or len({*begins}) > 1 or (index := _of_one(numbers)) is None:
        return None
    number = next(one for one in numbers if one != numbers[index]) + index
    text, short = str(number), names[index][len(begins[index]) :]
    right = f"{begins[index]}{text}"
    if index in (0, len(names) - 1):
        return None  # Servers that follow each other, and one before or after them.
    is_lost = any(text[:at] + text[at + 1 :] == short for at in range(len(text)))
    return (index, right) if is_lost and right not in taken else None


def _of_one(values: Sequence[str | int]) -> int | None:
    """Return the place of the only value that is not that of all others; of two different strings, that of the shorter one."""
    kinds = list(dict.fromkeys(values))
    if len(kinds) != len(("others", "one")):
        return None
    single = [one for one in kinds if values.count(one) == 1]
    if len(single) == len(values):
        return values.index(min(single, key=lambda one: len(str(one))))
    return values.index(single[0]) if len(single) == 1 else None
