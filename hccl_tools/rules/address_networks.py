"""Devices whose addresses are in the network of another device (HCC631). This module declares no rules.

The devices of a machine are often in networks of their own, four or eight of them, in which the addresses follow no order.
Two addresses that are exchanged are then in each other's network.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.address_columns import plain_addresses
from hccl_tools.rules.commands import how
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import Finding
from hccl_tools.rules.value_order import regular_bases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest devices of a server that show the networks.
_LEAST_DEVICES = 4
#: The fewest networks.
_LEAST_NETWORKS = 2
_TWO = 2


def in_each_others_network(subject: Subject, numbers: Sequence[int]) -> Finding | None:
    """Return the finding on the only two devices of a server that are in each other's network; None if there are none."""
    devices = subject.table.devices_of_each
    if (
        devices is None
        or None in devices
        or len(devices) < _LEAST_DEVICES
        or (plain := plain_addresses(subject)) is None
        or plain.ipv4 is None
        or regular_bases(subject, numbers) is not None
    ):
        return None
    for bits in (16, 8):
        networks = [number >> bits for number in numbers]
        for period in (len(devices) // 2, len(devices)):
            places = [(device or 0) % period for device in devices]
            if len({*places}) == period >= _LEAST_NETWORKS and (rows := _exchanged(networks, places)):
                return _finding(subject, rows)
    return None


def _exchanged(networks: Sequence[int], places: Sequence[int]) -> list[int]:
    """Return the rows in each other's network: two, or four in two servers if nothing says in which of them; else none.

    Args:
        networks: The network of each row.
        places: For each device of a server the number of its network.
    """
    size = len(places)
    of_place = [Counter[int]() for _ in range(max(places) + 1)]
    for row, network in enumerate(networks):
        of_place[places[row % size]][network] += 1
    usual = [found.most_common(1)[0][0] for found in of_place]
    mixed = [place for place, found in enumerate(of_place) if len(found) > 1]
    if len(mixed) != _TWO or len(
        {*usual, *(network for place in mixed for network in of_place[place])}
    ) != len(usual):
        return []
    if of_place[mixed[0]].total() == _TWO and len(networks) == 2 * size:
        rows = [row for row in range(len(networks)) if places[row % size] in mixed]
        first = [networks[row] for row in rows]
        return rows if first[:2] == first[:1:-1] else []  # Two servers: nothing says which of them is right.
    rows = [row for row, network in enumerate(networks) if network != usual[places[row % size]]]
    are_most = all(2 * found.most_common(1)[0][1] > found.total() for found in of_place)
    if len(rows) != _TWO or not are_most or len({*usual}) < len(usual) or rows[0] // size != rows[1] // size:
        return []
    return (
        rows
        if [networks[row] for row in rows] == [usual[places[row % size]] for row in reversed(rows)]
        else []
    )


def _finding(subject: Subject, rows: list[int]) -> Finding:
    table = subject.table
    row, other, *rest = rows
    ids, ips = table.device_ids, table.device_ips
    pair = f"devices {ids[row]} and {ids[other]} of {named_server(subject, table.server_of_row[row])}"
    what = f"the device_ips of {pair} are in each other's network, as those of all others show: they are probably exchanged"
    hint = f"{how(subject, row)}: if it is {quoted(ips[other])}, exchange the two"
    if rest:
        second = named_server(subject, table.server_of_row[rest[0]])
        what = (
            f"the device_ips of {pair} are in the networks of the other device of these in {second}: either they are exchanged, or those of "
            f"{second}"
        )
        hint += f"; if it is {quoted(ips[row])}, {how(subject, rest[0])}: if that is {quoted(ips[rest[1]])}, exchange the two there; else nothing is wrong"
    return Finding(
        what,
        subject.device_path(row, "device_ip"),
        hint,
        tuple(Related(subject.device_path(one, "device_ip"), "and here") for one in (other, *rest)),
    )
