"""A server whose addresses continue those of the server before, as a spreadsheet fills a column. No rules are declared here."""

from __future__ import annotations

from itertools import pairwise
from operator import sub
from typing import TYPE_CHECKING, cast

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.rules.address_order import address_numbers, address_text
from hccl_tools.rules.commands import how
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import Finding, Subject
from hccl_tools.rules.value_order import USUAL, regular_bases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.value_order import Order

#: The fewest servers that show an order.
_LEAST_SERVERS = 3
#: The number of addresses of a network of the usual size.
_NETWORK = 256


def server_run_on(subject: Subject, numbers: Sequence[int], order: Order) -> tuple[int, int] | None:
    """Return the only server whose addresses begin after the last one of the server before, and what it should add.

    All other servers must be the same distance apart, as the numbers of their networks are.
    """
    servers = subject.table.servers
    first = [*map(order.first.get, range(len(servers)))]
    if len(first) < _LEAST_SERVERS or None in first:
        return None
    bases = cast("list[int]", first)
    steps = [*map(sub, bases[1:], bases)]
    if not 2 <= len({*steps}) <= _LEAST_SERVERS:
        return None
    if len({server.server_id.strip() for server in servers}) < len(servers):
        return None  # Two entries of one server continue each other: HCC503 or HCC616 reports them.
    run_on = [
        index
        for index, (one, server) in enumerate(pairwise(servers), 1)
        if len(one.rows) > 1
        and len(server.rows) == len(one.rows)
        and numbers[server.rows[0]] - numbers[one.rows[-1]] == numbers[one.rows[1]] - numbers[one.rows[0]]
    ]
    if len(run_on) != 1:
        return None
    (at,) = run_on
    others = [one for place, one in enumerate(steps, 1) if place not in (at, at + 1)]
    if at + 1 < len(bases):
        half, rest = divmod(bases[at + 1] - bases[at - 1], 2)
        others += [half] if rest == 0 else [0, 1]
    is_network = len(others) > 1 or not others[0] % _NETWORK
    return (at, bases[at - 1] + others[0] - bases[at]) if len({*others}) == 1 and is_network else None


def addresses_run_on(subject: Subject, index: int, add: int) -> Finding:
    """Return the finding on a server whose addresses continue those of the server before."""
    servers, numbers = subject.table.servers, address_numbers(subject) or []
    rows = servers[index].rows
    first, last = (address_text(subject, numbers[row] + add) for row in (rows[0], rows[-1]))
    return Finding(
        f"the device_ips of {named_server(subject, index)} do not follow the order of all others: they continue those of "
        f"{named_server(subject, index - 1)}, as if a spreadsheet filled the column",
        subject.device_path(rows[0], "device_ip"),
        f'{how(subject, rows[0])}: if it is "{first}", write "{first}" to "{last}" in this server',
    )


#: The fewest devices of a server whose addresses show that they are moved.
_LEAST_DEVICES = 4


def turned(subject: Subject, numbers: Sequence[int], order: Order | None) -> Iterator[Finding]:
    """Yield the finding on a server whose column of addresses, or of device_ids, is moved by one row.

    All other servers have their addresses one after the other in the order of their devices; their order is unknown else.
    """
    table = subject.table
    moved, in_row = list[int](), 0
    for index, server in enumerate(table.servers if order is None else ()):
        own = [numbers[row] for row in _by_device(subject, server.rows)]
        right = [*range(min(own), min(own) + len(own))] if own else []
        if len(own) < _LEAST_DEVICES:
            return
        in_row += own == right
        moved += [index] if own in ([*right[1:], right[0]], [right[-1], *right[:-1]]) else []
    if len(moved) != 1 or in_row != len(table.servers) - 1 or not in_row:
        return
    rows = table.servers[moved[0]].rows
    by_device = _by_device(subject, rows)
    first, last = (address_text(subject, pick(numbers[row] for row in rows)) for pick in (min, max))
    is_of_ids = by_device != [*rows]
    key = "device_id" if is_of_ids else "device_ip"
    write = f'write "{first}" to "{last}" in the order of the devices'
    if is_of_ids:
        write = f"write the device_ids {fold(table.device_numbers[row] or 0 for row in by_device)} in the order of the addresses"
    yield Finding(
        f"the {key}s of {named_server(subject, moved[0])} are probably moved: the other servers have their addresses in the order of their "
        "devices",
        subject.device_path(rows[0], key),
        f'{how(subject, by_device[0])}: if it is "{first}", {write}',
    )


def all_turned(subject: Subject, numbers: Sequence[int]) -> Iterator[Finding]:
    """Yield the finding on servers that all have their addresses in the order of the devices, but moved by one row."""
    table = subject.table
    ids = table.devices_of_each
    if ids is None or None in ids or len(ids) < _LEAST_DEVICES:
        return
    by_device = sorted(range(len(ids)), key=lambda place: ids[place] or 0)
    # In a regular table the first server shows the order of all.
    shown = table.servers[:1] if regular_bases(subject, numbers) is not None else table.servers
    columns = [[numbers[server.rows[place]] for place in by_device] for server in shown]
    is_up = _is_turned(ids, columns, 1)
    if not is_up and not _is_turned(ids, columns, -1):
        return
    rows, ips = table.servers[0].rows, table.device_ips
    row, beside = rows[by_device[0]], rows[by_device[-1 if is_up else 1]]
    are_ids = by_device != [*range(len(ids))]
    key, other = ("device_id", "device_ip") if are_ids else ("device_ip", "device_id")
    write = (
        f"write the device_ids {fold(sorted(one or 0 for one in ids))} from the first entry of each server to the last"
        if are_ids
        else f"move the device_ips of each server {'down' if is_up else 'up'} by one row, that of the {'last' if is_up else 'first'} row to "
        f"the {'first' if is_up else 'last'} one"
    )
    yield Finding(
        f"the device_ips of {'each server' if len(table.servers) > 1 else named_server(subject, 0)} are in the order of the devices, but begin "
        f"with another one: probably either the {key}s are moved by one row, or the {other}s",
        subject.device_path(rows[0], key),
        f"{how(subject, row)}: if it is {quoted(ips[row])}, nothing is wrong; if it is {quoted(ips[beside])}, {write}",
    )


def _is_turned(ids: Sequence[int | None], columns: Sequence[list[int]], step: int) -> bool:
    """Return whether each column has a usual order, in which each device has the value of the next one or the one before."""
    of_each = [_from_least(own) for own in columns]
    for usual in USUAL:
        scheme = [usual(one) for one in sorted(one or 0 for one in ids)]
        turned_scheme = _from_least([*scheme[step:], *scheme[:step]])
        if all(own == turned_scheme for own in of_each):
            return True
    return False


def _from_least(values: list[int]) -> list[int]:
    least = min(values)
    return [value - least for value in values]


def _by_device(subject: Subject, rows: Sequence[int]) -> list[int]:
    return sorted(rows, key=lambda row: subject.table.device_numbers[row] or 0)
