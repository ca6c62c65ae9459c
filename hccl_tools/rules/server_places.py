"""Columns in which servers have the values of other servers (HCC632, HCC633). This module declares no rules.

The server_ids of a cluster are numbered as the addresses and super_device_ids of its devices are. If one column has the same
values in another order, they were exchanged between servers, or moved by a server. Only a third column tells which one it is.
"""

from __future__ import annotations

import struct
from itertools import repeat
from operator import attrgetter, mul, sub
from typing import TYPE_CHECKING, cast

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import and_more, count, listed_parts
from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_columns import plain_addresses
from hccl_tools.rules.address_order import READ, address_numbers, order_of_addresses
from hccl_tools.rules.commands import how, how_super_device
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.super_pod_list import listed_pods
from hccl_tools.rules.value_order import number_at_end, order_of, sdid_scheme, super_device_numbers
from hccl_tools.table.addresses import joined_ipv4, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.value_order import Order
    from hccl_tools.table.model import Server

#: Servers that show an order by themselves; of fewer, the numbers themselves must be those of the addresses.
LEAST_SERVERS = 4
#: The fewest servers that a column can be moved by.
_LEAST_MOVED = 3
#: The distance of the super_device_ids of two servers that are next to each other in a super pod.
_NEXT_SERVER = 1 << 22


class Displaced(NamedTuple):
    """Servers whose values are those of others.

    Attributes:
        right: For each of them, the server to whose server_id its values belong, in the order of the file.
        step: 1 if they have those of the next one, -1 if they have those of the one before; the last one has those of the first.
    """

    right: dict[int, int]
    step: int


@shared
def host_numbers(subject: Subject) -> list[int] | None:
    """Return the numbers of the server_ids: addresses, or names that end in a number; None if not all are such."""
    names = [*map(attrgetter("server_id"), subject.table.servers)]
    joined = joined_ipv4(names)
    if joined is not None:
        found = [*struct.unpack(f">{len(names)}I", joined)]
        return found if len({*found}) == len(found) else None
    raw = [packed(name) for name in names]
    if len({None if one is None else len(one) for one in raw}) == 1 and raw[0] is not None:
        numbers = [int.from_bytes(one or b"", "big") for one in raw]
    else:
        ends = [number_at_end(name) for name in names]
        if None in ends or len({end[0] for end in ends if end}) != 1:
            return None
        numbers = [end[1] for end in ends if end]
    return numbers if len(set(numbers)) == len(numbers) else None


def owners_by_order(numbers: Sequence[int], values: Sequence[int]) -> list[int] | None:
    """Return for each server the one to which its value belongs, if the values in their order are numbered as the servers are."""
    hosts = sorted(range(len(numbers)), key=numbers.__getitem__)
    places = sorted(range(len(values)), key=values.__getitem__)
    if len(hosts) < 2 or len(hosts) != len(places):
        return None
    from_first = [*map(sub, sorted(numbers), repeat(numbers[hosts[0]]))]
    of_values = [*map(sub, sorted(values), repeat(values[places[0]]))]
    gap, step = from_first[1], of_values[1]
    if not gap or not step:
        return None
    if [*map(mul, of_values, repeat(gap))] != [*map(mul, from_first, repeat(step))]:
        return None
    owner = dict(zip(places, hosts, strict=True))
    return [*map(owner.__getitem__, range(len(places)))]


def displaced(owner: Sequence[int]) -> Displaced | None:
    """Return the servers of which the values are those of others, if they are exchanged or moved by a server."""
    if [*owner] == [*range(len(owner))]:
        return None
    right = {place: one for place, one in enumerate(owner) if place != one}
    places = [*right]
    if len(places) == 2:
        return Displaced(right, 0)
    is_run = len(places) >= _LEAST_MOVED and places == [*range(places[0], places[0] + len(places))]
    if is_run and [*right.values()] == [*places[1:], places[0]]:
        return Displaced(right, 1)
    if is_run and [*right.values()] == [places[-1], *places[:-1]]:
        return Displaced(right, -1)
    return Displaced(right, 0) if right and 2 * len(right) <= len(owner) else None


@shared
def owners_of_all_addresses(subject: Subject) -> list[int] | None:
    """Return for each server the one to which its device_ips belong; None if the server_ids do not show it."""
    order, numbers = order_of_addresses(subject), host_numbers(subject)
    servers = subject.table.servers
    if order is None or numbers is None or not _has_all_servers(order, servers):
        return None
    owner = owners_by_order(numbers, [*map(order.first.__getitem__, range(len(servers)))])
    is_shown = len(servers) >= LEAST_SERVERS or (
        owner is not None and (_have_numbers_of_hosts(subject, owner) or _are_without_gap(subject))
    )
    return owner if is_shown else None


def _has_all_servers(order: Order, servers: Sequence[Server]) -> bool:
    """Return whether the values of each server are in the order, and none was moved to the next server."""
    return len(order.first) == len(servers) and not (order.moved_up or order.moved_down)


def _have_numbers_of_hosts(subject: Subject, owner: Sequence[int]) -> bool:
    """Return whether one of the four numbers of each address is the last number of the server_id of its owner."""
    addresses = address_numbers(subject)
    plain = plain_addresses(subject)
    if addresses is None or plain is None or plain.ipv4 is None:
        return False
    ends = [number_at_end(server.server_id) for server in subject.table.servers]
    wanted = [end[1] if (end := ends[one]) is not None else None for one in owner]
    return any(
        all(
            addresses[row] >> bits & 255 == number
            for server, number in zip(subject.table.servers, wanted, strict=True)
            for row in server.rows
        )
        for bits in (0, 8, 16)
    )


def _are_without_gap(subject: Subject) -> bool:
    """Return whether the server_ids have no gap between them, and the addresses of all servers none in each network."""
    numbers, addresses, servers = host_numbers(subject), address_numbers(subject), subject.table.servers
    if numbers is None or addresses is None or max(numbers) - min(numbers) >= len(numbers):
        return False
    owner = dict(zip(addresses, subject.table.server_of_row, strict=True))
    of_run, before = set[int](), min(owner) - 1
    for value in (*sorted(owner), max(owner) + 2):
        if value != before + 1:
            if len(of_run) < len(servers):
                return False
            of_run.clear()
        of_run.add(owner.get(value, 0))
        before = value
    return True


@shared
def order_of_sdids(subject: Subject) -> Order | None:
    """Return the order of the super_device_ids; None if they follow none, or not every device has one."""
    texts = subject.table.columns.get("super_device_id")
    if texts is None or None in texts or not subject.damaged.isdisjoint(READ):
        return None
    known = super_device_numbers(subject)
    return None if None in known else order_of(subject, cast("list[int]", known), sdid_scheme)


@shared
def owners_of_all_sdids(subject: Subject) -> list[int] | None:
    """Return for each server the one to which its super_device_ids belong; None if the server_ids do not show it.

    Each super pod numbers its devices itself.
    """
    order, numbers, servers = order_of_sdids(subject), host_numbers(subject), subject.table.servers
    if order is None or numbers is None or not _has_all_servers(order, servers):
        return None
    pod_of = {name: pod.number for pod in listed_pods(subject) for name in pod.server_ids}
    members: dict[int | None, list[int]] = {}
    for index, server in enumerate(servers):
        members.setdefault(pod_of.get(server.server_id), []).append(index)
    owner = [*range(len(servers))]
    for own in members.values():
        values = [order.first[index] for index in own]
        found = owners_by_order([numbers[index] for index in own], values)
        if found is None or (len(own) < LEAST_SERVERS and not _are_next(subject, own, values)):
            return None
        for index, one in zip(own, found, strict=True):
            owner[index] = own[one]
    return owner


def _are_next(subject: Subject, own: Sequence[int], values: Sequence[int]) -> bool:
    """Return whether few servers have numbers without a gap, in their server_ids and super_device_ids, and own addresses."""
    numbers = host_numbers(subject) or []
    for column, step in (([numbers[index] for index in own], 1), (values, _NEXT_SERVER)):
        if sorted(column) != [*range(min(column), min(column) + step * len(own), step)]:
            return False
    return owners_of_all_addresses(subject) is not None


#: The most servers and server_ids that a finding names.
_MOST_NAMED = 8
_MOST_PLACES = 16


def displaced_addresses(subject: Subject) -> Finding | None:
    """Return the finding on servers with the device_ips, or the server_ids, of other servers."""
    owner = owners_of_all_addresses(subject)
    found = None if owner is None else displaced(owner)
    return None if found is None or owner is None else addresses_of_others(subject, found)


def addresses_of_others(subject: Subject, found: Displaced) -> Finding:
    """Return the finding on servers that have the device_ips of others: the super_device_ids may say which column is wrong."""
    by_sdids = owners_of_all_sdids(subject)
    wrong = [] if by_sdids is None else [index for index, one in enumerate(by_sdids) if index != one]
    if by_sdids is not None and not wrong:
        return _of_column(subject, found, "device_ip", "and super_device_ids, which follow each other")
    if by_sdids is not None and {index: by_sdids[index] for index in wrong} == found.right:
        return _of_names(subject, found)
    return _of_either(subject, found)


def displaced_sdids(subject: Subject) -> Finding | None:
    """Return the finding on servers with the super_device_ids of others; HCC633 reports those whose device_ips moved with them."""
    owner = owners_of_all_sdids(subject)
    found = None if owner is None else displaced(owner)
    if owner is None or found is None:
        return None
    by_addresses = owners_of_all_addresses(subject)
    if by_addresses is not None and by_addresses != [*range(len(by_addresses))]:
        return None
    also = "" if by_addresses is None else "and device_ips, which follow each other"
    return _of_column(subject, found, "super_device_id", also)


def _shown(subject: Subject, found: Displaced) -> str:
    return listed_parts([named_server(subject, index) for index in found.right], _MOST_NAMED)


def _what(found: Displaced, *, is_of_names: bool = False) -> str:
    """Return what happened to the values of these servers, or, in the other direction, to their server_ids."""
    if found.step:
        return f"moved {'up' if (found.step > 0) != is_of_names else 'down'} by one server"
    return "exchanged" if len(found.right) == 2 else "mixed up"


def _other_way(found: Displaced) -> str:
    return f" are {_what(found, is_of_names=True)}" if found.step else ""


def _as_others(subject: Subject, found: Displaced) -> str:
    number = len(subject.table.servers) - len(found.right)
    return f", as those of the {count(number, 'other server')} do" if number else ""


def _rows(subject: Subject, found: Displaced) -> tuple[int, int]:
    """Return the first row of the first of these servers, and that of the same device in the server that has its values."""
    servers, index = subject.table.servers, next(iter(found.right))
    holder = next(one for one, right in found.right.items() if right == index)
    row, numbers = servers[index].rows[0], subject.table.device_numbers
    others = servers[holder].rows
    return row, next((one for one in others if numbers[one] == numbers[row]), others[0])


def _put_back(found: Displaced, column: str) -> str:
    """Return how a column is put right."""
    if found.step:
        way, ends = (
            ("down", "last server to the first") if found.step > 0 else ("up", "first server to the last")
        )
        return f"move the {column}s of these servers {way} by one server, those of the {ends} one"
    return f"exchange the {column}s of {'the two servers' if len(found.right) == 2 else 'these servers'}"


def _names_in_order(subject: Subject, found: Displaced) -> str:
    names = [quoted(subject.table.servers[right].server_id) for right in found.right.values()]
    return f"write these server_ids in the order {and_more(names, _MOST_NAMED)}"


def _places(subject: Subject, found: Displaced, key: str) -> list[tuple[str | int, ...]]:
    servers = subject.table.servers
    return [
        subject.server_path(index, key)
        if key == "server_id"
        else subject.device_path(servers[index].rows[0], key)
        for index in [*found.right][:_MOST_PLACES]
    ]


def _of_column(subject: Subject, found: Displaced, key: str, also: str) -> Finding:
    """Return the finding on a column of devices in which servers have the values of others."""
    row, holder = _rows(subject, found)
    values, command = subject.table.column(key), how if key == "device_ip" else how_super_device
    first, *rest = _places(subject, found, key)
    follow = f"their server_ids {also}".rstrip() + ("" if also else _as_others(subject, found))
    return Finding(
        f"the {key}s of {_shown(subject, found)} do not follow {follow}: the {key}s of these servers are probably {_what(found)}",
        first,
        f"{command(subject, row)}: if it is {quoted(values[holder])}, and not {quoted(values[row])}, {_put_back(found, key)}, and leave all other "
        "columns",
        tuple(Related(path, "and here") for path in rest),
    )


def _of_names(subject: Subject, found: Displaced) -> Finding:
    """Return the finding on server_ids that follow neither the device_ips nor the super_device_ids of their devices."""
    row, holder = _rows(subject, found)
    ips = subject.table.device_ips
    first, *rest = _places(subject, found, "server_id")
    return Finding(
        f"the server_ids of {_shown(subject, found)} follow neither their device_ips nor their super_device_ids, which follow each other: "
        f"the server_ids are probably {_what(found, is_of_names=True)}, or both other columns {_what(found)}",
        first,
        f"{how(subject, row)}: if it is {quoted(ips[holder])}, and not {quoted(ips[row])}, {_names_in_order(subject, found)}",
        tuple(Related(path, "and here") for path in rest),
    )


def _of_either(subject: Subject, found: Displaced) -> Finding:
    """Return the finding on servers of which the server_ids or the device_ips are those of others: the table does not say which.

    The column that alone is out of order in the file is named first.
    """
    row, holder = _rows(subject, found)
    ips = subject.table.device_ips
    numbers = host_numbers(subject) or []
    keys = ("device_ip", "server_id") if numbers == sorted(numbers) else ("server_id", "device_ip")
    first, *rest = _places(subject, found, keys[0])
    says = f"{how(subject, row)}: if it is {quoted(ips[row])}, nothing is wrong; if it is {quoted(ips[holder])}, "
    remedy = (
        f"either {_put_back(found, 'device_ip')}, so that each rank stays on its host, or, so that each rank keeps its address, "
        f"{_names_in_order(subject, found)}"
    )
    if "super_device_id" in subject.table.columns:
        remedy = f"write in each entry of these servers what its host shows, also for the SDID: {how_super_device(subject, row)}"
    return Finding(
        f"the {keys[0]}s of {_shown(subject, found)} do not follow their {keys[1]}s{_as_others(subject, found)}: probably either the "
        f"device_ips of these servers are {_what(found)}, or their server_ids{_other_way(found)}",
        first,
        f"{says}{remedy}",
        tuple(Related(path, "and here") for path in rest),
    )
