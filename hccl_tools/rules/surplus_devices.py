"""Entries of a server beyond the devices of its machine: which one is the odd one. This module declares no rules.

A machine has 8 or 16 devices. A server that lists one more has an entry that a loop wrote once too often, or the entry of
a device of another server.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import how_device
from hccl_tools.rules.copies import device_copies, named_server, repeated_entries
from hccl_tools.rules.moved_entries import owners
from hccl_tools.rules.registry import LEGACY, Finding, shared
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: A group_list is the format of the 910A: HCCL accepts only ids up to 7 in it, on every product.
GROUP_LIST_LIMIT = 8
_READ = frozenset({"device_id", "device_ip", "rank_id", "server_id"})


class Surplus(NamedTuple):
    """The entry of a server that is one too many.

    Attributes:
        row: The entry.
        twin: The entry of the same server with its device_id, if it is not certain which of the two is too much.
        source: The server whose device it is; None if the table does not show one.
        is_listed: Whether that server lists the device itself.
    """

    row: int
    twin: int | None
    source: int | None
    is_listed: bool


@shared
def surplus_devices(subject: Subject) -> dict[int, Surplus]:
    """Return the servers that list all devices of a machine and one entry more, with that entry."""
    table = subject.table
    if table.format not in LEGACY or not subject.damaged.isdisjoint(_READ):
        return {}
    most = max((len(server.rows) for server in table.servers), default=0)
    size = most - 1
    if size not in WHOLE_MACHINES or len({server.server_id for server in table.servers}) < len(table.servers):
        return {}
    found = {}
    for index, server in enumerate(table.servers):
        if len(server.rows) == most and (one := _surplus(subject, index, size)) is not None:
            found[index] = one
    return found


def _surplus(subject: Subject, index: int, size: int) -> Surplus | None:
    table, whole = subject.table, set(range(size))
    rows = table.servers[index].rows
    ids = {row: table.device_numbers[row] for row in rows}
    if not owners(subject).keys().isdisjoint(rows):
        return None
    outside = [row for row in rows if ids[row] not in whole]
    if len(outside) == 1 and set(ids.values()) - {ids[outside[0]]} == whole:
        source = _source(subject, outside[0], index)
        return Surplus(
            outside[0], None, source, source is not None and _has_address(subject, outside[0], source)
        )
    again = [number for number, times in Counter(ids.values()).items() if times == 2]
    if outside or len(again) != 1 or set(ids.values()) != whole:
        return None
    twins = [row for row in rows if ids[row] == again[0]]
    if not device_copies(subject).keys().isdisjoint(twins) or not repeated_entries(subject).keys().isdisjoint(
        twins
    ):
        return None  # HCC203 or HCC404 reports the copy.
    return _of_twins(subject, index, twins, again[0])


def _of_twins(subject: Subject, index: int, twins: list[int], device: int | None) -> Surplus:
    """Return which of two entries of a device is the odd one: the one that belongs to another server, or to no place."""
    table = subject.table
    sources = {row: source for row in twins if (source := _source(subject, row, index)) is not None}
    if len(sources) == 1:
        row, source = next(iter(sources.items()))
        is_listed = any(table.device_numbers[one] == device for one in table.servers[source].rows)
        return Surplus(row, None, source, is_listed)
    rows, ids = table.servers[index].rows, table.device_numbers
    fitting = [row for row in twins if (own := [ids[one] or 0 for one in rows if one != row]) == sorted(own)]
    row = fitting[0] if len(fitting) == 1 else twins[1]
    other = twins[0] if row == twins[1] else twins[1]
    lacking = [one for one in range(len(table.servers)) if _lacks(subject, one, row)]
    return Surplus(row, other, lacking[0] if len(lacking) == 1 else None, is_listed=False)


def _source(subject: Subject, row: int, index: int) -> int | None:
    """Return the only other server with the address of an entry, or with the network of it, if that is not the entry's server's."""
    table, text = subject.table, subject.table.device_ips[row]
    if type(text) is not str or not text:
        return None
    copies = [
        one for one, ip in enumerate(table.device_ips) if ip == text and table.server_of_row[one] != index
    ]
    if len(copies) == 1:
        return table.server_of_row[copies[0]]
    network = _network(text)
    own = {_network(table.device_ips[one]) for one in table.servers[index].rows if one != row}
    if network is None or network in own:
        return None
    users = _users_of_networks(subject).get(network, set()) - {index}
    return next(iter(users)) if len(users) == 1 else None


def _has_address(subject: Subject, row: int, source: int) -> bool:
    ips = subject.table.device_ips
    return any(ips[one] == ips[row] for one in subject.table.servers[source].rows)


def _network(text: object) -> str | None:
    return text.rpartition(".")[0] or None if type(text) is str else None


@shared
def _users_of_networks(subject: Subject) -> dict[str, set[int]]:
    """Return the servers with addresses in each network of 256 addresses."""
    found = dict[str, set[int]]()
    for row, text in enumerate(subject.table.device_ips):
        if (network := _network(text)) is not None:
            found.setdefault(network, set()).add(subject.table.server_of_row[row])
    return found


@shared
def pasted_devices(subject: Subject) -> dict[int, int]:
    """Return the entries with the address of a device of another server, which lists it itself, with that row."""
    table, found = subject.table, dict[int, int]()
    for one in surplus_devices(subject).values():
        if one.source is not None and one.is_listed and _has_address(subject, one.row, one.source):
            text = table.device_ips[one.row]
            found[one.row] = next(
                row for row in table.servers[one.source].rows if table.device_ips[row] == text
            )
    return found


@shared
def refused_surplus(subject: Subject) -> dict[int, str]:
    """Return the servers whose entry too many is refused, with the rule that reports it, alone for this entry.

    An entry that was copied and got the next device_id often has the address and the rank of another one as well.
    """
    table, found = subject.table, dict[int, str]()
    limit = GROUP_LIST_LIMIT if table.format == "group_list" else subject.product.device_limit
    for index, one in surplus_devices(subject).items():
        number = table.device_numbers[one.row]
        if one.twin is not None or one.source is not None or _is_listed(subject, index, number):
            continue
        if (number or 0) >= limit:
            found[index] = "HCC302"
        elif (text := table.device_ips[one.row]) and sum(ip == text for ip in table.device_ips) > 1:
            found[index] = "HCC404"
        elif sum(rank == table.rank_numbers[one.row] for rank in table.rank_numbers) > 1:
            found[index] = "HCC203"
    return found


def _is_listed(subject: Subject, index: int, number: int | None) -> bool:
    """Return whether a server has several entries of a device."""
    numbers = subject.table.device_numbers
    return sum(numbers[row] == number for row in subject.table.servers[index].rows) > 1


def surplus_finding(subject: Subject, index: int, key: str) -> Finding:
    """Return the only finding on an entry too many whose value of a key another device has."""
    table, row = subject.table, surplus_devices(subject)[index].row
    size = len(table.servers[index].rows) - 1
    what = f"device_ip {quoted(str(table.device_ips[row]))}" if key == "device_ip" else subject.rank_name(row)
    return Finding(
        f"{named_server(subject, index)} lists devices 0 to {size - 1}, and one more: the entry of device {table.device_ids[row]} is "
        f"probably one too many, and has {what}, as another device has",
        subject.device_path(row, key),
        without_surplus(subject, index),
    )


def refused_rows(subject: Subject) -> set[int]:
    """Return the entries of ``refused_surplus``, which other rules leave out."""
    surplus = surplus_devices(subject)
    return {surplus[index].row for index in refused_surplus(subject)}


def gives_to(subject: Subject, index: int) -> int | None:
    """Return the server whose entry too many is the device that a server lacks; None if there is none."""
    for own, one in surplus_devices(subject).items():
        if one.source == index and not one.is_listed and _lacks(subject, index, one.row):
            return own
    return None


def why_surplus(subject: Subject, index: int) -> str:
    """Return which entry of a server is one too many, as a phrase."""
    table, one = subject.table, surplus_devices(subject)[index]
    device = f"device {table.device_ids[one.row]}"
    if one.twin is not None:
        return f"{device} is listed twice, and one of its two entries is one too many"
    ip = table.device_ips[one.row]
    if one.source is not None:
        return f"the entry of {device} with {quoted(str(ip))} is probably that of {named_server(subject, one.source)}"
    return f"the entry of {device} is probably one too many"


def without_surplus(subject: Subject, index: int) -> str:
    """Return the hint on a server with an entry too many: what to remove or to move, and what follows in ranks and counts."""
    table, one = subject.table, surplus_devices(subject)[index]
    device = f"device {table.device_ids[one.row]}"
    is_twice = (
        sum(table.device_ids[row] == table.device_ids[one.row] for row in table.servers[index].rows) > 1
    )
    entry = f"the entry of {device}{f' with {quoted(str(table.device_ips[one.row]))}' if is_twice else ''}"
    if one.twin is not None:
        entry = f"the one of the two entries of {device} with another address than {how_device(subject, index, table.device_numbers[one.row] or 0)} shows"
    if one.source is not None and not one.is_listed and _lacks(subject, one.source, one.row):
        return (
            f"move {entry} to the list of {named_server(subject, one.source)}, which lacks it, and number the ranks server by "
            f"server, 0 to {len(table) - 1}"
        )
    which = f"remove {entry}"
    if one.source is not None and _has_address(subject, one.row, one.source):
        which += f", which {named_server(subject, one.source)} lists itself"
    return f"{which}{_what_follows(subject)}{_of_another(subject, one)}"


def _lacks(subject: Subject, index: int, row: int) -> bool:
    """Return whether a server lists all devices of the machine but that of an entry."""
    table = subject.table
    ids = {table.device_numbers[one] for one in table.servers[index].rows}
    return len(ids) + 1 in WHOLE_MACHINES and ids | {table.device_numbers[row]} == set(range(len(ids) + 1))


def _what_follows(subject: Subject) -> str:
    """Return what is to be done with the ranks and the counts when all entries that are too many are removed."""
    table, rows = subject.table, {one.row for one in surplus_devices(subject).values()}
    if table.format == "group_list":
        return ", and correct device_count"
    size = len(table) - len(rows)
    rest = {number for row, number in enumerate(table.rank_numbers) if row not in rows}
    ranks = (
        "; the other ranks are then right"
        if rest == set(range(size))
        else f", and number the ranks 0 to {size - 1} without a gap"
    )
    declared = table.declared.get("server_count")
    return f"{ranks}; server_count stays" if declared == str(len(table.servers)) else ranks


def _of_another(subject: Subject, one: Surplus) -> str:
    """Return what else is possible if the entry may be that of a server that is missing, as the end of a hint."""
    declared = subject.table.declared.get("server_count")
    if one.twin is None and one.source is not None:
        return ""
    if declared == str(len(subject.table.servers) + 1):
        return "; server_count has one server more than the list: if the entry is of this server, add the server with all its devices instead"
    return "; only if it is a device of a server that is missing, add that server with all its devices, its ranks and server_count"
