"""Addresses whose last zeros were lost, as a spreadsheet drops them (HCC631). This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import count
from hccl_tools.rules.address_order import address_text
from hccl_tools.rules.commands import how
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Subject

#: The fewest devices of a server whose addresses run on without the one that does not.
_LEAST_DEVICES = 4
#: The most places that a finding names.
_MOST_PLACES = 16


def lost_zeros(subject: Subject, numbers: Sequence[int]) -> dict[int, str]:
    """Return the rows whose address lacks the last zeros of the one between its neighbours, with that one."""
    if [*numbers] == sorted(numbers):
        return {}
    found, ips = dict[int, str](), subject.table.device_ips
    for server in subject.table.servers:
        own = [numbers[row] for row in server.rows]
        if len(own) < _LEAST_DEVICES:
            continue
        for place in range(1, len(own)):
            right = own[place - 1] + 1
            if own[place] >= own[place - 1] or (right & 255) % 10:
                continue
            beside = own[place + 1 : place + 2] or [own[place - 2] + 3]
            text, row = address_text(subject, right), server.rows[place]
            if beside == [right + 1] and "." in text and text.rstrip("0") == ips[row].rstrip("0") != text:
                found[row] = text
    return found


def of_lost_zeros(subject: Subject, rows: dict[int, str]) -> Finding:
    """Return the finding on all addresses that have lost their last zeros."""
    table = subject.table
    (row, right), *rest = rows.items()
    more = f", and so in {count(len(rest), 'other place')}" if rest else ""
    return Finding(
        f"device_ip {quoted(table.device_ips[row])} of device {table.device_ids[row]} of {named_server(subject, table.server_of_row[row])} "
        f"is after {quoted(table.device_ips[row - 1])}{more}: the last 0 of {quoted(right)} was probably dropped, as a spreadsheet does",
        subject.device_path(row, "device_ip"),
        f"{how(subject, row)}: if it is {quoted(right)}, write it, and the lost 0 in all other places, too",
        tuple(
            Related(subject.device_path(one, "device_ip"), "and here") for one, _ in rest[: _MOST_PLACES - 1]
        ),
    )
