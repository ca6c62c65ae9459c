"""Rules that compare addresses: their families, host addresses, and the position of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules import right_texts
from hccl_tools.rules.address_columns import (
    addresses_read,
    hosts_set,
    packed_addresses,
    plain_addresses,
    server_count,
)
from hccl_tools.rules.commands import how, of_each
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule, shared
from hccl_tools.table.addresses import family, is_unset

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(
    "HCC406",
    "mixed-device-ip-families",
    "refused",
    code="EI0001",
    needs=("device_ip",),
    stage="check",
    source="config.cc:382-468",
)
def mixed_device_ip_families(subject: Subject) -> Iterator[Finding]:
    """A job of several servers mixes IPv4 and IPv6 device addresses.

    Base: 2x8
    Example: /server_list/1/device/0/device_ip = "fd00::1"
    Instead: /server_list/1/device/0/device_ip = "192.168.1.100"
    Hint: write the IPv4 address of the device: `hccn_tool -i 0 -ip -g` on 10.0.0.2 shows the address of device 0
    """
    plain = plain_addresses(subject)
    if server_count(subject) == 1 or (plain is not None and len(plain.families) == 1):
        return
    packed, read = packed_addresses(subject), addresses_read(subject)
    sizes: dict[int, list[int]] = {}
    for row, addresses in enumerate(read):
        for address in addresses:
            found = packed[address]
            if found is not None and not (len(addresses) == 1 and is_unset(address)):
                sizes.setdefault(len(found), []).append(row)
    if len(sizes) < 2:
        return
    rare, usual = (
        sorted(sizes.values(), key=len) if len({*map(len, sizes.values())}) > 1 else [*sizes.values()][::-1]
    )
    names = {4: "IPv4", 16: "IPv6"}
    own, others = (names[next(size for size, rows in sizes.items() if rows is one)] for one in (rare, usual))
    message = f"device_ips are {own}, and those of the other devices {others}"
    related = (Related(subject.device_path(usual[0], "device_ip"), f"{others} here"),)
    are_equal = len(rare) == len(usual)  # As many of both kinds: nothing says which is wrong.
    either = f"write addresses of one kind, all {others} or all {own}: {how(subject, rare[0], others)}, or {how(subject, usual[0], own)}, and so on for each device"
    for row in dict.fromkeys(rare):
        yield Finding(
            f"{quoted(subject.table.device_ips[row])} is {own}, and the other device_ips are {others}",
            subject.device_path(row, "device_ip"),
            either if are_equal else f"write the {others} address of the device: {how(subject, row, others)}",
            related,
            alike=(
                message,
                either
                if are_equal
                else f"write the {others} address of each: {of_each(subject, rare[0], others)}",
            ),
        )


@rule(
    "HCC407",
    "invalid-host-ip",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    needs=("host_ip",),
    source="topoinfo_ranktableConcise.cc:314-320",
)
def invalid_host_ip(subject: Subject) -> Iterator[Finding]:
    """A host_ip is not an IP address.

    Example: /server_list/0/host_ip = "node-1"
    Instead: /server_list/0/host_ip = "10.0.0.1"
    Hint: write the server's address, or omit host_ip
    """
    for index, server in enumerate(subject.table.servers):
        if server.host_ip is not None and family(server.host_ip) is None:
            finding = Finding(
                f'host_ip "{server.host_ip}" is not an IP address', subject.server_path(index, "host_ip"),
                "write the server's address, or omit host_ip",
            )  # fmt: skip
            yield right_texts.address(finding, server.host_ip)


@rule(
    "HCC408",
    "mixed-host-ip-families",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    needs=("host_ip",),
    stage="check",
    source="config.cc:382-420",
)
def mixed_host_ip_families(subject: Subject) -> Iterator[Finding]:
    """The table mixes IPv4 and IPv6 host addresses.

    Base: 2x8
    Example: /server_list/0/host_ip = "10.0.0.1"; /server_list/1/host_ip = "fd00::2"
    Instead: /server_list/0/host_ip = "10.0.0.1"; /server_list/1/host_ip = "10.0.0.2"
    Hint: use IPv4 or IPv6 for all hosts of the job
    """
    hosts = [
        (index, family(server.host_ip))
        for index, server in enumerate(subject.table.servers)
        if server.host_ip is not None and not is_unset(server.host_ip) and family(server.host_ip) is not None
    ]
    for index, kind in hosts:
        if kind != hosts[0][1]:
            related = (
                Related(subject.server_path(hosts[0][0], "host_ip"), "the first address of the other family"),
            )
            yield Finding(
                f'host_ip "{subject.table.servers[index].host_ip}" is not of the same family as the first address',
                subject.server_path(index, "host_ip"), "use IPv4 or IPv6 for all hosts of the job", related,
            )  # fmt: skip


@rule(
    "HCC409",
    "host-network-without-host-ip",
    "refused",
    formats=SERVER_LIST,
    needs=("host_ip", "device_ip", "rank_id"),
    stage="check",
    source="topoinfo_ranktableConcise.cc:198",
)
def host_network_without_host_ip(subject: Subject) -> Iterator[Finding]:
    """The table uses the host network, but a server has no host_ip.

    A table uses the host network if a device has net_position "host", or if rank 0 has a host_ip and no
    device_ip.

    Base: 2x8
    Example: /server_list/0/device/0/net_position = "host"
    Instead: remove /server_list/0/device/0/net_position
    Hint: give every server a host_ip, or every device a device_ip
    """
    hosts = hosts_set(subject)
    if all(hosts):
        return
    if "host" not in subject.table.column("net_position") and not rank_0_uses_host(subject):
        return
    for index, is_set in enumerate(hosts):
        if not is_set:
            message = f'server "{subject.table.servers[index].server_id}" has no host_ip, but the table uses the host network'
            yield Finding(
                message,
                subject.server_path(index),
                "give every server a host_ip, or every device a device_ip",
            )


@shared
def rank_0_uses_host(subject: Subject) -> bool:
    """Whether rank 0 has a host_ip and no device_ip, which makes the whole job use the host network."""
    hosts = hosts_set(subject)
    if subject.is_version_1_1 or not any(hosts) or 0 not in subject.table.rank_numbers:
        return False
    row = subject.table.rank_numbers.index(0)
    unset = all(is_unset(address) for address in addresses_read(subject)[row])
    return hosts[subject.table.server_of_row[row]] and unset
