"""Rules on device and host addresses of 1.x and group_list tables."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import as_json, quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.rules import address_texts, right_texts
from hccl_tools.rules.address_columns import (
    addresses_read,
    all_plain,
    hosts_set,
    intra_roce,
    packed_addresses,
    refused_values,
    servers_unread,
)
from hccl_tools.rules.address_texts import of_number
from hccl_tools.rules.commands import how, of_each, on_host
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.key_names import similar_key
from hccl_tools.rules.key_shapes import column_of_addresses, key_of_address
from hccl_tools.rules.lost_signs import lost_addresses, lost_findings, moved_column
from hccl_tools.rules.moved_entries import exchange, with_address_as_id
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.replaced_text import addresses_finding, expected_addresses, replaced_addresses
from hccl_tools.table.addresses import is_unset, packed

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Found


#: What MindCluster writes in place of an address that it could not read (ascend-common, DeviceIPErrorCodeStr).
_UNREAD = "-1"
#: The fewest devices with one address that show that devices have one.
_LEAST_PLAIN = 4


@shared
def servers_of_no_host(subject: Subject) -> frozenset[int]:
    """Return the servers with an empty server_id whose device_ips lack their beginning or are empty, too.

    Both have one cause, which HCC502 reports: a program wrote nothing in place of the values of a host.
    """
    ips = subject.table.device_ips
    if "" not in map(attrgetter("server_id"), subject.table.servers):
        return frozenset()
    return frozenset(
        index
        for index, server in enumerate(subject.table.servers)
        if not server.server_id
        and server.rows
        and all(
            isinstance(text := ips[row], str) and text[:1] in ("", ".", ":") and packed(text) is None
            for row in server.rows
        )
    )


@rule(
    "HCC401",
    "device-ip-missing",
    "refused",
    code="EI0014",
    needs=("device_ip", "host_ip"),
    source="topoinfo_ranktableConcise.cc:513-544, topoinfo_ranktableStandard.cc:555",
)
def device_ip_missing(subject: Subject) -> Iterator[Found]:
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
    alike = dict[int, tuple[str, str]]()
    misspelt = next((key for key in subject.table.columns if similar_key(key) == "device_ip" != key), None)
    misspelt = misspelt or column_of_addresses(subject)
    for index, (server, refused) in enumerate(
        zip(subject.table.servers, refused_values(subject), strict=True)
    ):
        for row in server.rows if refused and index not in servers_of_no_host(subject) else ():
            if ips[row] in refused:
                own = misspelt if misspelt and subject.table.columns[misspelt][row] is not None else None
                own = own or (key_of_address(subject, row) if ips[row] is None else None)
                if own is not None:
                    yield _under_another_key(subject, row, own)
                    continue
                if (step := moved_column(subject)) is not None:
                    yield _of_moved_column(subject, row, step)
                    return
                yield partial(_missing, subject, row, alike)


def _missing(subject: Subject, row: int, alike: dict[int, tuple[str, str]]) -> Finding:
    """Return the finding on a device without an address; the first one sets message and hint for several."""
    key = ("device_ip",) if subject.table.device_ips[row] == "" else ()
    return Finding(
        f"{subject.rank_name(row)} has no device_ip",
        subject.device_path(row, *key),
        how(subject, row),
        alike=alike.setdefault(0, ("these devices have no device_ip", of_each(subject, row))),
    )


def _of_moved_column(subject: Subject, row: int, step: int) -> Finding:
    """Return the finding on the only device without an address if each other one has that of its neighbour."""
    table = subject.table
    lacking = 0 if step > 0 else len(table) - 1
    device, server = table.device_numbers[lacking], table.server_of_row[lacking]
    other, moved, back = ("next", "up", "down") if step > 0 else ("previous", "down", "up")
    return Finding(
        f"{subject.rank_name(row)} has no device_ip, and each other device probably has that of the {other} one: the column was moved "
        f"{moved} by one row",
        subject.device_path(row, *(("device_ip",) if table.device_ips[row] == "" else ())),
        f"move all device_ips {back} by one row; then device {device} of {named_server(subject, server)} has none: write the one that the "
        f"host shows ({how(subject, lacking)})",
    )


def _under_another_key(subject: Subject, row: int, key: str) -> Finding:
    is_alike = similar_key(key) == "device_ip"
    return Finding(
        f'device_ip is missing, and "{key}" {"looks like it" if is_alike else "has an address"}',
        subject.device_path(row, key),
        f'rename "{key}" to "device_ip"',
        at_key=True,
        right_key="device_ip" if is_alike else None,
    )


@rule(
    "HCC402",
    "device-ip-no-text",
    "refused",
    code="EI0017",
    needs=("host_ip",),
    source="topoinfo_ranktableConcise.cc:513-544",
)
def device_ip_no_text(subject: Subject) -> Iterator[Found]:
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
def device_ip_dropped(subject: Subject) -> Iterator[Found]:
    """A device_ip is not a string; HCCL silently ignores it.

    Base: 1.2 2x8
    Example: /server_list/0/device/0/device_ip = 5
    Instead: /server_list/0/device/0/device_ip = "192.168.0.100"
    Hint: write the address as a string: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    return _no_text(subject, refused=False)


def _address_of(value: Any) -> str | None:
    """Return the address that a list has as its only entry, or whose number a value is; None for others."""
    if type(value) is list and len(value) == 1 and type(value[0]) is str and packed(value[0]) is not None:
        return value[0]
    return of_number(value)


def _no_text(subject: Subject, *, refused: bool) -> Iterator[Found]:
    if all_plain(subject):
        return
    hosts, ips, alike = hosts_set(subject), subject.table.device_ips, dict[str, tuple[str, str]]()
    message = "device_ip is not a string" + ("" if refused else ", so HCCL ignores it")
    for index, server in enumerate(subject.table.servers):
        for row in server.rows:
            if ips[row] is None or isinstance(ips[row], str):
                continue
            if _refuses_no_text(subject, index, hosts) == refused:
                yield partial(_as_string, subject, row, message, alike)


def _as_string(subject: Subject, row: int, message: str, alike: dict[str, tuple[str, str]]) -> Finding:
    """Return the finding on a value that is not a string; the first of a kind sets message and hint for several."""
    value, path = subject.table.device_ips[row], subject.device_path(row, "device_ip")
    if (own := _address_of(value)) is not None:
        hint = f'write "{own}" in place of {as_json(value)}, and the others in the same way'
        return Finding(
            f"{message}: it is {'a list with' if type(value) is list else 'the number of'} the address",
            path,
            f'write "{own}"',
            alike=alike.setdefault(f"{message}{type(value)}", (message, hint)),
        )
    several = message, f"write each address as a string: {of_each(subject, row)}"
    return Finding(
        message,
        path,
        f"write the address as a string: {how(subject, row)}",
        alike=alike.setdefault(message, several),
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
def invalid_device_ip(subject: Subject) -> Iterator[Found]:
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
    left_out = {row for index in servers_of_no_host(subject) for row in subject.table.servers[index].rows}
    if lost := lost_addresses(subject):
        unread = {row for row in lost if not addresses_read(subject)[row]}
        yield from lost_findings(subject, left_out | unread)
        left_out |= lost.keys()
    if (one := replaced_addresses(subject)) is not None:
        if any(packed[text] is None for text in one.found.values()):
            yield addresses_finding(subject, one)
        left_out |= one.found.keys()
    ips = subject.table.device_ips
    are_apart = address_texts.are_separated(ips)
    for row, addresses in enumerate(addresses_read(subject)):
        if not addresses or row in left_out:
            continue
        if "" in addresses:
            message = f"{quoted(ips[row])} has an empty part"
            yield Finding(message, subject.device_path(row, "device_ip"), how(subject, row))
        dotted = address_texts.with_dots(ips[row], right_texts.is_address) if are_apart else None
        if dotted is not None:
            yield _wrongly_separated(subject, row, *dotted, alike)
            continue
        for address in filter(None, addresses):
            if packed[address] is None or is_unset(address):
                yield partial(_no_address, subject, row, address, alike)


def _no_address(subject: Subject, row: int, address: str, alike: dict[str, tuple[str, str]]) -> Finding:
    """Return the finding on a text that is not an address.

    Args:
        alike: Message and hint for several texts with one fault, which the first of them sets.
    """
    path, whole = subject.device_path(row, "device_ip"), subject.table.device_ips[row]
    finding = Finding(f'"{address}" is not an IP address', path, how(subject, row))
    if (key := with_address_as_id(subject).get(row)) is not None:
        return exchange(finding, key)
    if address == _UNREAD:
        return _unread(subject, finding, row, alike)
    if rows := address_texts.counted_past(subject.table.device_ips, row):
        return _counted_past(subject, finding, rows, alike)
    both = address_texts.number_after(whole, right_texts.is_address)
    if both is not None and (decided := _of_the_two(subject, finding, both)) is not None:
        return decided
    found = _unless_used(subject, right_texts.address(finding, address, whole), finding)
    said: tuple[str, str] | None = None
    if found.hint == finding.hint and found.message.startswith(f"{finding.message}: "):
        why = found.message.removeprefix(f"{finding.message}: ")
        rest = _if_there_is_none(subject)
        one, first = _by_the_others(subject, row)
        found = found._replace(hint=f"{found.hint}{one}{rest}")
        said = f"device_ips are not IP addresses: {_of_several(why)}", f"{of_each(subject, row)}{first}{rest}"
    elif is_unset(address) and found.hint == finding.hint:
        said = f"HCCL reads {quoted(address)} as no address", of_each(subject, row)
    elif found.message.startswith(f"{quoted(address)} has ") and found.hint is not None:
        why = found.message.removeprefix(f"{quoted(address)} has ")
        said = (
            f"device_ips have {why}",
            f"{found.hint} in place of {quoted(whole)}, and the others in the same way",
        )
    return found if said is None else found._replace(alike=alike.setdefault(said[0], said))


def _by_the_others(subject: Subject, row: int) -> tuple[str, str]:
    """Return which address a device has by the order of the others, as the end of a hint on it and on several; "" if none says it."""
    expected = expected_addresses(subject)
    if expected is None or expected[row] in packed_addresses(subject):
        return "", ""
    right = quoted(expected[row])
    return (
        f"; by the order of the others it is probably {right}",
        f"; by the order of the others the first is probably {right}",
    )


def _of_the_two(subject: Subject, finding: Finding, both: address_texts.NumberAfter) -> Finding | None:
    """Return the finding on a text that can stand for two addresses, if the other devices say for which."""
    used = [one in packed_addresses(subject) for one in (both.alone, both.joined)]
    if _numbers_after(subject)[both.number] > 1 and not used[0]:
        return finding._replace(
            message=f'{finding.message}: it has the text "{both.number}" after the address, as others have',
            hint=f'write "{both.alone}"',
        )
    if used[0] == used[1]:
        return None
    fault = "a blank in it" if used[0] else f'the text "{both.number}" after the address'
    right, other = (both.joined, both.alone) if used[0] else both[:2]
    return finding._replace(
        message=f"{finding.message}: it has {fault}",
        hint=f'write "{right}": {quoted(other)} is that of another device',
    )


@shared
def _numbers_after(subject: Subject) -> Counter[str]:
    """Return how many device_ips have each text after an address, such as a port."""
    return address_texts.after_address(subject.table.device_ips, right_texts.is_address)


def _unread(subject: Subject, finding: Finding, row: int, alike: dict[str, tuple[str, str]]) -> Finding:
    """Return the finding on what a plug-in wrote in place of an address, in a table that a controller writes."""
    why = "MindCluster's device plug-in writes it if it can read no address from the device"
    rest = ""
    if "" not in refused_values(subject)[subject.table.server_of_row[row]]:
        rest = (
            '; if it has none, HCCL takes "" here; with `launch --start torch`, which gives the ranks no table, '
            "`--ignore HCC403` starts the job as it is"
        )
    said = f'device_ips are "{_UNREAD}", not IP addresses: {why}', f"{of_each(subject, row)}{rest}"
    return finding._replace(
        message=f"{finding.message}: {why}",
        hint=f"{finding.hint}{rest}",
        alike=alike.setdefault(said[0], said),
    )


@shared
def _if_there_is_none(subject: Subject) -> str:
    """Return what to do if the devices of a single server have no addresses, as the end of a hint; "" if one has."""
    if len(subject.table.servers) != 1 or subject.table.format == "group_list" or intra_roce(subject):
        return ""
    known = packed_addresses(subject)
    if any(known[one] is not None for each in addresses_read(subject) for one in each):
        return ""
    return "; if the host shows none, remove device_ip from all devices: HCCL needs no addresses on a single server"


def _counted_past(
    subject: Subject, finding: Finding, rows: range, alike: dict[str, tuple[str, str]]
) -> Finding:
    """Return the finding on an address that was counted on above 255: those before it were counted as well."""
    table = subject.table
    first, last = (quoted(table.device_ips[row]) for row in (rows[0], rows[-1]))
    where, ids = on_host(subject, rows[0]), fold(table.device_numbers[row] or 0 for row in rows)
    are_of_one = len({table.server_of_row[row] for row in rows}) == 1 and None not in table.device_numbers
    devices = f"devices {ids}{where}" if are_of_one else f"these {len(rows)} devices"
    counted = f"the addresses {first} to {last} are counted on from one device to the next, as a spreadsheet fills a column"
    valid = next((row for row in rows if right_texts.is_address(table.device_ips[row])), None)
    also = (
        ""
        if valid is None
        else f", so that those below 256 are perhaps wrong, too ({quoted(table.device_ips[valid])})"
    )
    hint = (
        f"write the addresses that {devices} have, all of them: {how(subject, rows[0])}, and so on for each"
    )
    said = f"device_ips are not IP addresses: numbers are above 255; {counted}{also}", hint
    return finding._replace(
        message=f"{finding.message}: a number is above 255; {counted}{also}",
        hint=hint,
        alike=alike.setdefault(said[0], said),
    )


def _unless_used(subject: Subject, found: Finding, finding: Finding) -> Finding:
    """Return a finding without the text that it says to write if another device has this address.

    Then more than a sign is wrong, and the text would be a duplicate.
    """
    right = (found.hint or "").removeprefix('write "').removesuffix('"')
    if right == (found.hint or "") or right not in packed_addresses(subject):
        return found
    return found._replace(hint=f"{finding.hint}; {quoted(right)} is that of another device", right=None)


def _of_several(why: str) -> str:
    if why == "it is a name or word":
        return "they are names or words"
    return f"they have {why.removeprefix('it has ')}" if why.startswith("it has ") else why


def _wrongly_separated(
    subject: Subject, row: int, fault: str, right: str, alike: dict[str, tuple[str, str]]
) -> Finding:
    """Return the finding on a text whose parts are wrongly separated."""
    text, path = subject.table.device_ips[row], subject.device_path(row, "device_ip")
    if "," not in right:
        message, hint = f"{quoted(text)} has {fault}", f'write "{right}"'
        said = (
            f"device_ips have {fault}",
            f"{hint} in place of {quoted(text)}, and the others in the same way",
        )
    elif _have_one_address(subject):
        parts = right.split(",")
        number = "two" if len(parts) == 2 else str(len(parts))
        others = (
            "one of the two is too many: most devices have one address"
            if len(parts) == 2
            else "most devices have one: the others are too many"
        )
        message = f"{quoted(text)} has {number} addresses, and {others}"
        hint = f"write {' or '.join(map(quoted, parts))}: {how(subject, row)}"
        said = (
            f"device_ips have {number} addresses, and {others}",
            f"write one of the {number}: {of_each(subject, row)}",
        )
    else:
        message, hint = f"{quoted(text)} has {fault}", f'write "{right}"'
        said = (
            f"device_ips have {fault}",
            f"{hint} in place of {quoted(text)}, and the others in the same way",
        )
    return Finding(message, path, hint, alike=alike.setdefault(said[0], said))


@shared
def _have_one_address(subject: Subject) -> bool:
    """Whether most devices have one address, so that one of two is too many."""
    known = packed_addresses(subject)
    plain = sum(len(one) == 1 and known[one[0]] is not None for one in addresses_read(subject))
    return plain >= _LEAST_PLAIN and 2 * plain >= len(subject.table)
