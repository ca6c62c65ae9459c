"""A server whose device_ips do not follow the one pattern of all others (HCC631, HCC633). This module declares no rules.

The addresses of a machine that was replaced, or was set up again, often stay in the table. A machine may also have addresses
of its own: its host alone shows which it is.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more, count, listed_parts
from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_order import address_numbers, address_text, are_in_place, order_of_addresses
from hccl_tools.rules.commands import how, of_each
from hccl_tools.rules.copies import named_server, stand_ins
from hccl_tools.rules.moved_rows import moved_addresses
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.run_on import server_run_on
from hccl_tools.rules.server_places import LEAST_SERVERS, host_numbers, owners_by_order
from hccl_tools.rules.value_order import regular_bases
from hccl_tools.table.addresses import is_loopback, is_netmask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest devices of a server that show that its addresses are old: one card alone may have been replaced.
_LEAST_ROWS = 2
#: The most frequent distances of servers that are tried: one server changes two of them.
_TRIED = 3
#: The number of addresses of a usual network, and the servers of which any distance shows a pattern.
_NETWORK, _MANY = 256, 6
#: The most devices and places that a finding names.
_MOST_NAMED = 16


class Stale(NamedTuple):
    """The rows of a server whose addresses do not follow the pattern of all others.

    Attributes:
        server: The index of the server.
        expected: The address of each of these rows by the order of the others, in the order of the file.
        is_known: Whether it is certain that the order is that of these addresses, and not of the rest of the server.
    """

    server: int
    expected: dict[int, int]
    is_known: bool


@shared
def stale_addresses(subject: Subject) -> Stale | None:
    """Return the only server with several addresses outside the pattern of all others; None if another fault explains them."""
    numbers, devices = address_numbers(subject), subject.table.devices_of_each
    if (
        numbers is None
        or devices is None
        or not are_in_place(subject)
        or moved_addresses(subject) is not None
    ):
        return None
    order = order_of_addresses(subject)
    if order is not None and (order.moved_up or order.moved_down or order.groups):
        return None
    if order is not None and server_run_on(subject, numbers, order) is not None:
        return None
    found = _by_servers(subject, numbers) or _by_devices(subject)
    if found is None or len(found.expected) < _LEAST_ROWS or found.server in stand_ins(subject):
        return None  # A server with the ranks of another one is new: HCC203 reports it.
    texts = {row: subject.table.device_ips[row] for row in found.expected}
    pairs = [(text, address_text(subject, found.expected[row])) for row, text in texts.items()]
    if all(is_near(*pair) for pair in pairs) and (len(pairs) <= _LEAST_ROWS or _are_of_other_networks(pairs)):
        return None  # These were mistyped.
    return None if _is_of_no_device(subject, texts) else found


def _are_of_other_networks(pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether the first two numbers of all these addresses are others than expected."""
    return all(text.split(".")[:2] != right.split(".")[:2] for text, right in pairs)


def _is_of_no_device(subject: Subject, texts: Mapping[int, str]) -> bool:
    """Return whether one of these is an address of a host, a network or a program: HCC614 reports it."""
    hosts = {server.server_id for server in subject.table.servers}
    return any(
        text in hosts or is_netmask(text) or is_loopback(text) or text.endswith((".0", ".255"))
        for text in texts.values()
    )


def _by_servers(subject: Subject, numbers: Sequence[int]) -> Stale | None:
    """Return the server outside a pattern in which the addresses of a server follow from its server_id or its place."""
    servers = subject.table.servers
    size = len(servers[0].rows) if servers else 0
    if len(servers) < LEAST_SERVERS or not size:
        return None
    regular, known = regular_bases(subject, numbers), host_numbers(subject)
    if regular is not None and known is not None and owners_by_order(known, [*regular.values()]) is not None:
        return None
    columns = [numbers[first : first + size] for first in range(0, len(numbers), size)]
    shapes = [
        tuple(value - own[0] for value in own)
        for own in (columns[:1] * len(columns) if regular is not None else columns)
    ]
    shape, times = Counter(shapes).most_common(1)[0]
    if times < len(servers) - 1:
        return None
    other = next((index for index, one in enumerate(shapes) if one != shape), None)
    for hosts in (known, [*range(len(servers))]):
        pattern = None if hosts is None else _pattern(hosts, [own[0] for own in columns], other, size)
        if hosts is None or pattern is None:
            continue
        index, base = pattern
        rest = [number for place, number in enumerate(hosts) if place != index]
        if not min(rest) - 1 <= hosts[index] <= max(rest) + 1:
            return None  # A host that was added may follow another scheme.
        pairs = zip(servers[index].rows, shape, strict=True)
        expected = {row: base + step for row, step in pairs if numbers[row] != base + step}
        own = sorted(numbers[row] for row in expected)
        taken = {*numbers} - {*columns[index]}
        if own == sorted(expected.values()) or not taken.isdisjoint(expected.values()):
            return None
        return Stale(index, expected, is_known=True)
    return None


def _pattern(
    hosts: Sequence[int], bases: Sequence[int], other: int | None, size: int
) -> tuple[int, int] | None:
    """Return the only server outside the pattern, and the address of its first device by it; None if there is no such.

    Args:
        other: The server that is outside for certain; None if it is not known.
        size: The number of devices of a server: of few servers, the distances are this, or a power of two.
    """
    each = [*enumerate(zip(hosts, bases, strict=True))]
    known = sorted(pair for place, pair in each if place != other)
    steps = Counter(
        (base - before) // (host - last)
        for (last, before), (host, base) in pairwise(known)
        if host > last and (base - before) % (host - last) == 0
    )
    found = dict[int, int]()
    for step, _ in steps.most_common(_TRIED):
        first = Counter(base - step * host for host, base in known).most_common(1)[0][0]
        wrong = [place for place, (host, base) in each if base != first + step * host or place == other]
        is_neat = abs(step) & (abs(step) - 1) == 0 or abs(step) == size or len(hosts) >= _MANY
        if step and is_neat and len(wrong) == 1:
            found[wrong[0]] = first + step * hosts[wrong[0]]
    return found.popitem() if len(found) == 1 else None


def _by_devices(subject: Subject) -> Stale | None:
    """Return the server of which some devices do not follow the pattern of the devices of all servers."""
    order = order_of_addresses(subject)
    if order is None or len(order.first) < len(subject.table.servers) or len(order.first) < _LEAST_ROWS:
        return None
    owners = {subject.table.server_of_row[row] for row in order.single}
    if len(owners) != 1:
        return None
    (index,) = owners
    expected = {row: order.expected[row] for row in order.single}
    numbers = address_numbers(subject) or []
    networks = {number // _NETWORK for row, number in enumerate(numbers) if row not in expected}
    if not networks.isdisjoint(numbers[row] // _NETWORK for row in expected):
        return None  # These are other addresses of the same networks.
    is_most = 2 * len(expected) < len(subject.table.servers[index].rows)
    return Stale(index, expected, is_known=is_most and len(order.first) >= LEAST_SERVERS)


def is_whole(subject: Subject, found: Stale) -> bool:
    """Return whether all addresses of the server are outside the pattern."""
    return len(found.expected) == len(subject.table.servers[found.server].rows)


def of_stale(subject: Subject, found: Stale) -> Finding:
    """Return the finding on a server with addresses outside the pattern."""
    table, rows = subject.table, list(found.expected)
    row, server = rows[0], named_server(subject, found.server)
    ids = listed_parts([str(table.device_ids[one]) for one in rows], _MOST_NAMED)
    texts = [quoted(address_text(subject, one)) for one in found.expected.values()]
    ask, known = how(subject, row), quoted(table.device_ips[row])
    right = f"by the order of the others {and_more(texts, _MOST_NAMED)}"
    which, what = "they", f"the device_ips of devices {ids} of {server} do not follow the order of all others"
    if is_whole(subject, found):
        others = count(len(table.servers) - 1, "other server")
        what = f"the device_ips of {server} do not follow the order of those of the {others}"
        right = f"by the order of the others {texts[0]} to {texts[-1]}"
    hint = (
        f"{ask}: if it is {known}, nothing is wrong; else write the addresses that this host shows, {right}"
    )
    if not found.is_known:
        which = "either they or the others of this server"
        hint = f"write for each device of this server the address that its host shows: {of_each(subject, table.servers[found.server].rows[0])}"
    return Finding(
        f"{what}: perhaps {which} are old, those of a machine that was replaced or set up again",
        subject.device_path(row, "device_ip"),
        hint,
        tuple(Related(subject.device_path(one, "device_ip"), "and here") for one in rows[1:_MOST_NAMED]),
    )
