"""Advice on values in the order of text, as a spreadsheet or a program for texts sorts numbers: 10 before 8."""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.rules.address_order import address_numbers, first_in_text_order, servers_in_text_order
from hccl_tools.rules.commands import address_query, how, how_super_device, shown_host
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.filled_columns import (
    filled_among_others,
    filled_servers,
    servers_among_others,
    servers_filled,
)
from hccl_tools.rules.moved_rows import moved_addresses
from hccl_tools.rules.registry import LEGACY, SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.stale_addresses import stale_addresses
from hccl_tools.rules.super_pod_list import is_used
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.addresses import is_loopback, is_netmask, packed
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The fewest servers whose names show an order.
_LEAST_SERVERS = 4


@rule(
    "HCC645",
    "values-in-text-order",
    "advice",
    formats=LEGACY,
    needs=("device_ip", "device_id", "server_id"),
    source="device_ip is the address of the device itself (rank_table_config_910.md); device_ids in the order of numbers",
)
def values_in_text_order(subject: Subject) -> Iterator[Finding]:
    """Addresses, server_ids, device_ids or ranks are in the order of text, and the other values in that of numbers.

    A column that was sorted alone gives each device the address of another one.

    Base: 3x8
    Example: /server_list/0/device/0/device_ip = "192.168.0.10"; /server_list/0/device/1/device_ip = "192.168.0.11"; /server_list/0/device/2/device_ip = "192.168.0.12"; /server_list/0/device/3/device_ip = "192.168.0.13"; /server_list/0/device/4/device_ip = "192.168.0.14"; /server_list/0/device/5/device_ip = "192.168.0.15"; /server_list/0/device/6/device_ip = "192.168.0.8"; /server_list/0/device/7/device_ip = "192.168.0.9"
    Instead: table
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0: if it is "192.168.0.8", sort the device_ips of each server by their numbers
    """
    if moved := servers_in_text_order(subject):
        yield _device_ids_in_text_order(subject, moved)
        return
    yield from _devices_in_text_order(subject)
    yield from _ranks_in_text_order(subject)
    yield from _instances_in_text_order(subject)
    numbers = address_numbers(subject)
    if numbers is None:
        return
    if [*numbers] == sorted(numbers):
        yield from _names_in_text_order(subject)
    elif moved_addresses(subject) is not None or stale_addresses(subject) is not None:
        return  # HCC631 or HCC633 reports it.
    elif (row := first_in_text_order(subject)) is not None and not _has_other_addresses(subject, row):
        yield _unsorted(subject, numbers, row)


def _has_other_addresses(subject: Subject, row: int) -> bool:
    """Return whether a server has an address that is none of a device, which alone may be out of order: HCC614 reports it."""
    table = subject.table
    own = [table.device_ips[one] for one in table.servers[table.server_of_row[row]].rows]
    hosts = {server.server_id for server in table.servers}
    return any(is_netmask(text) or is_loopback(text) or text in hosts for text in own)


def _devices_in_text_order(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on servers whose entries were sorted by device_id as text, and whose ranks follow this order."""
    table = subject.table
    if table.format not in SERVER_LIST or not subject.damaged.isdisjoint({"rank_id", "device_id"}):
        return
    usual = table.devices_of_each
    if usual is not None and None not in usual and usual == sorted(one or 0 for one in usual):
        return
    found = list[int]()
    for index, server in enumerate(table.servers):
        own = [table.device_numbers[row] or 0 for row in server.rows]
        ranks = [table.rank_numbers[row] or 0 for row in server.rows]
        texts, right = [*map(str, own)], sorted(own)
        is_whole = bool(right) and right == [*range(right[0], right[0] + len(right))]
        if (
            is_whole
            and own != right
            and texts == sorted(texts)
            and ranks == [*range(ranks[0], ranks[0] + len(ranks))]
        ):
            found.append(index)
    if not found:
        return
    rows = table.servers[found[0]].rows
    row = next(
        row
        for row, one in zip(rows, sorted(table.device_numbers[one] or 0 for one in rows), strict=True)
        if table.device_numbers[row] != one
    )
    others = f" and {count(len(found) - 1, 'other server')}" if len(found) > 1 else ""
    yield Finding(
        f"the entries of {named_server(subject, found[0])}{others} are in the order of their device_ids as text, device {table.device_ids[row]} after "
        f"device {table.device_ids[row - 1]}, and their ranks follow this order: {subject.rank_name(row)} is on device {table.device_ids[row]}",
        subject.device_path(row, "device_id"),
        "unless this order is intended, sort the entries of each server by the number of the device, and number the ranks of the server again "
        "in this order",
    )


def _ranks_in_text_order(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on servers whose ranks are in the order of text, and their devices in that of numbers."""
    table = subject.table
    if (
        table.format not in SERVER_LIST
        or table.is_in_rank_order
        or not subject.damaged.isdisjoint({"rank_id", "device_id"})
    ):
        return
    found = dict[int, list[int]]()
    for index, server in enumerate(table.servers):
        ranks = [table.rank_numbers[row] or 0 for row in server.rows]
        texts = [*map(str, ranks)]
        devices = [table.device_numbers[row] or 0 for row in server.rows]
        right = sorted(ranks)
        is_whole = right == [*range(right[0], right[0] + len(right))] if right else False
        if is_whole and ranks != right and texts == sorted(texts) and devices == sorted(devices):
            found[index] = right
    if not found:
        return
    index, right = next(iter(found.items()))
    rows = table.servers[index].rows
    row = next(row for row, rank in zip(rows, right, strict=True) if table.rank_numbers[row] != rank)
    others = f" and {count(len(found) - 1, 'other server')}" if len(found) > 1 else ""
    yield Finding(
        f"the rank_ids of {named_server(subject, index)}{others} are in the order of text, and the devices in that of numbers: device "
        f"{table.device_ids[row]} has rank {table.rank_numbers[row]}; the column was probably sorted alone",
        subject.device_path(row, "rank_id"),
        f"write the rank_ids {fold(right)} from the first entry of the server to the last, as launchers number the ranks of a host by "
        "its devices",
    )


def _device_ids_in_text_order(subject: Subject, moved: dict[int, list[int]]) -> Finding:
    table, ips = subject.table, address_numbers(subject)
    index, rows = next(iter(moved.items()))
    own, row = table.servers[index].rows, rows[0]
    right = sorted(table.device_numbers[one] or 0 for one in own)
    at = next(
        one for one in own[1:] if (table.device_numbers[one] or 0) < (table.device_numbers[one - 1] or 0)
    )
    others = f" and {count(len(moved) - 1, 'other server')}" if len(moved) > 1 else ""
    write = (
        f"write the device_ids of this server in the order of numbers, {fold(right)} from its first entry to the last, and leave the other "
        "columns"
    )
    if others:
        write = write.replace("this server", "each of these servers")
    hint = f"{write}; then each device_id is the low 16 bits of its super_device_id"
    if ips is not None:
        expected = table.device_ips[own[right.index(table.device_numbers[row] or 0)]]
        hint = (
            f"{how(subject, row)}: if it is {quoted(expected)}, and not {quoted(table.device_ips[row])}, {write}; else write in each "
            "entry what the host shows for its device"
        )
    return Finding(
        f"the device_ids of {named_server(subject, index)}{others} are in the order of text: {table.device_ids[at - 1]} is before "
        f"{table.device_ids[at]}; the column was probably sorted alone",
        subject.device_path(row, "device_id"),
        hint,
    )


def _unsorted(subject: Subject, numbers: Sequence[int], row: int) -> Finding:
    table, ips = subject.table, subject.table.device_ips
    index = table.server_of_row[row]
    own = table.servers[index].rows
    is_whole = [*ips] == sorted(ips) and _are_mixed(subject, numbers)
    rows = range(row, len(ips)) if is_whole else own
    at = next(one for one in rows[1:] if numbers[one] < numbers[one - 1])
    right = sorted(range(len(ips)) if is_whole else own, key=numbers.__getitem__)
    first = ips[right[row if is_whole else 0]]
    what = "all servers together" if is_whole else "each server"
    several = [
        one
        for one in table.servers
        if [numbers[at] for at in one.rows] != sorted(numbers[at] for at in one.rows)
    ]
    others = f" and {count(len(several) - 1, 'other server')}" if len(several) > 1 else ""
    return Finding(
        f"the device_ips of {named_server(subject, index)}{others} are in the order of text: {quoted(ips[at - 1])} is before {quoted(ips[at])}; "
        "the column was probably sorted alone",
        subject.device_path(row, "device_ip"),
        f"{how(subject, row)}: if it is {quoted(first)}, sort the device_ips of {what} by their numbers",
    )


def _are_mixed(subject: Subject, numbers: Sequence[int]) -> bool:
    """Return whether a server has addresses below those of the server before it."""
    of_each = [[numbers[row] for row in server.rows] for server in subject.table.servers if server.rows]
    return any(min(own) < max(before) for before, own in pairwise(of_each))


def _names_in_text_order(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on server_ids in the order of text, with addresses in the order of numbers."""
    names = [*map(attrgetter("server_id"), subject.table.servers)]
    if len(names) < _LEAST_SERVERS or len({*map(len, names)}) == 1 or names != sorted(names):
        return
    ends = [number_at_end(name) for name in names]
    begins = {None if end is None else end[0] for end in ends}
    order = sorted(range(len(names)), key=lambda index: end[1] if (end := ends[index]) is not None else 0)
    own = [end[1] for end in ends if end is not None]
    is_row = len(begins) == 1 and len(own) == len(names) and max(own) - min(own) == len(names) - 1
    if not is_row or order == [*range(len(names))]:
        return
    place = {index: at for at, index in enumerate(order)}
    at = next(index for index in range(1, len(names)) if place[index] < place[index - 1])
    row = subject.table.servers[1].rows[0]
    yield Finding(
        f"the server_ids are in the order of text, {quoted(names[at - 1])} before {quoted(names[at])}, and the device_ips in that of "
        "numbers: the column was probably sorted alone",
        subject.server_path(1, "server_id"),
        f"{how(subject, row)}: if it is not {quoted(subject.table.device_ips[row])}, sort the server_ids by their numbers",
    )


def _instances_in_text_order(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on a group_list whose servers HCCL sorts by their names, in another order than that of the file."""
    table = subject.table
    if table.format != "group_list" or "server_id" in subject.damaged:
        return
    names = [*dict.fromkeys(map(attrgetter("server_id"), table.servers))]
    if names == (right := sorted(names)) or packed(names[0]) is not None:
        return
    ends = [number_at_end(name) for name in names]
    own = [end[1] for end in ends if end is not None]
    is_named = len(own) == len(names) and len({end[0] for end in ends if end is not None}) == 1
    if not is_named or own != sorted(own):
        return
    at = next(index for index, name in enumerate(right) if name != names[index])
    width = len(str(own[-1]))
    begin = ends[0][0] if ends[0] is not None else ""
    padded = f"{begin}{str(own[at]).zfill(width)}"
    yield Finding(
        f"HCCL numbers the ranks of a group_list by server_id in the order of text, in which {quoted(right[at])} is before {quoted(names[at])}: "
        "the ranks do not follow the order of the file",
        subject.server_path(
            next(index for index, server in enumerate(table.servers) if server.server_id == right[at]),
            "server_id",
        ),
        f"write all numbers with {width} digits ({quoted(padded)} in place of {quoted(names[at])}), here and wherever the job names its servers; if "
        "the ranks may follow the order of text, nothing is wrong",
    )


def _counted_from_one(subject: Subject) -> int | None:
    """Return the number of devices of each server, if all number them from 1 on, as whole machines or as the ranks are."""
    table = subject.table
    numbers, size = table.device_numbers, len(table.servers[0].rows) if table.servers else 0
    if size < 2 or 0 in numbers or size >= subject.product.device_limit:  # HCC302 reports the highest one.
        return None
    right = {*range(1, size + 1)}
    if any({numbers[row] for row in one.rows} != right or len(one.rows) != size for one in table.servers):
        return None
    are_ranks = {*table.rank_numbers} == {*range(1, len(numbers) + 1)}
    return size if size == WHOLE_MACHINES[0] or are_ranks else None


def _filled_servers(subject: Subject, blocks: list[range]) -> Iterator[Finding]:
    """Yield the finding on entries whose server_ids were counted on; HCC308, HCC503 and HCC525 report them as errors."""
    names = {server.server_id for server in subject.table.servers}
    if len(names) == len(subject.table) and subject.product.cluster_count is None and not is_used(subject):
        message, hint = servers_filled(subject, blocks, "nothing is wrong")
        yield Finding(message, subject.server_path(1, "server_id"), hint)


@rule(
    "HCC649",
    "device-ids-are-ranks",
    "advice",
    formats=SERVER_LIST,
    needs=("device_id", "rank_id", "server_id"),
    source="device_id is the number of the device on its server (rank_table_config_910.md); HCCL does not compare it with the rank",
)
def device_ids_are_ranks(subject: Subject) -> Iterator[Finding]:
    """The device_ids, or the super_device_ids, of all servers are their ranks, or the device_ids are counted from 1.

    Each server numbers its devices itself. HCCL accepts such ids if the product has devices with these numbers. If each
    entry has one device, the server_ids may have been counted on with the devices.

    Base: 2x8 a2
    Example: /server_list/1/device/0/device_id = "8"; /server_list/1/device/1/device_id = "9"; /server_list/1/device/2/device_id = "10"; /server_list/1/device/3/device_id = "11"; /server_list/1/device/4/device_id = "12"; /server_list/1/device/5/device_id = "13"; /server_list/1/device/6/device_id = "14"; /server_list/1/device/7/device_id = "15"
    Instead: table
    Hint: if server 2 ("10.0.0.2") has devices of its own from 0 on, write 0 to 7 in it, and so on for each server: `hccn_tool -i 0 -ip -g` on 10.0.0.2 then shows "192.168.1.100"
    """
    table, ranks = subject.table, subject.table.rank_ids
    if (size := _counted_from_one(subject)) is not None:
        yield Finding(
            f"the device_ids go from 1 to {size} on each server: HCCL counts devices from 0",
            subject.device_path(table.servers[0].rows[0], "device_id"),
            f"subtract 1 from each device_id, so that they go from 0 to {size - 1}: `hccn_tool -i 0 {address_query(subject)}` on {shown_host(table.servers[0].address)} then shows the first address",
        )
        return
    if len(table.servers) < 2 or len({server.server_id for server in table.servers}) == 1:
        return  # One server that was pasted twice has no ids of others.
    if filled := filled_servers(subject):
        yield from _filled_servers(subject, filled)
        return
    if (runs := filled_among_others(subject)) and not subject.product.even_servers:  # Else HCC306 reports it.
        yield servers_among_others(subject, runs, "nothing is wrong")
        return
    row, sdids = (
        table.servers[1].rows[0] if table.servers[1].rows else 0,
        table.columns.get("super_device_id"),
    )
    if sdids is not None and [*sdids] == [*ranks] and row:
        yield Finding(
            "the super_device_ids are the ranks",
            subject.device_path(row, "super_device_id"),
            f"write the SDID of each device: {how_super_device(subject, row)}, and so on for each device",
        )
    limit, numbers = subject.product.device_limit, table.device_numbers
    if table.device_ids != ranks or not row or (numbers[-1] or 0) >= limit or numbers[0] != 0:
        return
    if not numbers[row]:
        return  # The ranks start again with the devices: HCC203 has that.
    if {len(server.rows) for server in table.servers} != {WHOLE_MACHINES[0]} or table.format != "1.0":
        return  # A job may use the first devices of a machine and the next ones of another.
    size, own, address = len(table.servers[1].rows), table.servers[1], table.device_ips[row]
    shown = f" then shows {quoted(address)}" if isinstance(address, str) else " then shows its address"
    yield Finding(
        f"the device_ids run on over the {len(table.servers)} servers, as the ranks do: {named_server(subject, 1)} begins with device "
        f"{table.device_ids[row]}",
        subject.device_path(row, "device_id"),
        f"if {named_server(subject, 1)} has devices of its own from 0 on, write 0 to {size - 1} in it, and so on for each server: "
        f"`hccn_tool -i 0 {address_query(subject)}` on {shown_host(own.address)}{shown}",
    )
