"""A server whose addresses continue those of the server before, as a spreadsheet fills a column. No rules are declared here."""

from __future__ import annotations

from itertools import pairwise
from operator import sub
from typing import TYPE_CHECKING, cast

from hccl_tools.rules.address_order import address_numbers, address_text
from hccl_tools.rules.commands import how
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import Finding, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    if len({server.server_id for server in servers}) < len(servers):
        return None  # Two entries of one server continue each other: HCC503 reports them.
    bases = cast("list[int]", first)
    steps = [*map(sub, bases[1:], bases)]
    if not 2 <= len({*steps}) <= _LEAST_SERVERS:
        return None
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
