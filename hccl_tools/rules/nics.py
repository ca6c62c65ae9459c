"""HCCL's check of which devices have addresses, on servers with eight devices.

Source: hcomm topoinfo_parse.cc:208-269, hccl_communicator_attrs.cc (SetNiclistInfo).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.address_columns import (
    all_plain,
    have_address,
    hosts_set,
    refused_values,
    server_count,
    servers_unread,
)
from hccl_tools.rules.address_families import rank_0_uses_host
from hccl_tools.rules.joined_groups import joined_groups
from hccl_tools.rules.registry import LEGACY, Finding, Subject, rule, shared
from hccl_tools.rules.super_pod_list import pod_count
from hccl_tools.rules.topology import blanks, devices_place, rows_by_server, trimmed
from hccl_tools.table.addresses import is_unset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: HCCL_AISERVER_DEVICE_NUM: HCCL checks servers with eight devices.
FULL_SERVER = 8


@rule(
    "HCC410",
    "uneven-addresses",
    "refused",
    needs=("device_ip", "host_ip", "device_id", "rank_id"),
    stage="topology",
    source="topoinfo_parse.cc:208-269",
)
def uneven_addresses(subject: Subject) -> Iterator[Finding]:
    """On servers with eight devices, the set of devices that have an address is not valid.

    With eight devices per server, at least one must have an address. The devices with an address must be the
    same on every server, and their number must divide the number of all devices. Blanks at the ends of a
    server_id have the same effect as missing addresses.

    Base: 2x8 300i
    Example: /server_list/0/device/0/device_ip = ""
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    Hint: give every device of every server its device_ip
    """
    rows = rows_by_server(subject)
    servers = server_count(subject)
    plain_ids = all(name == trimmed(name) for name in rows)
    if (
        servers == 1
        or pod_count(subject) == 1
        or (all_plain(subject) and plain_ids and not servers_unread(subject))
    ):
        return
    numbered = len(subject.table) == servers * FULL_SERVER
    listed = _with_address(subject, own=False)
    reached = _with_address(subject, own=True)
    different = {devices for devices in listed.values() if devices}
    for server_id, own in rows.items():
        if len(own) != FULL_SERVER or not numbered or _on_host(subject, own):
            continue
        nics = reached.get(server_id, ())
        even = nics and len(subject.table) % len(nics) == 0
        if not even or (len(nics) != FULL_SERVER and different - {nics}):
            if fault := blanks(subject):
                yield fault
                return
            if _is_refused_before(subject, own) or not server_id:
                continue  # HCC401 or HCC402 reports each of its devices, and HCC502 an empty server_id.
            if joined_groups(subject) and _are_unread(subject, nics, own):
                continue  # HCC511 or HCC513 reports the groups of several tables.
            yield _uneven(subject, server_id, nics, own)


@shared
def reported_blanks(subject: Subject) -> frozenset[str]:
    """Return the server_id with blanks at its ends that HCC410 reports: the first one."""
    read = {"device_ip", "host_ip", "device_id", "rank_id"}
    is_plain = all(server.server_id == server.server_id.strip() for server in subject.table.servers)
    if is_plain or subject.table.format not in LEGACY or not subject.damaged.isdisjoint(read):
        return frozenset()
    if not any(
        one.path[-1:] == ("server_id",) for one in uneven_addresses(subject) if isinstance(one, Finding)
    ):
        return frozenset()
    return frozenset(list(filter(lambda name: name != trimmed(name), rows_by_server(subject)))[:1])


def _is_refused_before(subject: Subject, rows: Sequence[int]) -> bool:
    """Whether HCC401, HCC402 or HCC403 reports device_ips of a server, so that its devices with an address follow."""
    ips, owner, refused = subject.table.device_ips, subject.table.server_of_row, refused_values(subject)
    is_refused = subject.product.needs_device_ip == "always" and subject.table.format != "group_list"
    if all(isinstance(ips[row], str) and is_unset(ips[row]) for row in rows):
        return True
    return any(
        ips[row] in refused[owner[row]] or (is_refused and not isinstance(ips[row], str)) for row in rows
    )


@shared
def _rows_unread(subject: Subject) -> frozenset[int]:
    """Return the rows of instances whose addresses HCCL does not read."""
    return frozenset(row for index in servers_unread(subject) for row in subject.table.servers[index].rows)


def _are_unread(subject: Subject, nics: tuple[int, ...], rows: Sequence[int]) -> bool:
    """Return whether all addresses of a server are in an instance that HCCL does not read."""
    ips = subject.table.device_ips
    return not nics and _rows_unread(subject).issuperset(rows) and all(ips[row] for row in rows)


def _uneven(subject: Subject, server_id: str, nics: tuple[int, ...], rows: Sequence[int]) -> Finding:
    """Return the finding on the addresses of a server, which are missing or in an instance that HCCL does not read."""
    place = devices_place(subject, server_id)
    if _are_unread(subject, nics, rows):
        return Finding(
            f"HCCL does not read the addresses of server {quoted(server_id)}: its instance is the only one of its group",
            place,
            'list the instances of all servers in the instance_list of one group, and write "group_count": "1" with its counts',
        )
    return Finding(_message(server_id, nics), place, "give every device of every server its device_ip")


def _with_address(subject: Subject, *, own: bool) -> dict[str, tuple[int, ...]]:
    """Return the devices of each server that have an address, ascending.

    With ``own``, collect them as HCCL does for a rank's own server: by server_id without blanks, and with
    host_ip as an address of each device.
    """
    have_one, hosts, numbers = have_address(subject), hosts_set(subject), subject.table.device_numbers
    owner = subject.table.server_of_row
    found: dict[str, list[int]] = {}
    for server_id, rows in rows_by_server(subject).items():
        devices = found.setdefault(trimmed(server_id) if own else server_id, [])
        for row in rows:
            number = numbers[row]
            if number is not None and (have_one[row] or (own and hosts[owner[row]])):
                devices.append(number)
    return {server_id: tuple(sorted(devices)) for server_id, devices in found.items()}


def _on_host(subject: Subject, rows: Sequence[int]) -> bool:
    """Whether all ranks of a server use the host network, for which HCCL does not check addresses."""
    if subject.table.format == "group_list":
        return False
    positions = subject.table.columns.get("net_position")
    return rank_0_uses_host(subject) or (
        positions is not None and all(positions[row] == "host" for row in rows)
    )


def _message(server_id: str, nics: tuple[int, ...]) -> str:
    if not nics:
        return f'no device of server "{server_id}" has an address'
    return f'only devices {",".join(map(str, nics))} of server "{server_id}" have addresses, unlike on other servers'
