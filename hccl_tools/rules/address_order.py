"""The order in which the device_ips of a table follow its servers and devices. This module declares no rules."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise, repeat
from operator import and_
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.address_columns import addresses_read, packed_addresses, plain_addresses
from hccl_tools.rules.address_texts import joined_names
from hccl_tools.rules.moved_entries import exchanged, owners
from hccl_tools.rules.registry import shared
from hccl_tools.rules.shared_values import owners_of
from hccl_tools.rules.value_order import (
    DEVICE_BITS,
    Names,
    Order,
    names_of,
    order_of,
    other_names,
    super_device_numbers,
)
from hccl_tools.table.addresses import AF_INET6, inet_ntop, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.shared_values import Owners

#: The addresses that a hint names.
_MOST_NAMES = 4
#: The keys that such an order depends on.
READ = frozenset({"device_id", "device_ip", "server_id", "super_device_id"})


@shared
def address_numbers(subject: Subject) -> Sequence[int] | None:
    """Return the device_ips as numbers; None unless each device has one address of one family, and no two the same."""
    if not subject.damaged.isdisjoint(READ) or (plain := plain_addresses(subject)) is None:
        return None
    if plain.ipv4 is not None:
        return _unpacked(plain.ipv4)
    if len(plain.families) > 1:
        return None
    known = packed_addresses(subject)
    return [int.from_bytes(known[text] or b"", "big") for text in subject.table.device_ips]


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
    return inet_ntop(AF_INET6, raw)


def are_in_place(subject: Subject) -> bool:
    """Whether no entry is in the list of another server, and no entry has exchanged ids, which other rules report."""
    return not owners(subject) and not exchanged(subject)


#: The fewest devices whose addresses show the order of text, and the fewest distances between those of one server.
_LEAST_DEVICES, _LEAST_DISTANCES = 4, 2


@shared
def first_in_text_order(subject: Subject) -> int | None:
    """Return the first row of the servers whose addresses are in the order of text and not of numbers, if all are.

    The result is None if a server has them in no order, or the devices in another one than that of their numbers, or if
    addresses with uneven distances are not those of the other servers in another order: these may be of two machines.
    """
    numbers, found, many = address_numbers(subject), list[int](), 0
    ips, devices = subject.table.device_ips, subject.table.device_numbers
    for index, server in enumerate(subject.table.servers if numbers is not None else ()):
        rows = slice(server.rows[0], server.rows[-1] + 1) if server.rows else slice(0)
        own = [*numbers[rows]] if numbers is not None else []
        if own == sorted(own):
            continue
        texts, ids = ips[rows], [one or 0 for one in devices[rows]]
        if texts != sorted(texts) or ids != sorted(ids):
            return None
        found.append(index)
        many += len(own)
    if numbers is None or many < _LEAST_DEVICES or not are_in_place(subject):
        return None
    is_whole = [*ips] == sorted(ips)
    return (
        subject.table.servers[found[0]].rows[0] if is_whole or _are_sorted(subject, numbers, found) else None
    )


def _are_sorted(subject: Subject, numbers: Sequence[int], found: list[int]) -> bool:
    """Return whether the addresses of these servers in their order have even distances, or those of the other servers."""
    shapes = [_distances(numbers, server.rows) for server in subject.table.servers]
    in_order = {*range(len(shapes))}.difference(found)
    others = {shapes[index] for index in in_order}
    uneven = {shapes[index] for index in found if len({*shapes[index]}) > 1}
    if max(len(shapes[index]) for index in found) < _LEAST_DISTANCES:
        return False  # Two addresses have one order or the other by chance.
    return uneven <= others or (not others and len(uneven) == 1)


def _distances(numbers: Sequence[int], rows: Sequence[int]) -> tuple[int, ...]:
    own = sorted(numbers[row] for row in rows)
    return tuple(after - before for before, after in pairwise(own))


@shared
def moved_device_ids(subject: Subject) -> dict[int, list[int]]:
    """Return the servers whose device_ids follow neither their super_device_ids nor their addresses, with these rows.

    The two follow each other there, so that the column device_id was sorted or moved alone. In a usual cluster the low 16
    bits of a super_device_id are the device_id.
    """
    table, ips = subject.table, address_numbers(subject)
    texts = table.columns.get("super_device_id")
    if ips is None or texts is None or None in texts:
        return {}
    sdids = super_device_numbers(subject)
    if None in sdids:
        return {}
    bits: list[int | None] = [*map(and_, sdids, repeat(DEVICE_BITS))]
    if bits == [*table.device_numbers]:
        return {}
    found, shapes = dict[int, list[int]](), list[dict[int | None, int]]()
    for index, server in enumerate(table.servers):
        own = [(table.device_numbers[row], bits[row]) for row in server.rows]
        if rows := [row for row, (device, bit) in zip(server.rows, own, strict=True) if device != bit]:
            if {device for device, _ in own} == {bit for _, bit in own}:
                found[index] = rows
        elif server.rows:
            shapes.append(_shape(table.device_numbers, ips, server.rows))
    usual = shapes[0] if shapes and all(one == shapes[0] for one in shapes) else None
    return {
        index: rows
        for index, rows in found.items()
        if _is_usual(_shape(bits, ips, table.servers[index].rows), usual)
        and not _is_usual(_shape(table.device_numbers, ips, table.servers[index].rows), usual)
    }


def _shape(ids: Sequence[int | None], ips: Sequence[int], rows: Sequence[int]) -> dict[int | None, int]:
    """Return for each id of a server the distance of its address from that of the lowest id."""
    first = min(rows, key=lambda row: ids[row] or 0)
    return {ids[row]: ips[row] - ips[first] for row in rows}


def _is_usual(shape: dict[int | None, int], usual: dict[int | None, int] | None) -> bool:
    """Return whether a shape is that of the other servers, or if these have none, whether it has one step."""
    if usual is not None:
        return shape == usual
    in_order = sorted((one or 0, distance) for one, distance in shape.items())
    steps = {(after - before, one - other) for (other, before), (one, after) in pairwise(in_order)}
    return len(in_order) >= _LEAST_DEVICES and len({step / apart for step, apart in steps if apart}) == 1


@shared
def servers_in_text_order(subject: Subject) -> dict[int, list[int]]:
    """Return the servers whose device_ids are in the order of text, and their addresses or SDIDs in that of numbers.

    The result has for each the rows whose device_ids are elsewhere in the order of numbers.
    """
    table = subject.table
    usual = table.devices_of_each
    if usual is not None and None not in usual and usual == sorted(one or 0 for one in usual):
        return {}
    ips, texts = address_numbers(subject), table.columns.get("super_device_id")
    sdids = super_device_numbers(subject) if texts is not None and None not in texts else None
    found = dict[int, list[int]]()
    for index, server in enumerate(table.servers):
        rows = server.rows
        own = [table.device_numbers[row] or 0 for row in rows]
        right = sorted(own)
        written = [table.device_ids[row] for row in rows]
        is_whole = bool(right) and right == [*range(right[0], right[0] + len(right))]
        if own == right or not is_whole or [*map(str, own)] != written or written != sorted(written):
            continue  # One mistyped device_id is not an order.
        by_sdid = sdids is not None and [(sdids[row] or 0) & DEVICE_BITS for row in rows] == right
        by_address = (
            ips is not None
            and len({after - before for before, after in pairwise([ips[row] for row in rows])}) == 1
        )
        if by_sdid or by_address:
            found[index] = [row for row, one, other in zip(rows, own, right, strict=True) if one != other]
    return found


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
    found, taken = names.name_of(order.first[index]), taken_names(subject)
    is_no_address = found is not None and found.replace(".", "").isdigit() and packed(found) is None
    return None if found in taken or is_no_address else found


def right_name(subject: Subject, index: int) -> str:
    """Return the hint on a server_id that no host has, with the one by the order of the others."""
    hint, name = (
        "write the address or name of the host, wherever the table has this server_id",
        likely_name(subject, index),
    )
    return (
        hint
        if name is None
        else f"{hint}: by the order of the others, that of server {index + 1} is {quoted(name)}"
    )


def one_of(subject: Subject, index: int) -> tuple[str, str] | None:
    """Return message and hint on a server_id with several addresses; None for others."""
    text = subject.table.servers[index].server_id
    names = joined_names(text)
    if not names:
        return None
    others = _each_name(subject)
    own = [name for name in names if others[name] == 1]
    networks = Counter(name.rpartition(".")[0] for name in others if name not in names)
    near = [name for name in own if networks[name.rpartition(".")[0]]]
    message = (
        f"server_id {quoted(text)} has {len(names)} addresses, as `hostname -I` prints them: it must be one"
    )
    if len(near) == 1:
        return (
            message,
            f'write "{near[0]}" alone, the only one in the network of the other server_ids, wherever the table has this server_id',
        )
    return message, (
        f"write one of them alone, that by which the other hosts reach this one ({' or '.join(map(quoted, names[:_MOST_NAMES]))}), "
        "wherever the table has this server_id"
    )


@shared
def _each_name(subject: Subject) -> Counter[str]:
    """Return all server_ids, and all addresses of those with several, with the number of servers that have each."""
    ids = [server.server_id.strip() for server in subject.table.servers]
    return Counter(name for text in ids for name in {*(joined_names(text) or [text])})


@shared
def taken_names(subject: Subject) -> frozenset[str]:
    """Return the server_ids of the table."""
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
