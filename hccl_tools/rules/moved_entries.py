"""Entries that stand in the list of another server, and entries whose ids are exchanged, shared by several rules.

This module declares no rules. Such an entry is named by one rule, and the rules on devices take it for what it is
meant to be: its ids do not repeat, and the number of devices is right.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from hccl_tools.rules.registry import SERVER_LIST, Finding, shared
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

_READ = frozenset({"device_id", "rank_id", "server_id"})


@shared
def owners(subject: Subject) -> dict[int, int]:
    """Return the rows whose ranks are those of another server, with the index of that server.

    The result is empty unless the ranks 0 to N-1 are there, each server has a block of them without these rows, and
    with these rows in their own lists all servers have the same number of devices, each once.
    """
    table = subject.table
    count = len(table.servers)
    if table.format not in SERVER_LIST or not subject.damaged.isdisjoint(_READ) or count < 2:
        return {}
    numbers, size = table.rank_numbers, len(table) // count
    if len(table) != size * count or not size:
        return {}
    if table.is_in_rank_order and not _lists_a_device_again(subject, size):
        return {}
    if set(numbers) != set(range(len(table))) or len({one.server_id for one in table.servers}) < count:
        return {}
    owner_of_block: dict[int, int] = {}
    for index, server in enumerate(table.servers):
        blocks = Counter((numbers[row] or 0) // size for row in server.rows)
        block, most = blocks.most_common(1)[0] if blocks else (-1, 0)
        if 2 * most <= len(server.rows) or block in owner_of_block:
            return {}
        owner_of_block[block] = index
    return _consistent(subject, owner_of_block, size)


def _lists_a_device_again(subject: Subject, size: int) -> bool:
    """Return whether a server with another number of devices than the others lists one twice: entries at its ends moved."""
    table = subject.table
    if set(map(len, map(attrgetter("rows"), table.servers))) == {size}:
        return False
    ids = ([table.device_numbers[row] for row in server.rows] for server in table.servers)
    return any(len(set(own)) < len(own) for own in ids)


def _consistent(subject: Subject, owner_of_block: dict[int, int], size: int) -> dict[int, int]:
    table = subject.table
    moved: dict[int, int] = {}
    devices: dict[int, set[int | None]] = {index: set() for index in owner_of_block.values()}
    for index, server in enumerate(table.servers):
        for row in server.rows:
            owner = owner_of_block[(table.rank_numbers[row] or 0) // size]
            devices[owner].add(table.device_numbers[row])
            if owner != index:
                moved[row] = owner
    are_whole = all(None not in ids and len(ids) == size for ids in devices.values())
    if table.is_in_rank_order:  # A file that was numbered again after the move says nothing about the owner.
        in_order = [number or 0 for number in table.device_numbers]
        blocks = [in_order[begin : begin + size] for begin in range(0, len(in_order), size)]
        are_whole = are_whole and all(own == sorted(own) for own in blocks)
    return moved if are_whole else {}


@shared
def is_listed_twice(subject: Subject) -> bool:
    """Return whether a server lists the device of such an entry twice."""
    table = subject.table
    ids = table.device_numbers
    servers = {table.server_of_row[row] for row in owners(subject)}
    return any(
        len({ids[row] for row in table.servers[one].rows}) < len(table.servers[one].rows) for one in servers
    )


@shared
def exchanged(subject: Subject) -> frozenset[int]:
    """Return the rows whose device_id and rank_id are exchanged.

    With the two values in their places, the ranks are 0 to N-1 and each device of a server occurs once.
    """
    table = subject.table
    if table.format not in (*SERVER_LIST, "2.0") or not subject.damaged.isdisjoint(_READ):
        return frozenset()
    if table.is_in_rank_order:
        return frozenset()
    ranks, ids, every = table.rank_numbers, table.device_numbers, range(len(table))
    lacking = set(every) - set(ranks)
    if not lacking:
        return frozenset()
    rows = set[int]()
    for server in table.servers:
        own = {ids[row] for row in server.rows}
        rows |= {row for row in server.rows if ids[row] in lacking and ranks[row] not in own}
    limit = subject.product.device_limit
    if not rows or not all((ranks[row] or 0) < limit for row in rows):
        return frozenset()
    if {ids[row] if row in rows else ranks[row] for row in every} != set(every):
        return frozenset()
    others = {frozenset(ids[row] for row in one.rows) for one in table.servers if rows.isdisjoint(one.rows)}
    for server in table.servers:
        if not rows.isdisjoint(server.rows) and not _are_a_block(
            [ids[row] if row in rows else ranks[row] for row in server.rows]
        ):
            return frozenset()  # Ids of different servers were exchanged.
        right = frozenset(ranks[row] if row in rows else ids[row] for row in server.rows)
        is_whole = right in others or right == frozenset(range(len(server.rows)))
        if len(right) != len(server.rows) or not (is_whole or rows.isdisjoint(server.rows)):
            return frozenset()
    return frozenset(rows)


def _are_a_block(numbers: list[int | None]) -> bool:
    """Return whether numbers follow one another without a gap, in any order."""
    known = [number for number in numbers if number is not None]
    return len(known) == len(numbers) and max(known) - min(known) == len(set(known)) - 1


#: The ids of a device beside which its address may stand in the wrong place.
_IDS = ("device_id", "rank_id", "super_device_id")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@shared
def with_address_as_id(subject: Subject) -> dict[int, str]:
    """Return the rows whose device_ip is a number and one of whose ids is an address, with the key of that id."""
    columns, ips = subject.table.columns, subject.table.columns.get("device_ip", ())
    rows = [row for row, text in enumerate(ips) if type(text) is str and _NUMBER.fullmatch(text)]
    found = dict[int, str]()
    for key in _IDS if rows else ():
        column = columns.get(key)
        if column is None:
            continue
        for row in rows:
            if type(column[row]) is str and "." in column[row] and packed(column[row]) is not None:
                found.setdefault(row, key)
    return found


def exchange(finding: Finding, key: str) -> Finding:
    """Return a finding on a value that is exchanged with that of another key."""
    said = f"device_ip and {key} are exchanged", "exchange the two values in each of these entries"
    return finding._replace(message=said[0], hint="exchange the two values", alike=said)


@shared
def right_devices(subject: Subject) -> list[int | None]:
    """Return the device ids as numbers, with those of exchanged entries in their places."""
    rows, table = exchanged(subject), subject.table
    if not rows:
        return table.device_numbers
    return [table.rank_numbers[row] if row in rows else own for row, own in enumerate(table.device_numbers)]
