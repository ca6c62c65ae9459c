"""This host's server and devices, for the rules of ``validate --local``. Declares no rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.discover.recognition import Recognised, listed_addresses, recognise, same
from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: What to do about a table that does not match this host.
GENERATE = "make a new table on this host: `hccl-tools gen`"


@shared
def here(subject: Subject) -> Recognised:
    """Return which servers of the table this host is."""
    return recognise(subject.table, subject.host)


def rows_here(subject: Subject) -> list[tuple[int, int]]:
    """Return row and device id of this host's devices in the table; empty unless the host is one server."""
    numbers = subject.table.device_numbers
    own = [subject.table.servers[index] for index in here(subject).servers]
    # The pods of a group_list may share a machine.
    rows = [row for server in own for row in server.rows] if len({one.server_id for one in own}) == 1 else []
    known = [(row, number) for row in rows if (number := numbers[row]) is not None]
    return _of_this_host(subject, known) if subject.table.format == "2.0" else known


def _of_this_host(subject: Subject, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out the other hosts of a chassis, which is one server in a 2.0 table: their ids repeat."""
    times = Counter(number for _, number in rows)
    devices = subject.host.devices
    return [
        (row, number)
        for row, number in rows
        if times[number] == 1
        or number not in devices
        or not {same(text) for _, text in listed_addresses(subject.table, row)}.isdisjoint(
            map(same, devices[number].ips)
        )
    ]
