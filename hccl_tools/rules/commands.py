"""The commands that show an id or address of a device, shared by several rules. This module declares no rules.

A command names the device, and the host on which it is to be run: a table is usually read on another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation import host_list
from hccl_tools.rules import address_texts, right_texts
from hccl_tools.table.addresses import QUERIES, is_loopback, query

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: Devices of one NPU of an A3, each of which is a chip of it.
_CHIPS = 2


def _number(subject: Subject, row: int) -> int | None:
    return None if "device_id" in subject.damaged else subject.table.device_numbers[row]


def host_of(text: str) -> str:
    """Return the host that a server_id stands for: the address in it, without the port or user beside it."""
    name = text.strip()
    if not name or right_texts.is_address(name):
        return name[:64]
    if (both := address_texts.number_after(name, right_texts.is_address)) is not None:
        return both.alone
    found = address_texts.corrected(name, right_texts.is_address)
    return (name if found is None else found.right)[:64]


def shown_host(text: str) -> str:
    """Return a host of a table as the place of a command in a hint (``host_list.named``)."""
    return host_list.named(host_of(text))


def on_host(subject: Subject, row: int) -> str:
    """Return the host of a device as the end of a phrase: `` on 10.0.0.1``; "" if the table does not say it."""
    server = subject.table.servers[subject.table.server_of_row[row]]
    known = "server_id" not in subject.damaged and server.address.strip()
    return f" on {shown_host(server.address)}" if known and not is_loopback(server.address.strip()) else ""


def address_query(subject: Subject) -> str:
    """Return the arguments with which ``hccn_tool -i N`` shows an address of the family of the table."""
    return query(subject.table.columns.get("device_ip", ()))


def how(subject: Subject, row: int, family: str | None = None, *, host: str = "") -> str:
    """Return the command that shows the address of a device.

    Args:
        family: The family of the address that is to be written, if it is not that of the table.
        host: Another host than that of the server of the device.
    """
    known, asked = _number(subject, row), address_query(subject) if family is None else QUERIES[family]
    number = "N" if known is None else known
    on = f" on {shown_host(host)}" if host else on_host(subject, row)
    return f"`hccn_tool -i {number} {asked}`{on} shows the address of device {number}"


def of_each(subject: Subject, row: int, family: str | None = None) -> str:
    """Return the commands for several devices, of which the first is given."""
    return f"{how(subject, row, family)}, and so on for each device on its own host"


def how_super_device(subject: Subject, row: int) -> str:
    """Return the command that shows the super_device_id of a device."""
    return how_super_device_of(subject, row, _number(subject, row))


def how_super_device_of(subject: Subject, row: int, number: int | None) -> str:
    """Return the command that shows the super_device_id of a device of the server of a row."""
    place = "N -c M" if number is None else f"{number // _CHIPS} -c {number % _CHIPS}"
    what = "a device" if number is None else f"device {number}"
    return f"`npu-smi info -t spod-info -i {place}`{on_host(subject, row)} shows the SDID of {what}"


def how_device(subject: Subject, index: int, device: int) -> str:
    """Return the command that shows the address of a device that a server does not list."""
    return f"`hccn_tool -i {device} {address_query(subject)}` on {shown_host(subject.table.servers[index].address)}"
