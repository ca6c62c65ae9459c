"""Rules on addresses that several devices have, and on the number of addresses of a device."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules import right_texts
from hccl_tools.rules.address_columns import addresses_read, all_plain, packed_addresses, rows_unset
from hccl_tools.rules.address_order import address_text, is_moved_by_a_server, owners_of_addresses
from hccl_tools.rules.address_texts import with_dots
from hccl_tools.rules.claimed_addresses import right_addresses
from hccl_tools.rules.commands import how, how_device, of_each, on_host
from hccl_tools.rules.copies import (
    absent_devices,
    copied_rows,
    has_same_pod,
    named_server,
    repeated_entries,
    server_copies,
    servers_again,
    what_a_copy_needs,
)
from hccl_tools.rules.filled_columns import filled_down, filled_runs, is_server
from hccl_tools.rules.joined_groups import repeated_group
from hccl_tools.rules.lost_signs import lost_addresses
from hccl_tools.rules.moved_rows import inserted_address
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.replaced_text import addresses_finding, replaced_addresses
from hccl_tools.rules.shared_values import Claim, claim
from hccl_tools.rules.surplus_devices import (
    pasted_devices,
    refused_rows,
    refused_surplus,
    surplus_finding,
    without_surplus,
)
from hccl_tools.table.addresses import is_netmask, is_unset
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Found

#: With more than two equal addresses a server has one address for all devices.
_TWO = 2


@rule(
    "HCC404",
    "duplicate-device-ip",
    "refused",
    code="EI0014",
    needs=("device_ip",),
    source="topoinfo_ranktableConcise.cc:505-570",
)
def duplicate_device_ip(subject: Subject) -> Iterator[Found]:
    """Two devices have the same device_ip.

    HCCL compares the strings of the whole table, even if the table has a single server.

    If the hosts of two servers show the same addresses, compare what `cat /proc/sys/kernel/random/boot_id` prints on both.
    If it differs, two hosts have the same addresses set, as after the copy of a disk with /etc/hccn.conf: set others
    on one of them (`hccn_tool -i 0 -ip -s address ADDRESS netmask NETMASK`, and so on for each device) and write them
    in the table. If it is equal, both entries are of one host: put the server that is missing in place of one of
    them, or remove one, correct server_count and number the ranks without a gap.

    Example: /server_list/0/device/1/device_ip = "192.168.0.100"
    Instead: /server_list/0/device/1/device_ip = "192.168.0.101"
    Hint: give every device its own address (this is that of the row above, which was perhaps filled down); `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1, and `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    if all_plain(subject):
        return
    packed, copied = packed_addresses(subject), {*copied_rows(subject), *lost_addresses(subject)}
    copied |= rows_unset(subject)  # HCC403
    for rows in _filled(subject, copied):
        yield _filled_down(subject, rows)
        copied |= {*rows}
    yield from _copied_instances(subject)
    if (one := replaced_addresses(subject)) is not None and copied.isdisjoint(one.found):
        if all(packed[text] for text in one.found.values()):  # Else HCC403 reports it.
            yield partial(addresses_finding, subject, one)
        copied |= one.found.keys()
    for index, seen in _with_addresses_of(subject).items():
        if not copied.isdisjoint(subject.table.servers[index].rows):
            continue
        if one is not None and not one.found.keys().isdisjoint(_rows_of(subject, index, seen)):
            continue
        yield partial(_copied_addresses, subject, index, seen)
        copied |= set(subject.table.servers[index].rows)
    for row, seen in repeated_entries(subject).items():
        yield _repeated_entry(subject, row, seen)
        copied.add(row)
    for row, seen in pasted_devices(subject).items():
        yield _pasted(subject, row, seen)
        copied.add(row)
    copied |= refused_rows(subject)
    for index, rule_id in refused_surplus(subject).items():
        if rule_id == "HCC404":
            yield partial(surplus_finding, subject, index, "device_ip")
    for index in _of_one_address(subject, copied):
        yield _one_address(subject, index)
        copied |= set(subject.table.servers[index].rows)
    first: dict[str, int] = {}
    again = list[tuple[int, str, int]]()
    for row, addresses in enumerate(addresses_read(subject)):
        for address in addresses if row not in copied else ():
            if packed[address] is None:
                continue  # not an address: HCC403 reports it
            if address in first:
                again.append((row, address, first[address]))
            first.setdefault(address, row)
    yield from _each_repeated(subject, again)


def _filled(subject: Subject, left_out: set[int]) -> list[range]:
    """Return the rows with the address of the row above, unless they are one server or have no address of a device."""
    ips, known = subject.table.device_ips, packed_addresses(subject)
    hosts = {server.server_id.strip() for server in subject.table.servers}
    return [
        rows
        for rows in filled_runs(ips)
        if not is_server(subject, rows)
        and left_out.isdisjoint(rows)
        and ips[rows[0]] not in hosts
        and addresses_read(subject)[rows[0]] == [ips[rows[0]]]
        and known[ips[rows[0]]]
        and not is_unset(ips[rows[0]])
        and not is_netmask(ips[rows[0]])
    ]


def _filled_down(subject: Subject, rows: range) -> Finding:
    known = owners_of_addresses(subject)
    expected = known.order.expected if known is not None else {}
    return filled_down(subject, rows, "device_ip", expected, partial(address_text, subject))


def _rows_of(subject: Subject, *indices: int) -> set[int]:
    return {row for index in indices for row in subject.table.servers[index].rows}


def _pasted(subject: Subject, row: int, seen: int) -> Finding:
    """Return the finding on the entry of a device of another server, which lists this device itself."""
    table = subject.table
    index, other = table.server_of_row[row], table.server_of_row[seen]
    return Finding(
        f"{named_server(subject, index)} lists all its devices and an entry of {named_server(subject, other)}: device "
        f"{table.device_ids[row]} with {quoted(str(table.device_ips[row]))}",
        subject.device_path(row, "device_ip"),
        without_surplus(subject, index),
        (Related(subject.device_path(seen, "device_ip"), "the device itself"),),
    )


def _inserted(subject: Subject, row: int, address: str, seen: int) -> Finding | None:
    """Return the finding on a cell that was inserted below another one with its value, so that all below it are moved."""
    if seen != row - 1 or (moved := inserted_address(subject, row)) is None:
        return None
    table, last = subject.table, moved.rows[-1]
    right = quoted(address_text(subject, moved.right[last]))
    where = f"device {table.device_ids[row]} of {named_server(subject, table.server_of_row[row])}"
    return Finding(
        f"device_ip {quoted(address)} is there twice, and all addresses below it are probably moved down by one row: a cell was "
        f"inserted at {where}, and {right}, which belongs to the last device, is missing",
        subject.device_path(row, "device_ip"),
        f"{how(subject, row)}: if it is {quoted(address_text(subject, moved.right[row]))}, remove this address, move all below it up "
        f"by one row, and write {right} in the last one",
        (Related(subject.device_path(seen, "device_ip"), "first used here"),),
    )


def _each_repeated(subject: Subject, again: list[tuple[int, str, int]]) -> Iterator[Found]:
    """Yield the addresses that occur again, those of two servers in one block."""
    if len(again) == 1 and (moved := _inserted(subject, *again[0])) is not None:
        yield moved
        return
    owner = subject.table.server_of_row
    pairs = Counter((owner[row], owner[seen]) for row, _, seen in again)
    alike: dict[tuple[int, int], tuple[str, str]] = {}
    of_first = dict[tuple[int, int], dict[int, str]]()
    for row, address, seen in again:
        pair = owner[row], owner[seen]
        if pair not in alike and pairs[pair] > 1 and pair[0] != pair[1]:
            of_first[pair] = right_addresses(subject, pair[1], pair[0])
            alike[pair] = _of_two_servers(subject, row, seen, of_first[pair], pairs[pair])
        yield partial(
            _repeated, subject, (row, address, seen), alike.get(pair), is_first=bool(of_first.get(pair))
        )


def _repeated(
    subject: Subject, again: tuple[int, str, int], alike: tuple[str, str] | None, *, is_first: bool
) -> Finding:
    """Return the finding on an address that occurs again; ``is_first`` says that the first place is the wrong one."""
    row, address, seen = again
    other = f", and {how(subject, seen)}" if how(subject, seen) != how(subject, row) else ""
    above = " (this is that of the row above, which was perhaps filled down)" if seen == row - 1 else ""
    wrong, right = (seen, row) if is_first else (row, seen)
    return Finding(
        f'device_ip "{address}" is used twice',
        subject.device_path(wrong, "device_ip"),
        f"give every device its own address{above}; {how(subject, row)}{other}{_by_order(subject, (row, seen))}",
        (
            Related(
                subject.device_path(right, "device_ip"), "first used here" if right == seen else "and here"
            ),
        ),
        alike=alike,
    )


def _of_two_servers(
    subject: Subject, row: int, seen: int, of_first: dict[int, str], number: int
) -> tuple[str, str]:
    """Return message and hint on addresses that two servers have.

    Args:
        of_first: The right addresses of the earlier server, if it is certainly the wrong one.
    """
    owner = subject.table.server_of_row
    one, other = (named_server(subject, owner[place]) for place in (row, seen))
    wrong = of_first or right_addresses(subject, owner[row], owner[seen])
    if not wrong:
        ask = f"{how(subject, row)}, and {how(subject, seen)}, and so on for each of these devices"
        return (
            f"{number} device_ips of {one} are those of {other}",
            f"one of the two servers has addresses of the other: {ask}",
        )
    own, first = (one, other) if not of_first else (other, one)
    rows = list(wrong)
    ids = and_more([str(subject.table.device_ids[place]) for place in rows], 16)
    texts = and_more([quoted(wrong[place]) for place in rows], 16)
    ask = of_each(subject, rows[0])
    return (
        f"{number} device_ips of {own} are those of {first}",
        f"{ask}; by the order of its other devices, devices {ids} have {texts}",
    )


def _by_order(subject: Subject, rows: tuple[int, int]) -> str:
    """Return which address one of two devices has by the order of the others, as the end of a hint; "" if it is not certain."""
    known = owners_of_addresses(subject)
    expected = known.order.expected if known is not None else {}
    outside = [row for row in rows if row in expected]
    if len(outside) != 1:
        return ""
    table, (row,) = subject.table, outside
    index, right = table.server_of_row[row], address_text(subject, expected[row])
    return f'; by the order of the others, that of device {table.device_ids[row]} of {named_server(subject, index)} is "{right}"'


def _of_one_address(subject: Subject, left_out: set[int]) -> list[int]:
    """Return the servers of three or more devices that all have the same single address."""
    known, ips = packed_addresses(subject), subject.table.device_ips
    return [
        index
        for index, server in enumerate(subject.table.servers)
        if len(server.rows) > _TWO
        and server.rows[0] not in left_out
        and isinstance(text := ips[server.rows[0]], str)
        and all(ips[row] == text for row in server.rows)
        and addresses_read(subject)[server.rows[0]]
        and known[text]
    ]


def _one_address(subject: Subject, index: int) -> Finding:
    """Return the finding on a server whose devices all have one address."""
    server = subject.table.servers[index]
    text = subject.table.device_ips[server.rows[0]]
    places = tuple(Related(subject.device_path(row, "device_ip"), "and here") for row in server.rows[1:16])
    which, check = (
        "",
        f"write the address of each device; the column was perhaps filled down from the first one: {of_each(subject, server.rows[0])}",
    )
    if is_netmask(text):
        which = ", which is a netmask"
        check += ", as its ipaddr, above the netmask"
    elif text in (server.server_id.strip(), server.host_ip):
        which = ", which is the address of the host"
    return Finding(
        f"all device_ips of {named_server(subject, index)} are {quoted(text)}{which}",
        subject.device_path(server.rows[0], "device_ip"),
        check,
        places,
    )


def _repeated_entry(subject: Subject, row: int, seen: int) -> Finding:
    """Return the finding on an entry with the device_id and address of another one of its server."""
    table = subject.table
    server = table.servers[table.server_of_row[row]]
    absent = absent_devices(subject, server.rows)
    message = f"this entry repeats device {table.device_ids[seen]} of its server, with its device_ip"
    hint = "write the device_id and address of another device of the server"
    if len(absent) == 1:
        number, index = absent[0], table.server_of_row[row]
        message += f", and device {number} is missing"
        hint = (
            f'write "device_id": "{number}" in the right one of the two entries, and the address that '
            f"{how_device(subject, index, number)} shows"
        )
    elif not absent and len(server.rows) - 1 in WHOLE_MACHINES:
        more = "" if table.format == "group_list" else ", and number the ranks without a gap"
        hint = f"remove it{more}"
    related = (Related(subject.device_path(seen), "the first of the two"),)
    return Finding(message, subject.device_path(row), hint, related)


def _with_addresses_of(subject: Subject) -> dict[int, int]:
    """Return the servers with several devices that have the device_ips of an earlier server, with that server."""
    first: dict[tuple[str, ...], int] = {}
    found, known = {}, packed_addresses(subject)
    copies = server_copies(subject).keys() | servers_again(subject).keys()
    read = addresses_read(subject)
    for index, server in enumerate(subject.table.servers):
        ips = tuple(",".join(read[row]) for row in server.rows)
        if len(ips) < 2 or index in copies or not all(known[one] for one in ips):
            continue
        if (seen := first.setdefault(ips, index)) != index:
            found[index] = seen
    return found


def _copied_addresses(subject: Subject, index: int, seen: int) -> Finding:
    """Return the finding on two servers with the same addresses; the order of the others may say which one is wrong."""
    table = subject.table
    if is_moved_by_a_server(subject, index):
        number = len(table.servers) - 1
        found = Claim(index, seen, "", "")
        hint = (
            f"check the addresses of all servers from here to {named_server(subject, number)}: each has those that the server "
            f"before it should have, as if the addresses were moved down by one server; {of_each(subject, table.servers[index].rows[0])}"
        )
    else:
        text = partial(address_text, subject)
        found = claim(subject, (index, seen), owners_of_addresses(subject), text, "device_ip")
        hint = _ask_both(subject, found)
    wrong, owner = (table.servers[one].rows[0] for one in (found.wrong, found.owner))
    return Finding(
        f"all device_ips of {named_server(subject, found.wrong)} are those of {named_server(subject, found.owner)}",
        subject.device_path(wrong, "device_ip"),
        hint,
        (Related(subject.device_path(owner, "device_ip"), "the same addresses here"),),
    )


def _ask_both(subject: Subject, found: Claim) -> str:
    """Return the hint on two servers with the same addresses: only both hosts together say what is wrong."""
    one, other = (subject.table.servers[index].rows[0] for index in (found.wrong, found.owner))
    rest = (
        ""
        if subject.table.format == "group_list"
        else "; if both show these, they may be one host: see `hccl-tools rules HCC404`"
    )
    numbers, hosts = subject.table.device_numbers, [on_host(subject, row) for row in (one, other)]
    ask = f"{how(subject, one)}, and {how(subject, other)}"
    if numbers[one] == numbers[other] and all(hosts):
        ask = how(subject, one).replace(f"{hosts[0]} shows", f"{hosts[0]} and{hosts[1]} shows", 1)
    return f"{found.order}{ask}: correct all addresses of the server whose host shows other ones{rest}{found.rest}"


def _copied_instances(subject: Subject) -> Iterator[Finding]:
    """Yield the instances of a group_list that are copies; they have no rank ids and may share a server_id."""
    for index, copy in server_copies(subject).items() if subject.table.format == "group_list" else ():
        if index in repeated_group(subject):
            continue  # HCC513 reports the group.
        what = (
            "pod_name and device_ips repeat"
            if has_same_pod(subject, index)
            else "the device_ips are the same"
        )
        yield Finding(
            f"instance {index + 1} is a copy of instance {copy.first + 1}: {what}",
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
    Hint: list as many addresses as for the other devices: `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1
    """
    if all_plain(subject):
        return
    counts = [max(1, len(addresses)) for addresses in addresses_read(subject)]
    usual = Counter(counts).most_common(1)[0][0]
    which = "most devices have" if counts.count(usual) * 2 > len(counts) else "others have"
    for row, count in enumerate(counts):
        if (
            count != usual and with_dots(subject.table.device_ips[row], right_texts.is_address) is None
        ):  # Else HCC403 reports it.
            yield _other_count(subject, row, count, f"{which} {usual}")


def _other_count(subject: Subject, row: int, count: int, usual: str) -> Finding:
    addresses = f"{count} {'address' if count == 1 else 'addresses'}"
    return Finding(
        f"{subject.rank_name(row)} has {addresses}, {usual}",
        subject.device_path(row, *(("device_ip",) if subject.table.device_ips[row] else ())),
        f"list as many addresses as for the other devices: {how(subject, row)}",
        alike=(
            f"devices have {addresses}, {usual}",
            "list as many addresses for each as for the other devices",
        ),
    )
