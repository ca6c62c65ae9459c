"""The addresses of a table as HCCL reads them, shared by several rules. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules import job_variables
from hccl_tools.rules.registry import shared
from hccl_tools.table.addresses import AF_INET, FAMILIES, UNSET, is_unset, joined_ipv4, packed

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: The addresses of a device without addresses: one shared list, never changed.
_NONE: list[str] = []


def intra_roce(subject: Subject) -> bool:
    """Whether HCCL_INTRA_ROCE_ENABLE=1 requires addresses even on a single server."""
    return bool(subject.env) and job_variables.uses_roce(subject.env)


def server_count(subject: Subject) -> int:
    """Return the number of servers as HCCL counts them: by server_id in a group_list."""
    servers = subject.table.servers
    if subject.table.format == "group_list":
        return len({server.server_id for server in servers})
    return len(servers)


def hosts_set(subject: Subject) -> list[bool]:
    """For each server, whether it has a host_ip other than 0.0.0.0."""
    return [server.host_ip is not None and not is_unset(server.host_ip) for server in subject.table.servers]


@shared
def addresses_read(subject: Subject) -> list[list[str]]:
    """For each row, the addresses that HCCL reads from device_ip, split at commas.

    HCCL ignores the addresses of a group_list instance that is the only instance of its group.
    """
    table = subject.table
    if "device_ip" not in table.columns:
        return [_NONE] * len(table.device_ips)
    found = [split_addresses(value) for value in table.device_ips]
    if table.format == "group_list":
        found = [
            [text] if addresses else _NONE for text, addresses in zip(table.device_ips, found, strict=True)
        ]
        for index in servers_unread(subject):
            for row in table.servers[index].rows:
                found[row] = _NONE
    return found


class PackedAddresses(dict[str, bytes | None]):
    """A cache of parsed texts: the address in network order, or ``None`` for a text that is not an address."""

    def __missing__(self, text: str) -> bytes | None:
        value = self[text] = packed(text)
        return value


@shared
def packed_addresses(_subject: Subject) -> PackedAddresses:
    """Return the mapping from texts to addresses for one table."""
    return PackedAddresses()


@shared
def servers_unread(subject: Subject) -> frozenset[int]:
    """Return the group_list instances whose addresses HCCL ignores: each is the only instance of its group.

    In the old "lab" form (deploy_mode) HCCL reads all addresses.
    """
    groups = () if "deploy_mode" in subject.table.fields else subject.table.groups or ()
    return frozenset(group.servers[0] for group in groups if len(group.servers) == 1)


def split_addresses(value: Any) -> list[str]:
    """Return the addresses in a value as HCCL reads them: a text split at commas, or an empty list."""
    if type(value) is not str or not value:
        return _NONE
    if "," not in value:
        return [value]
    parts = value.split(",")
    return parts if parts[-1] else parts[:-1]


class PlainAddresses(NamedTuple):
    """The addresses of devices that have exactly one valid address each, which no other device has.

    Attributes:
        lines: All of them, each after a line break.
        ipv4: All of them in network order, without anything between; ``None`` if not all are IPv4.
        families: Their address families.
    """

    lines: str
    ipv4: bytes | None
    families: frozenset[int]


@shared
def plain_addresses(subject: Subject) -> PlainAddresses | None:
    """Return the addresses of a table if each device has exactly one valid address that no other device has."""
    ips = subject.table.columns.get("device_ip", [None])
    try:
        lines = "\n".join(["", *ips])
    except TypeError:  # not all values are strings
        return None
    if "%" in lines or (UNSET in lines and UNSET in ips) or len(set(ips)) != len(ips):
        return None
    raw = joined_ipv4(ips)
    if raw is not None:
        return PlainAddresses(lines, raw, frozenset({AF_INET}))
    known, families = packed_addresses(subject), set[int]()
    for one in ips:
        if (value := known[one]) is None:
            return None
        families.add(FAMILIES[len(value)])
    return PlainAddresses(lines, None, frozenset(families))


def all_plain(subject: Subject) -> bool:
    """Whether every device has exactly one valid address that no other device has."""
    return plain_addresses(subject) is not None


@shared
def rows_unset(subject: Subject) -> frozenset[int]:
    """Return the rows of which an address is 0.0.0.0."""
    if UNSET not in "\n".join(text for text in subject.table.device_ips if type(text) is str):
        return frozenset()  # Most tables: no address is looked at alone.
    return frozenset(row for row, texts in enumerate(addresses_read(subject)) if any(map(is_unset, texts)))


@shared
def have_address(subject: Subject) -> list[bool]:
    """For each row, whether its first address is other than 0.0.0.0."""
    unset = rows_unset(subject)
    return [
        bool(texts) and not (row in unset and is_unset(texts[0]))
        for row, texts in enumerate(addresses_read(subject))
    ]


@shared
def refused_values(subject: Subject) -> list[tuple[str | None, ...]]:
    """For each server, the values of device_ip that HCCL takes for a missing one, and refuses."""
    servers, need = subject.table.servers, subject.product.needs_device_ip
    absent = (None,)
    if subject.table.format == "group_list":
        unread = servers_unread(subject)
        return [() if index in unread else absent for index in range(len(servers))]
    if (len(servers) == 1 or need == "never") and not intra_roce(subject):
        return [()] * len(servers)
    if need == "always":
        return [(None, "")] * len(servers)
    return [() if has_host else absent for has_host in hosts_set(subject)]
