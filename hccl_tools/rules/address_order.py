"""The order in which the device_ips of a table follow its servers and devices. This module declares no rules."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.rules.address_columns import addresses_read, all_plain, packed_addresses
from hccl_tools.rules.moved_entries import exchanged, owners
from hccl_tools.rules.registry import shared
from hccl_tools.rules.shared_values import owners_of
from hccl_tools.rules.value_order import Names, Order, names_of, order_of, other_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.shared_values import Owners

#: The keys that such an order depends on.
READ = frozenset({"device_id", "device_ip", "server_id", "super_device_id"})


@shared
def address_numbers(subject: Subject) -> Sequence[int] | None:
    """Return the device_ips as numbers; None unless each device has one address of one family, and no two the same."""
    if not subject.damaged.isdisjoint(READ) or not all_plain(subject):
        return None
    ips, raw = subject.table.device_ips, subject.memo["joined ipv4"]
    if raw is not None:
        return _unpacked(raw)
    if len(subject.memo["families"]) > 1:
        return None
    known = packed_addresses(subject)
    return [int.from_bytes(known[text] or b"", "big") for text in ips]


def _unpacked(raw: bytes) -> list[int]:
    """Return the numbers of four bytes each, the highest byte first, without the import of ``struct``."""
    if sys.byteorder == "little":
        return memoryview(raw[::-1]).cast("I").tolist()[::-1]
    return memoryview(raw).cast("I").tolist()


def address_text(subject: Subject, number: int) -> str:
    """Return a number as an address of the family of the table."""
    size = len(packed_addresses(subject)[subject.table.device_ips[0]] or b"")
    raw = (number % (1 << 8 * size)).to_bytes(size, "big")  # An order may lead below or above all addresses.
    if size == 4:
        return ".".join(map(str, raw))
    from socket import AF_INET6, inet_ntop  # noqa: PLC0415  (few tables have IPv6)

    return inet_ntop(AF_INET6, raw)


def are_in_place(subject: Subject) -> bool:
    """Whether no entry is in the list of another server, and no entry has exchanged ids, which other rules report."""
    return not owners(subject) and not exchanged(subject)


#: The fewest devices whose addresses show the order of text.
_LEAST_DEVICES = 4


@shared
def first_in_text_order(subject: Subject) -> int | None:
    """Return the first row of the servers whose addresses are in the order of text and not of numbers, if all are.

    The result is None if a server has them in no order, or the devices in another one than that of their numbers.
    """
    numbers, found, many = address_numbers(subject), None, 0
    ips, devices = subject.table.device_ips, subject.table.device_numbers
    for server in subject.table.servers if numbers is not None else ():
        rows = slice(server.rows[0], server.rows[-1] + 1) if server.rows else slice(0)
        own = [*numbers[rows]] if numbers is not None else []
        if own == sorted(own):
            continue
        texts, ids = ips[rows], [one or 0 for one in devices[rows]]
        if texts != sorted(texts) or ids != sorted(ids):
            return None
        found, many = server.rows[0] if found is None else found, many + len(own)
    return found if many >= _LEAST_DEVICES and are_in_place(subject) else None


@shared
def order_of_addresses(subject: Subject) -> Order | None:
    """Return the order of the device_ips; None if they follow none."""
    numbers = address_numbers(subject)
    return None if numbers is None or not are_in_place(subject) else order_of(subject, numbers)


@shared
def names_by_addresses(subject: Subject) -> Names | None:
    """Return how the server_ids follow the device_ips; None if they do not."""
    order = order_of_addresses(subject)
    return None if order is None else names_of(subject, order.first)


def usual_name(subject: Subject, index: int) -> str | None:
    """Return the server_id that the device_ips of a server stand for on all others; None if that is not certain."""
    return _usual_names(subject).get(index)


def likely_name(subject: Subject, index: int) -> str | None:
    """Return the server_id by the order of the others of a server whose own is damaged; None if nothing says it."""
    order, names = order_of_addresses(subject), names_by_addresses(subject)
    if order is None or names is None or index not in order.first:
        return None
    found, taken = names.name_of(order.first[index]), _taken_names(subject)
    return None if found in taken else found


def right_name(subject: Subject, index: int) -> str:
    """Return the hint on a server_id that no host has, with the one by the order of the others."""
    hint, name = (
        "write the address or name of the host, wherever the table has this server_id",
        likely_name(subject, index),
    )
    return (
        hint
        if name is None
        else f'{hint}: by the order of the others, that of server {index + 1} is "{name}"'
    )


@shared
def _taken_names(subject: Subject) -> frozenset[str]:
    return frozenset(server.server_id for server in subject.table.servers)


@shared
def _usual_names(subject: Subject) -> dict[int, str]:
    """Return the server_id that a server has by the order of all others, if it is the only one with another."""
    order, names = order_of_addresses(subject), names_by_addresses(subject)
    if order is None or names is None or len(wrong := other_names(names, order.first)) != 1:
        return {}
    found = names.name_of(order.first[wrong[0]])
    taken = {server.server_id for server in subject.table.servers}
    return {} if found is None or found in taken else {wrong[0]: found}


@shared
def owners_of_addresses(subject: Subject) -> Owners | None:
    """Return the order of the addresses of a table in which some occur twice; None if they follow none."""
    read, known = addresses_read(subject), packed_addresses(subject)
    raw = [known[addresses[0]] if len(addresses) == 1 else None for addresses in read]
    if not subject.damaged.isdisjoint(READ) or len({None if one is None else len(one) for one in raw}) != 1:
        return None
    return owners_of(subject, [int.from_bytes(one or b"", "big") for one in raw])


def is_moved_by_a_server(subject: Subject, index: int) -> bool:
    """Return whether each server from one on has the addresses that the server before it should have."""
    return _first_moved(subject) == index


@shared
def _first_moved(subject: Subject) -> int | None:
    """Return the first server from which on each has the addresses that the server before it should have.

    The numbers of the server_ids tell which addresses a server should have. At least two servers must follow.
    """
    known, servers = owners_of_addresses(subject), subject.table.servers
    if known is None or len(known.order.first) < len(servers) or None in known.names.numbers:
        return None
    order, names = known.order, known.names
    rest = [order.first[place] - names.step * (number or 0) for place, number in enumerate(names.numbers)]
    changes = [place for place, (one, other) in enumerate(pairwise(rest), 1) if one != other]
    if len(changes) != 1 or rest[changes[0]] != rest[0] - names.step or changes[0] + 2 >= len(servers):
        return None
    return changes[0]
