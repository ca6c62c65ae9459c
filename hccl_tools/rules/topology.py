"""Rules of HCCL's topology check: which sets of devices a server may have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.notation import phrases
from hccl_tools.rules.address_order import one_of
from hccl_tools.rules.commands import how_device
from hccl_tools.rules.copies import (
    absent_ranks,
    first_of_group,
    instances_of_other_hosts,
    lost_devices,
    surplus_rows,
)
from hccl_tools.rules.filled_columns import filled_among_others, servers_among_others
from hccl_tools.rules.moved_entries import is_listed_twice, owners, right_devices
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule, shared
from hccl_tools.rules.run_together import run_together
from hccl_tools.rules.stray_devices import move_hint
from hccl_tools.rules.surplus_devices import (
    gives_to,
    refused_surplus,
    surplus_devices,
    why_surplus,
    without_surplus,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Column

_FOUR = 4
#: The device counts that HCCL accepts on a server with two devices that are connected by HCCS.
_COUNTS = (1, 2, 4, 8)


def other_chip(subject: Subject) -> str:
    """Return the part of a hint that suggests another product; "" if the product is not only assumed."""
    if not subject.product_is_assumed:
        return ""
    chip = next(iter(subject.product.chips), subject.product.name)
    return f", or, if the chip is not a {chip}, specify it with --product {phrases.EXAMPLE_CHIP}"


@shared
def rows_by_server(subject: Subject) -> dict[str, Sequence[int]]:
    """Return the rows of each server_id, in order of appearance; a group_list may list a server twice.

    Copies that are only to be removed are left out: they do not change the number of devices. Entries in the list of
    another server are those of their own.
    """
    servers = subject.table.servers
    found = {server.server_id: server.rows for server in servers}
    others = {row for index in instances_of_other_hosts(subject) for row in servers[index].rows}
    surplus = surplus_rows(subject) | others
    moved = owners(subject) if is_listed_twice(subject) else {}
    if len(found) == len(servers) and not surplus and not moved:
        return found
    merged: dict[str, list[int]] = {}
    for server in servers:
        if server.server_id in merged and subject.table.format in SERVER_LIST:
            continue  # HCC503 reports it; the devices of both are not those of one server.
        merged.setdefault(server.server_id, []).extend(
            row for row in server.rows if row not in surplus and row not in moved
        )
    for row, index in moved.items():
        merged[servers[index].server_id].append(row)
    return dict(merged)


@shared
def device_sets(subject: Subject) -> dict[str, tuple[int, ...]]:
    """Return each server's device ids, ascending; rows whose id cannot be read are left out."""
    numbers = right_devices(subject)
    sorted_once: dict[tuple[int | None, ...], tuple[int, ...]] = {}
    found = {}
    for server_id, rows in rows_by_server(subject).items():
        listed = tuple(_taken(numbers, rows))
        if listed not in sorted_once:
            sorted_once[listed] = tuple(sorted(number for number in listed if number is not None))
        found[server_id] = sorted_once[listed]
    return found


def _taken(column: Column, rows: Sequence[int]) -> Column:
    """Return the given rows of a column; the rows of one server entry are consecutive."""
    return column[rows.start : rows.stop] if isinstance(rows, range) else [column[row] for row in rows]


def trimmed(server_id: str) -> str:
    """Return a server_id without blanks at its ends, as a part of HCCL compares it (sal.cc, SalTrim)."""
    return server_id.strip(" ") or server_id


def devices_place(subject: Subject, server_id: str) -> Path:
    """Return the path of a server's (first) list of devices."""
    index = _first_entries(subject)[server_id]
    return subject.server_path(index, "devices" if subject.table.format == "group_list" else "device")


@shared
def _first_entries(subject: Subject) -> dict[str, int]:
    servers = subject.table.servers
    return {servers[index].server_id: index for index in reversed(range(len(servers)))}


@rule(
    "HCC304",
    "device-count",
    "refused",
    code="EI0014",
    needs=("device_id",),
    stage="topology",
    source="hccl_communicator_attrs_host.cc:621-673",
)
def device_count(subject: Subject) -> Iterator[Finding]:
    """A 910A server has 3, 5, 6 or 7 devices.

    If two devices of a server are connected by HCCS, the server must have 1, 2, 4 or 8 devices.

    Base: 1x4
    Example: remove /server_list/0/device/3
    Instead: table
    Hint: add device 3 with rank 3 and the address that `hccn_tool -i 3 -ip -g` on 10.0.0.1 shows, if it is missing, or use 1, 2, 4 or 8 devices
    """
    if not subject.product.checks_hccs_count:
        return
    for server_id in servers_of_refused_count(subject):
        count = len(rows_by_server(subject)[server_id])
        if count in _COUNTS:  # HCCL counted a server merged because of blanks, or an uneven server (HCC306)
            if fault := blanks(subject):
                yield fault
                return
            continue
        index = _first_entries(subject)[server_id]
        if index in refused_surplus(subject):
            continue  # Another rule reports the entry that is one too many.
        different = len(set(device_sets(subject)[server_id]))
        if different < count and different in _COUNTS:
            continue  # HCC303 reports the devices that are listed again, which are perhaps those of another server.
        if index in surplus_devices(subject):
            yield Finding(
                f'server "{server_id}" has {count} devices; {subject.product.title} allows 1, 2, 4 or 8: {why_surplus(subject, index)}',
                devices_place(subject, server_id),
                without_surplus(subject, index),
            )
            continue
        hint, rest = (
            f"use 1, 2, 4 or 8 devices{other_chip(subject)}",
            f"{subject.product.title} allows 1, 2, 4 or 8",
        )
        yield Finding(
            f'server "{server_id}" has {count} devices; {rest}',
            devices_place(subject, server_id),
            f"{_completed(subject, server_id)}{hint}",
            alike=(f"servers have {count} devices; {rest}", hint),
        )


def _completed(subject: Subject, server_id: str) -> str:
    """Return the hint on the only device without which a server has no valid number; "" if there is none."""
    own = device_sets(subject)[server_id]
    if len(own) + 1 not in _COUNTS or len(set(own)) != len(own):
        return ""
    first = first_of_group(own)
    lost = sorted(set(range(first, first + len(own) + 1)) - set(own))
    if len(lost) != 1 or subject.table.format == "group_list":
        return "" if len(lost) != 1 else f"add device {lost[0]} if it is missing, or "
    index = _first_entries(subject)[server_id]
    if (moved := move_hint(subject, [(index, lost[0])])) is not None:
        return f"{moved}, or "
    rank, then = _rank_of_lost(subject, index, lost)
    shown = f" with rank {rank}" if rank is not None else ""
    address = f" and the address that {how_device(subject, index, lost[0])} shows"
    return f"add device {lost[0]}{shown}{address if any(subject.table.device_ips) else ''}{then}, if it is missing, or "


def blanks(subject: Subject) -> Finding | None:
    """Return the finding for a server_id whose blanks make HCCL miscount, or None if no id has blanks."""
    server_id = next((name for name in rows_by_server(subject) if name != trimmed(name)), None)
    if server_id is None:
        return None
    place = devices_place(subject, server_id)[:-1]
    index = next(at for at, server in enumerate(subject.table.servers) if server.server_id == server_id)
    if (said := one_of(subject, index)) is not None:
        return Finding(said[0], (*place, "server_id"), said[1])
    return Finding(
        f'server_id "{server_id}" has blanks at its ends, which a part of HCCL strips when it compares ids',
        (*place, "server_id"),
        "delete the blanks",
    )


def servers_of_refused_count(subject: Subject) -> list[str]:
    """Return the servers whose ranks HCCL refuses for their number of devices.

    HCCL counts the devices of the first server in the order of the trimmed ids. A rank checks the count only
    if its own server has two devices in one group.
    """
    counts: Counter[str] = Counter()
    sets = device_sets(subject)
    usual = all(len(devices) in _COUNTS for devices in set(sets.values()))
    if usual and all(name == trimmed(name) for name in sets):
        return []
    for server_id, rows in rows_by_server(subject).items():
        counts[trimmed(server_id)] += len(rows)
    size = subject.product.group_size or len(subject.table)
    refused, first = [], min(counts)
    for server_id, devices in sets.items():
        joined = any(count > 1 for count in Counter(device // size for device in set(devices)).values())
        counted = counts[min(first, server_id)]
        if joined and counted not in (0, *_COUNTS):
            refused.append(server_id)
    return refused


@rule(
    "HCC305",
    "four-device-set",
    "refused",
    code="EI0014",
    needs=("device_id",),
    stage="topology",
    source="topoinfo_parse.cc:32, :278-317",
)
def four_device_set(subject: Subject) -> Iterator[Finding]:
    """Four devices of a 910A server are neither one group nor two opposite pairs.

    HCCL accepts 0-3, 4-7, and the six sets of two opposite pairs: 0,1,4,5; 0,2,4,6; 0,3,4,7; 1,2,5,6;
    1,3,5,7; 2,3,6,7.

    Base: 1x4
    Example: /server_list/0/device/3/device_id = "4"
    Instead: /server_list/0/device/3/device_id = "3"
    Hint: use devices 0-3 or 4-7, and write the address of each new device beside its id: `hccn_tool -i 3 -ip -g` on 10.0.0.1 shows that of device 3
    """
    legal = subject.product.four_device_sets
    if legal is None:
        return
    sets = device_sets(subject)
    if not any(len(devices) == _FOUR for devices in set(sets.values())):
        return
    for server_id, devices in sets.items():
        if len(devices) == _FOUR and len(set(devices)) == _FOUR and devices not in legal:
            yield Finding(
                f'devices {",".join(map(str, devices))} of server "{server_id}" are not a set of four devices that HCCL accepts',
                devices_place(subject, server_id),
                _even(subject, server_id)
                if subject.product.even_servers and len(set(map(len, sets.values()))) > 1
                else _other_four(subject, server_id, devices),
            )


def _other_four(subject: Subject, server_id: str, devices: Sequence[int]) -> str:
    """Return the hint on four devices: each device that is written in place of another has an address of its own."""
    group = max((range(4), range(4, 8)), key=lambda one: len({*one}.intersection(devices)))
    new = next(device for device in group if device not in devices)
    index = _first_entries(subject)[server_id]
    return (
        "use devices 0-3 or 4-7, and write the address of each new device beside its id: "
        f"{how_device(subject, index, new)} shows that of device {new}"
    )


@rule(
    "HCC306",
    "uneven-servers",
    "refused",
    code="EI0014",
    needs=("server_id",),
    stage="check",
    source="config.cc:483-530",
)
def uneven_servers(subject: Subject) -> Iterator[Finding]:
    """Servers have different numbers of devices, but the product requires equal numbers.

    Base: 2x8
    Example: remove /server_list/1/device/7
    Instead: table
    Hint: add device 7 with rank 15 and the address that `hccn_tool -i 7 -ip -g` on 10.0.0.2 shows; or remove this server, and correct the counts and ranks
    """
    if not subject.product.even_servers:
        return
    rows = rows_by_server(subject)
    counts, surplus = Counter(map(len, rows.values())), surplus_devices(subject)
    if len(counts) > 1 and (both := run_together(subject)) is not None and both.has_twice:
        return  # HCC303 reports it.
    if runs := filled_among_others(subject) if len(counts) > 1 else []:
        yield servers_among_others(subject, runs, "use the same number of devices on every server")
        return
    usual = max(counts, key=lambda count: (counts[count], count))
    if surplus and usual - 1 in counts:
        usual -= 1  # The machines have so many devices, and each of these servers an entry more.
    for server_id, own in rows.items():
        if len(own) != usual:
            count = (
                f'server "{server_id}" has {phrases.count(len(own), "device")}, other servers have {usual}'
            )
            index = _first_entries(subject)[server_id]
            if index in refused_surplus(subject):
                continue
            giver = index if index in surplus else gives_to(subject, index)
            yield Finding(
                f"{count}{_not_listed(subject, server_id, rows, usual)}"
                if index not in surplus
                else f"{count}: {why_surplus(subject, index)}",
                devices_place(subject, server_id),
                _even(subject, server_id) if giver is None else without_surplus(subject, giver),
            )


def _even(subject: Subject, server_id: str) -> str:
    """Return the hint on a server with another number of devices: the devices that it lost, with their ranks."""
    index, even = _first_entries(subject)[server_id], "use the same number of devices on every server"
    without = ""
    if subject.product.checks_hccs_count:  # HCC308 refuses fewer devices on each of several servers.
        without = "remove this server, and correct the counts and ranks"
        even = f"list all {_COUNTS[-1]} devices of every server; or {without}"
    lost = lost_devices(subject)
    own = lost.of_server.get(index) if lost is not None else None
    if not own:
        return even
    if (moved := move_hint(subject, [(index, device) for device in own])) is not None:
        return moved
    rank, then = _rank_of_lost(subject, index, own)
    shown = f" with rank {rank}" if rank is not None else ""
    return f"add {phrases.devices(own)}{shown} and the address that {how_device(subject, index, own[0])} shows{then}; or {without or even}"


def _rank_of_lost(subject: Subject, index: int, devices: Sequence[int]) -> tuple[int | None, str]:
    """Return the rank of a lost device, if the ranks of its server follow its devices, and what else is to be done."""
    table = subject.table
    if table.format == "group_list" or len(devices) != 1 or "rank_id" in subject.damaged:
        return None, ""
    absent, rows = absent_ranks(subject), table.servers[index].rows
    if len(absent) == 1:
        return absent[0], ""
    before = [table.rank_numbers[row] for row in rows if (table.device_numbers[row] or 0) < devices[0]]
    rank = (before[-1] or 0) + 1 if before else table.rank_numbers[rows[0]]
    return rank, "" if rank == len(
        table
    ) else f", and continue the rank numbers after it from {(rank or 0) + 1}"


def _not_listed(subject: Subject, server_id: str, rows: dict[str, Sequence[int]], usual: int) -> str:
    """Return the devices that a server lacks and the others have, as the end of a phrase."""
    if "device_id" in subject.damaged:
        return ""
    sets = device_sets(subject)
    other = next(name for name, own in rows.items() if len(own) == usual)
    lacking = sorted(set(sets[other]) - set(sets[server_id]))
    return f"; it does not list {phrases.devices(lacking)}" if lacking else ""
