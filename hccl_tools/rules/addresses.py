"""Rules on device and host addresses of 1.x and group_list tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules import right_texts
from hccl_tools.rules.address_columns import (
    addresses_read,
    all_plain,
    hosts_set,
    intra_roce,
    packed_addresses,
    servers_unread,
)
from hccl_tools.rules.commands import how, of_each
from hccl_tools.rules.copies import copied_rows, named_server, server_copies, what_a_copy_needs
from hccl_tools.rules.key_names import similar_key
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.table.addresses import is_unset

if TYPE_CHECKING:
    from collections.abc import Iterator


def _refused(subject: Subject) -> list[tuple[str | None, ...]]:
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


@rule(
    "HCC401",
    "device-ip-missing",
    "refused",
    code="EI0014",
    needs=("device_ip", "host_ip"),
    source="topoinfo_ranktableConcise.cc:513-544, topoinfo_ranktableStandard.cc:555",
)
def device_ip_missing(subject: Subject) -> Iterator[Finding]:
    """A device has no device_ip in a job of several servers.

    Ranks on different servers communicate through the network ports of their devices. On a 910A or 300I Duo
    a valid host_ip of the server can replace device_ip. On an A2 device_ip is always required and must not be
    empty.

    Base: 2x8
    Example: remove /server_list/0/device/0/device_ip
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    if all_plain(subject):
        return
    ips = subject.table.device_ips
    misspelt = next((key for key in subject.table.columns if similar_key(key) == "device_ip" != key), None)
    for server, refused in zip(subject.table.servers, _refused(subject), strict=True):
        for row in server.rows if refused else ():
            if ips[row] in refused:
                if misspelt is not None and subject.table.columns[misspelt][row] is not None:
                    yield _under_another_key(subject, row, misspelt)
                    continue
                key = ("device_ip",) if ips[row] == "" else ()
                yield Finding(
                    f"{subject.rank_name(row)} has no device_ip",
                    subject.device_path(row, *key),
                    how(subject, row),
                    alike=("these devices have no device_ip", of_each(subject, row)),
                )


def _under_another_key(subject: Subject, row: int, key: str) -> Finding:
    return Finding(
        f'device_ip is missing, and "{key}" looks like it',
        subject.device_path(row, key),
        f'rename "{key}" to "device_ip"',
        at_key=True,
        right_key="device_ip",
    )


@rule(
    "HCC402",
    "device-ip-no-text",
    "refused",
    code="EI0017",
    needs=("host_ip",),
    source="topoinfo_ranktableConcise.cc:513-544",
)
def device_ip_no_text(subject: Subject) -> Iterator[Finding]:
    """A device_ip is not a string.

    HCCL reports device_ip as missing. On an A3, and if the server has a host_ip, HCCL silently ignores
    device_ip instead.

    Example: /server_list/0/device/0/device_ip = 1921681001
    Instead: /server_list/0/device/0/device_ip = "192.168.100.101"
    Hint: write the address as a string: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    return _no_text(subject, refused=True)


@rule(
    "HCC611", "device-ip-dropped", "advice", needs=("host_ip",), source="topoinfo_ranktableConcise.cc:513-544"
)
def device_ip_dropped(subject: Subject) -> Iterator[Finding]:
    """A device_ip is not a string; HCCL silently ignores it.

    Base: 1.2 2x8
    Example: /server_list/0/device/0/device_ip = 5
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    Hint: write the address as a string: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    return _no_text(subject, refused=False)


def _no_text(subject: Subject, *, refused: bool) -> Iterator[Finding]:
    if all_plain(subject):
        return
    hosts, ips = hosts_set(subject), subject.table.device_ips
    for index, server in enumerate(subject.table.servers):
        for row in server.rows:
            if ips[row] is not None and not isinstance(ips[row], str):
                if _refuses_no_text(subject, index, hosts) != refused:
                    continue
                message = "device_ip is not a string" + ("" if refused else ", so HCCL ignores it")
                yield Finding(
                    message,
                    subject.device_path(row, "device_ip"),
                    f"write the address as a string: {how(subject, row)}",
                    alike=(message, f"write each address as a string: {of_each(subject, row)}"),
                )


def _refuses_no_text(subject: Subject, index: int, hosts: list[bool]) -> bool:
    if subject.table.format == "group_list":
        return index not in servers_unread(subject)
    if len(subject.table.servers) == 1 and not intra_roce(subject):
        return not hosts[index]
    need = subject.product.needs_device_ip
    if need == "never" and not intra_roce(subject):
        return False
    return need == "always" or not hosts[index]


@rule(
    "HCC403",
    "invalid-device-ip",
    "refused",
    code="EI0014",
    needs=("device_ip",),
    source="hccl_ip_address.cc:43",
)
def invalid_device_ip(subject: Subject) -> Iterator[Finding]:
    """A device_ip is not an IP address.

    Write the addresses of several ports as "ip1,ip2", without blanks. HCCL refuses 0.0.0.0, host names,
    "-.-.-.-" and masks ("/24").

    Example: /server_list/0/device/0/device_ip = "192.168.100.300"
    Instead: /server_list/0/device/0/device_ip = "192.168.100.101"
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    if all_plain(subject):
        return
    packed = packed_addresses(subject)
    alike: dict[str, tuple[str, str]] = {}
    for row, addresses in enumerate(addresses_read(subject)):
        if not addresses:
            continue
        if "" in addresses:
            message = f"{quoted(subject.table.device_ips[row])} has an empty part"
            yield Finding(message, subject.device_path(row, "device_ip"), how(subject, row))
        if (dotted := _with_dots(subject.table.device_ips[row])) is not None:
            message = f"{quoted(subject.table.device_ips[row])} has {dotted[0]}"
            yield Finding(message, subject.device_path(row, "device_ip"), f'write "{dotted[1]}"')
            continue
        for address in filter(None, addresses):
            if packed[address] is None or is_unset(address):
                path, whole = subject.device_path(row, "device_ip"), subject.table.device_ips[row]
                finding = Finding(f'"{address}" is not an IP address', path, how(subject, row))
                found = right_texts.address(finding, address, whole)
                if found.hint == finding.hint and found.message.startswith(f"{finding.message}: "):
                    why = found.message.removeprefix(f"{finding.message}: ")
                    message = f"device_ips are not IP addresses: {why}"
                    found = found._replace(alike=alike.setdefault(why, (message, of_each(subject, row))))
                yield found


def _with_dots(text: str) -> tuple[str, str] | None:
    """Return what separates the parts of a text that are wrongly separated, as a phrase, and the right text."""
    dotted = text.replace(",", ".")
    if text.count(",") == 3 and right_texts.is_address(dotted):
        return "commas in place of dots", dotted
    for sign in ";| ":
        parts = text.split(sign) if text.count(sign) == 1 else []
        if parts and all(map(right_texts.is_address, parts)):
            return f'"{sign}" in place of a comma between two addresses', ",".join(parts)
    return None


@rule(
    "HCC404",
    "duplicate-device-ip",
    "refused",
    code="EI0014",
    needs=("device_ip",),
    source="topoinfo_ranktableConcise.cc:505-570",
)
def duplicate_device_ip(subject: Subject) -> Iterator[Finding]:
    """Two devices have the same device_ip.

    HCCL compares the strings of the whole table, even if the table has a single server.

    Example: /server_list/0/device/1/device_ip = "192.168.0.100"
    Instead: /server_list/0/device/1/device_ip = "192.168.0.101"
    Hint: give every device its own address; `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1, and `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    if all_plain(subject):
        return
    packed, copied = packed_addresses(subject), set(copied_rows(subject))
    yield from _copied_instances(subject)
    for index, seen in _with_addresses_of(subject).items():
        yield _copied_addresses(subject, index, seen)
        copied |= set(subject.table.servers[index].rows)
    first: dict[str, int] = {}
    for row, addresses in enumerate(addresses_read(subject)):
        for address in addresses if row not in copied else ():
            if packed[address] is None:
                continue  # not an address: HCC403 reports it
            if address in first:
                yield Finding(
                    f'device_ip "{address}" is used twice',
                    subject.device_path(row, "device_ip"),
                    f"give every device its own address; {how(subject, row)}, and {how(subject, first[address])}",
                    (Related(subject.device_path(first[address], "device_ip"), "first used here"),),
                )
            first.setdefault(address, row)


def _with_addresses_of(subject: Subject) -> dict[int, int]:
    """Return the servers with several devices that have the device_ips of an earlier server, with that server."""
    first: dict[tuple[str, ...], int] = {}
    found, copies, known = {}, server_copies(subject), packed_addresses(subject)
    read = addresses_read(subject)
    for index, server in enumerate(subject.table.servers):
        ips = tuple(",".join(read[row]) for row in server.rows)
        if len(ips) < 2 or index in copies or not all(known[one] for one in ips):
            continue
        if (seen := first.setdefault(ips, index)) != index:
            found[index] = seen
    return found


def _copied_addresses(subject: Subject, index: int, seen: int) -> Finding:
    server, first = subject.table.servers[index], subject.table.servers[seen]
    path, other = (subject.device_path(rows[0], "device_ip") for rows in (server.rows, first.rows))
    return Finding(
        f"all device_ips of {named_server(subject, index)} are those of {named_server(subject, seen)}",
        path,
        f"write its own addresses; {of_each(subject, server.rows[0])}",
        (Related(other, "first used here"),),
    )


def _copied_instances(subject: Subject) -> Iterator[Finding]:
    """Yield the instances of a group_list that are copies; they have no rank ids and may share a server_id."""
    for index, copy in server_copies(subject).items() if subject.table.format == "group_list" else ():
        yield Finding(
            f"instance {index + 1} is a copy of instance {copy.first + 1}: device_ids and device_ips repeat",
            subject.server_path(index),
            what_a_copy_needs(subject, index),
            (Related(subject.server_path(copy.first), "the first of the two"),),
        )


@rule(
    "HCC405",
    "address-count",
    "refused",
    formats=SERVER_LIST,
    needs=("device_ip",),
    source="topoinfo_ranktableConcise.cc:349-363",
)
def address_count(subject: Subject) -> Iterator[Finding]:
    """Devices have different numbers of addresses.

    Example: /server_list/0/device/1/device_ip = "192.168.0.101,192.168.0.201"
    Instead: /server_list/0/device/1/device_ip = "192.168.0.101"
    Hint: list the same number of addresses for every device
    """
    if all_plain(subject):
        return
    counts = [max(1, len(addresses)) for addresses in addresses_read(subject)]
    for row, count in enumerate(counts):
        if count != counts[0]:
            yield Finding(
                f"{subject.rank_name(row)} has {count} {'address' if count == 1 else 'addresses'}, the first device has {counts[0]}",
                subject.device_path(row, *(("device_ip",) if subject.table.device_ips[row] else ())),
                "list the same number of addresses for every device",
            )
