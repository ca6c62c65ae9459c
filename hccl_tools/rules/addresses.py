"""Rules on device and host addresses of 1.x and group_list tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.addresses import family, is_unset
from hccl_tools.rules.network import addresses_read, all_plain, hosts_set, intra_roce, server_count
from hccl_tools.rules.registry import Finding, Related, Subject, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVERS = ("1.0", "1.2")
_LEGACY = (*_SERVERS, "group_list")
_HOW = "`hccn_tool -i N -ip -g` shows a device's address"


def _reads_alone(subject: Subject, index: int) -> bool:
    """Whether an instance of a group_list is alone in its group, so that its addresses are not read."""
    return any(len(group.servers) == 1 and index in group.servers for group in subject.table.groups or ())


def _missing(subject: Subject, value: Any, index: int, hosts: list[bool]) -> bool:
    """Whether HCCL refuses a device of a server for having no (or an empty) device_ip."""
    if subject.table.format == "group_list":
        return value is None and not _reads_alone(subject, index)
    if len(subject.table.servers) == 1 and not intra_roce(subject):
        return False
    need = subject.product.needs_device_ip
    if need == "never" and not intra_roce(subject):
        return False
    return value is None and not hosts[index] or (need == "always" and value in (None, ""))


@rule("HCC401", "device-ip-missing", "refused", code="EI0014", formats=_LEGACY, needs=("device_ip", "host_ip"), source="topoinfo_ranktableConcise.cc:513-544, topoinfo_ranktableStandard.cc:555")
def device_ip_missing(subject: Subject) -> Iterator[Finding]:
    """A device has no device_ip although the job spans several servers.

    Ranks on different servers talk through the devices' own network ports. On a 910A or 300I Duo a valid
    host_ip excuses the server's devices; on an A2 nothing does, and an empty string is refused as well.

    Base: 2x8
    Example: remove /server_list/0/device/0/device_ip
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    """
    if all_plain(subject):
        return
    hosts, ips = hosts_set(subject), subject.table.device_ips
    for index, server in enumerate(subject.table.servers):
        for row in server.rows:
            if _missing(subject, ips[row], index, hosts):
                key = ("device_ip",) if ips[row] == "" else ()
                yield Finding(f"{subject.rank_name(row)} has no device_ip", subject.device_path(row, *key), _HOW)


@rule("HCC402", "device-ip-no-text", "refused", code="EI0017", formats=_LEGACY, needs=("host_ip",), source="topoinfo_ranktableConcise.cc:513-544")
def device_ip_no_text(subject: Subject) -> Iterator[Finding]:
    """A device_ip is no string.

    HCCL calls it missing. It is forgiven on an A3, and where the server has a host_ip; then HCCL drops the
    address without a word.

    Example: /server_list/0/device/0/device_ip = 1921681001
    Instead: /server_list/0/device/0/device_ip = "192.168.100.101"
    """
    if all_plain(subject):
        return
    yield from _no_text(subject, refused=True)


@rule("HCC611", "device-ip-dropped", "advice", formats=_LEGACY, needs=("host_ip",), stage="none", source="topoinfo_ranktableConcise.cc:513-544")
def device_ip_dropped(subject: Subject) -> Iterator[Finding]:
    """A device_ip is no string; HCCL drops it without a word.

    Base: 1.2 2x8
    Example: /server_list/0/device/0/device_ip = 5
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    """
    if all_plain(subject):
        return
    yield from _no_text(subject, refused=False)


def _no_text(subject: Subject, *, refused: bool) -> Iterator[Finding]:
    hosts, ips = hosts_set(subject), subject.table.device_ips
    for index, server in enumerate(subject.table.servers):
        for row in server.rows:
            if ips[row] is not None and not isinstance(ips[row], str):
                if _refuses_no_text(subject, index, hosts) != refused:
                    continue
                message = "device_ip is no string" + ("" if refused else ", so HCCL takes it for absent")
                yield Finding(message, subject.device_path(row, "device_ip"), 'write it as a string: "192.168.100.101"')


def _refuses_no_text(subject: Subject, index: int, hosts: list[bool]) -> bool:
    if subject.table.format == "group_list":
        return not _reads_alone(subject, index)
    if len(subject.table.servers) == 1 and not intra_roce(subject):
        return not hosts[index]
    need = subject.product.needs_device_ip
    if need == "never" and not intra_roce(subject):
        return False
    return need == "always" or not hosts[index]


@rule("HCC403", "invalid-device-ip", "refused", code="EI0014", formats=_LEGACY, needs=("device_ip",), source="hccl_ip_address.cc:43")
def invalid_device_ip(subject: Subject) -> Iterator[Finding]:
    """A device_ip is no address.

    Several ports of a device are written "ip1,ip2" without blanks. 0.0.0.0, host names, "-.-.-.-" and
    masks ("/24") are refused.

    Example: /server_list/0/device/0/device_ip = "192.168.100.300"
    Instead: /server_list/0/device/0/device_ip = "192.168.100.101"
    """
    if all_plain(subject):
        return
    for row, addresses in enumerate(addresses_read(subject)):
        for address in addresses:
            if family(address) is None or is_unset(address):
                what = "is no IP address" if address else "has an empty part"
                yield Finding(f'"{address or subject.table.device_ips[row]}" {what}', subject.device_path(row, "device_ip"), _HOW)


@rule("HCC404", "duplicate-device-ip", "refused", code="EI0014", formats=_LEGACY, needs=("device_ip",), source="topoinfo_ranktableConcise.cc:505-570")
def duplicate_device_ip(subject: Subject) -> Iterator[Finding]:
    """Two devices have the same device_ip.

    HCCL compares the texts over the whole table, in tables of one server as well.

    Example: /server_list/0/device/1/device_ip = "192.168.0.100"
    Instead: /server_list/0/device/1/device_ip = "192.168.0.101"
    """
    if all_plain(subject):
        return
    first: dict[str, int] = {}
    for row, addresses in enumerate(addresses_read(subject)):
        for address in addresses:
            if address in first:
                yield Finding(
                    f'device_ip "{address}" is used twice',
                    subject.device_path(row, "device_ip"),
                    f"give every device its own address; {_HOW}",
                    (Related(subject.device_path(first[address], "device_ip"), "first used here"),),
                )
            first.setdefault(address, row)


@rule("HCC405", "address-count", "refused", formats=_SERVERS, needs=("device_ip",), source="topoinfo_ranktableConcise.cc:349-363")
def address_count(subject: Subject) -> Iterator[Finding]:
    """Devices have different numbers of addresses.

    Example: /server_list/0/device/1/device_ip = "192.168.0.101,192.168.0.201"
    Instead: /server_list/0/device/1/device_ip = "192.168.0.101"
    """
    if all_plain(subject):
        return
    counts = [max(1, len(addresses)) for addresses in addresses_read(subject)]
    for row, count in enumerate(counts):
        if count != counts[0]:
            yield Finding(
                f"{subject.rank_name(row)} has {count} {'address' if count == 1 else 'addresses'}, the first device {counts[0]}",
                subject.device_path(row, *(("device_ip",) if subject.table.device_ips[row] else ())),
                "list the same number of addresses for every device",
            )


@rule("HCC406", "mixed-device-ip-families", "refused", code="EI0001", formats=_LEGACY, needs=("device_ip",), stage="check", source="config.cc:382-468")
def mixed_device_ip_families(subject: Subject) -> Iterator[Finding]:
    """IPv4 and IPv6 device addresses are mixed in a job of several servers.

    Base: 2x8
    Example: /server_list/1/device/0/device_ip = "fd00::1"
    Instead: /server_list/1/device/0/device_ip = "192.168.1.100"
    """
    if server_count(subject) == 1 or (all_plain(subject) and len(subject.memo["families"]) == 1):
        return
    first: int | None = None
    kind: int | None = None
    for row, addresses in enumerate(addresses_read(subject)):
        for address in addresses:
            found = family(address)
            if found is None or (len(addresses) == 1 and is_unset(address)):
                continue
            if first is None:
                first, kind = row, found
            elif found != kind:
                related = (Related(subject.device_path(first, "device_ip"), "the first address of the other family"),)
                yield Finding(
                    f'"{address}" is of another address family than the first', subject.device_path(row, "device_ip"),
                    "use IPv4 or IPv6 for all devices of the job", related,
                )  # fmt: skip


@rule("HCC407", "invalid-host-ip", "refused", code="EI0014", formats=_SERVERS, needs=("host_ip",), source="topoinfo_ranktableConcise.cc:314-320")
def invalid_host_ip(subject: Subject) -> Iterator[Finding]:
    """A host_ip is no address.

    Example: /server_list/0/host_ip = "node-1"
    Instead: /server_list/0/host_ip = "10.0.0.1"
    """
    for index, server in enumerate(subject.table.servers):
        if server.host_ip is not None and family(server.host_ip) is None:
            yield Finding(
                f'host_ip "{server.host_ip}" is no IP address', subject.server_path(index, "host_ip"),
                "write the server's address, or leave host_ip out",
            )  # fmt: skip


@rule("HCC408", "mixed-host-ip-families", "refused", code="EI0014", formats=_SERVERS, needs=("host_ip",), stage="check", source="config.cc:382-420")
def mixed_host_ip_families(subject: Subject) -> Iterator[Finding]:
    """IPv4 and IPv6 host addresses are mixed.

    Base: 2x8
    Example: /server_list/0/host_ip = "10.0.0.1"; /server_list/1/host_ip = "fd00::2"
    Instead: /server_list/0/host_ip = "10.0.0.1"; /server_list/1/host_ip = "10.0.0.2"
    """
    hosts = [
        (index, family(server.host_ip))
        for index, server in enumerate(subject.table.servers)
        if server.host_ip is not None and not is_unset(server.host_ip) and family(server.host_ip) is not None
    ]
    for index, kind in hosts:
        if kind != hosts[0][1]:
            related = (Related(subject.server_path(hosts[0][0], "host_ip"), "the first address of the other family"),)
            yield Finding(
                f'host_ip "{subject.table.servers[index].host_ip}" is of another address family than the first',
                subject.server_path(index, "host_ip"), "use IPv4 or IPv6 for all hosts of the job", related,
            )  # fmt: skip


@rule("HCC409", "host-network-without-host-ip", "refused", formats=_SERVERS, needs=("host_ip", "device_ip", "rank_id"), stage="check", source="topoinfo_ranktableConcise.cc:198")
def host_network_without_host_ip(subject: Subject) -> Iterator[Finding]:
    """The table puts the network on the hosts, but a server has no host_ip.

    That is so when a device says net_position "host", or when rank 0 has a host_ip and no device_ip.

    Base: 2x8
    Example: /server_list/0/device/0/net_position = "host"
    Instead: remove /server_list/0/device/0/net_position
    """
    hosts = hosts_set(subject)
    if all(hosts):
        return
    if "host" not in subject.table.column("net_position") and not rank_0_uses_host(subject):
        return
    for index, is_set in enumerate(hosts):
        if not is_set:
            message = f'server "{subject.table.servers[index].server_id}" has no host_ip, but the network is on the hosts'
            yield Finding(message, subject.server_path(index), "give every server a host_ip, or every device a device_ip")


def rank_0_uses_host(subject: Subject) -> bool:
    """Whether rank 0 has a host_ip and no device_ip, which moves the whole job's network to the hosts."""
    hosts = hosts_set(subject)
    if not any(hosts) or 0 not in subject.table.rank_numbers:
        return False
    row = subject.table.rank_numbers.index(0)
    unset = all(is_unset(address) for address in addresses_read(subject)[row])
    return hosts[subject.table.server_of_row[row]] and unset
