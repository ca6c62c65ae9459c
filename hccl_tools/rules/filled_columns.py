"""Columns that a spreadsheet has filled: with the value of the row above, or with server_ids that go up row by row.

This module declares no rules.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count, listed_parts
from hccl_tools.rules.commands import how, how_device, how_super_device
from hccl_tools.rules.copies import are_other_hosts, named_server
from hccl_tools.rules.numbers import is_exponent
from hccl_tools.rules.registry import SERVER_LIST, Finding, shared
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.addresses import is_loopback, is_unset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest equal values one below the other that are a filled column, and the most values and places of a finding.
_LEAST_EQUAL, _MOST_NAMED = 3, 16
#: The fewest entries of a server_list with one device each that show a series.
_LEAST_ENTRIES = 4
#: The most devices of a machine.
_LARGEST = 64


def filled_runs(texts: Sequence[Any]) -> Iterator[range]:
    """Yield the rows with equal texts one below the other, three or more; the first may have its own value.

    Numbers in exponent notation are equal because they were rounded.
    """
    begin = 0
    for text, own in groupby(texts):
        end = begin + sum(1 for _ in own)
        if end - begin >= _LEAST_EQUAL and isinstance(text, str) and text and not is_exponent(text):
            yield range(begin, end)
        begin = end


def is_server(subject: Subject, rows: range) -> bool:
    """Return whether rows are all rows of one server."""
    own = subject.table.servers[subject.table.server_of_row[rows[0]]].rows
    return len(own) == len(rows) and own[0] == rows[0]


def filled_down(
    subject: Subject, rows: range, key: str, expected: Mapping[int, int], text: Callable[[int], str]
) -> Finding:
    """Return the finding on rows that have the value of the row above.

    Args:
        rows: These rows, after the first one with this value.
        key: The key of the column.
        expected: The value of each row by the order of the others, as far as it is known.
        text: Returns such a value as it is written.
    """
    table, value = subject.table, quoted(str(subject.table.column(key)[rows[0]]))
    command = how if key == "device_ip" else how_super_device
    copies, owners = rows[1:], table.server_of_row
    if len(rows) == len(owners):
        which = f"all {len(rows)} {key}s are {value}"
    else:
        servers = [*dict.fromkeys(owners[row] for row in copies)]
        numbers = [number for row in copies if (number := table.device_numbers[row]) is not None]
        places = listed_parts([named_server(subject, index) for index in servers])
        where = f"devices {fold(numbers)} of {places}" if len(servers) == 1 else places
        above = f"device {table.device_ids[rows[0]]}"
        if servers != [owners[rows[0]]]:
            above += f" of {named_server(subject, owners[rows[0]])}"
        which = f"the {key}s of {where} are all that of {above} in the row above, {value}"
    known = [quoted(text(expected[row])) for row in copies if row in expected]
    likely = (
        f"; by the order of the others they are {and_more(known, _MOST_NAMED)}"
        if len(known) == len(copies)
        else ""
    )
    related = [Related(subject.device_path(rows[0], key), "the row above")]
    related += [Related(subject.device_path(row, key), "and here") for row in copies[1:_MOST_NAMED]]
    return Finding(
        f"{which}: the column was probably filled down, as a spreadsheet does",
        subject.device_path(copies[0], key),
        f"write that of each device: {command(subject, copies[0])}, and so on for each device on its own host{likely}",
        tuple(related),
    )


@shared
def names_filled_down(subject: Subject) -> list[range]:
    """Return the servers with the server_id of the one before, three or more, that have the same devices and other addresses."""
    table = subject.table
    names = [server.server_id for server in table.servers]
    if len(set(names)) == len(names) or not subject.damaged.isdisjoint({"device_id", "device_ip"}):
        return []
    return [run for run in filled_runs(names) if are_other_hosts(subject, run)]


def names_filled(subject: Subject, run: range) -> Finding:
    """Return the finding on servers with the server_id of the one before."""
    table = subject.table
    row = table.servers[run[0]].rows[0]
    text = table.servers[run[0]].server_id
    name = quoted(text)
    message = f"servers {fold(index + 1 for index in run)} all have the server_id {name}"
    if is_loopback(text) or is_unset(text):
        message += ", which is not the address of a single host: each host probably wrote its own table, and they were joined"
        hint = f"write the own address of each host in its entry (`hostname -I` on it prints its addresses), in place of {name}"
    else:
        message += ": the column was probably filled down, as a spreadsheet does"
        hint = (
            f"{how(subject, row)}: keep {name} in the server that lists this address, and write in each of the others the server_id "
            "of its own host"
        )
    return Finding(
        message,
        subject.server_path(run[1], "server_id"),
        hint,
        tuple(Related(subject.server_path(index, "server_id"), "and here") for index in run[2:_MOST_NAMED]),
    )


@shared
def filled_servers(subject: Subject) -> list[range]:
    """Return the entries of one device each whose server_ids a spreadsheet has counted on; empty if they are others.

    The result has for each host the entries whose device_ids go up from 0.
    """
    table = subject.table
    if table.format not in SERVER_LIST or not subject.damaged.isdisjoint({"server_id", "device_id"}):
        return []
    if len(table) != len(table.servers) or len(table) < _LEAST_ENTRIES:
        return []
    devices, names = table.device_numbers, [number_at_end(server.server_id) for server in table.servers]
    starts = [row for row, device in enumerate(devices) if device == 0]
    if starts[:1] != [0] or None in names:
        return []
    blocks = [range(begin, end) for begin, end in zip(starts, [*starts[1:], len(devices)], strict=True)]
    size = len(blocks[0])
    if size < _LEAST_ENTRIES or any(
        len(one) != size or [devices[row] for row in one] != [*range(size)] or not _go_up(names, one)
        for one in blocks
    ):
        return []
    return blocks


def _go_up(names: Sequence[tuple[str, int] | None], rows: range) -> bool:
    own = [name for row in rows if (name := names[row]) is not None]
    return own == [(own[0][0], number) for number in range(own[0][1], own[0][1] + len(own))]


@shared
def filled_among_others(subject: Subject) -> list[range]:
    """Return the runs of entries with one device each whose server_ids were counted on, beside whole servers with all their devices."""
    table = subject.table
    if table.format not in SERVER_LIST or not subject.damaged.isdisjoint({"server_id", "device_id"}):
        return []
    if table.devices_of_each is not None or len(table.servers) <= _LEAST_ENTRIES:
        return []
    whole = {
        tuple(table.device_numbers[row] for row in one.rows) for one in table.servers if len(one.rows) > 1
    }
    usual = next(iter(whole)) if len(whole) == 1 else ()
    size = len(usual)
    if not _LEAST_ENTRIES <= size <= _LARGEST or usual != tuple(range(size)):
        return []
    single = [one.rows[0] if len(one.rows) == 1 else None for one in table.servers]
    ids = [None if row is None else table.device_numbers[row] for row in single]
    starts = [index for index, own in enumerate(ids) if own == 0]
    runs = [range(start, start + size) for start in starts if tuple(ids[start : start + size]) == usual]
    names = {index: number_at_end(table.servers[index].server_id) for run in runs for index in run}
    is_all = sum(map(len, runs)) == len(single) - single.count(None)
    is_counted = all(
        (first := names[run[0]]) is not None
        and [names[index] for index in run] == [(first[0], first[1] + step) for step in range(size)]
        for run in runs
    )
    return runs if runs and is_all and is_counted else []


def servers_among_others(subject: Subject, runs: list[range], otherwise: str) -> Finding:
    """Return the finding on entries whose server_ids a spreadsheet has counted on beside whole servers."""
    table, run = subject.table, runs[0]
    ids, number = fold(range(len(run))), len(table.servers) - sum(len(one) - 1 for one in runs)
    first, last = (quoted(table.servers[index].server_id) for index in (run[0], run[-1]))
    more = (
        "" if len(runs) == 1 else f", and so in {count(len(runs) - 1, 'other run', 'other runs')} of entries"
    )
    address = table.device_ips[table.servers[run[1]].rows[0]]
    shown = quoted(address) if isinstance(address, str) and address else "its address"
    counted = f', write "server_count": "{number}"' if "server_count" in table.declared else ""
    pods = ", and remove the others from super_pod_list" if table.super_pods else ""
    return Finding(
        f"entries {run[0] + 1}-{run[-1] + 1} of server_list have one device each, together devices {ids} as each other server has them, and "
        f"their server_ids go up from {first} to {last}{more}: the server_ids were probably counted on row by row, as a spreadsheet does",
        subject.server_path(run[1], "server_id"),
        f"{how_device(subject, run[0], 1)}: if it shows {shown}, devices {ids} are of this host: list them in one entry with the server_id "
        f"{first}{counted}{pods}; if each of these hosts has one device in the job, {otherwise}",
    )


def servers_filled(subject: Subject, blocks: list[range], otherwise: str) -> tuple[str, str]:
    """Return message and hint on entries whose server_ids a spreadsheet has counted on.

    Args:
        blocks: As ``filled_servers`` returns them.
        otherwise: What to do if each entry is of a host of its own.
    """
    table, block = subject.table, blocks[0]
    ids, number = fold(range(len(block))), len(blocks)
    first, last = (quoted(table.servers[index].server_id) for index in (block[0], block[-1]))
    more = f", and so in {count(number - 1, 'other block', 'other blocks')} of entries" if number > 1 else ""
    address = table.device_ips[block[1]]
    shown = quoted(address) if isinstance(address, str) and address else "its address"
    counted = f', and write "server_count": "{number}"' if "server_count" in table.declared else ""
    hosts = "" if number == 1 else ", those of each block in an entry with the server_id of their own host"
    message = (
        f"each entry of server_list has one device, their device_ids are {ids}, and the server_ids go up with them from {first} to {last}{more}: "
        "the server_ids were probably counted on row by row, as a spreadsheet does"
    )
    hint = (
        f"{how_device(subject, 0, 1)}: if it shows {shown}, devices {ids} are of this host: list them in one entry "
        f"with the server_id {first}{hosts}{counted}; if each of these hosts has one device in the job, {otherwise}"
    )
    return message, hint
