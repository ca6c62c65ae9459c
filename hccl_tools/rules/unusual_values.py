"""Advice on values that do not follow the order of nearly all others: exchanged, moved by a row, or mistyped.

HCCL accepts such a table, and its ranks connect to other devices than those meant.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more, count, listed_parts
from hccl_tools.rules.address_columns import plain_addresses
from hccl_tools.rules.address_networks import in_each_others_network
from hccl_tools.rules.address_order import (
    READ,
    address_numbers,
    address_text,
    are_in_place,
    first_in_text_order,
    moved_device_ids,
    order_of_addresses,
    servers_in_text_order,
)
from hccl_tools.rules.commands import how, how_device, how_super_device, of_each
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.exchanged_host import exchanged_with_host
from hccl_tools.rules.lost_digits import lost_sdid_digits, sdids_without_digit
from hccl_tools.rules.lost_zeros import lost_zeros, of_lost_zeros
from hccl_tools.rules.moved_rows import moved_addresses, moved_sdids
from hccl_tools.rules.registry import LEGACY, Finding, Subject, rule
from hccl_tools.rules.replaced_text import addresses_finding, replaced_addresses
from hccl_tools.rules.run_on import addresses_run_on, all_turned, server_run_on, turned
from hccl_tools.rules.run_together import run_together
from hccl_tools.rules.server_places import displaced_sdids, order_of_sdids
from hccl_tools.rules.stale_addresses import is_whole, of_stale, stale_addresses
from hccl_tools.rules.super_pod_list import is_used
from hccl_tools.rules.value_order import (
    DEVICE_BITS,
    Order,
    other_devices,
    rows_of_other_bits,
    super_device_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.rules.moved_rows import MovedRows

#: The fewest other addresses for a finding on one that is outside their network.
_LEAST_OTHERS = 7
#: The most values outside the order that are named one by one, the most places of a finding, and the fewest servers of a
#: table in which one can lack a device that the others have.
_MOST_SINGLE, _MOST_PLACES, _LEAST_SERVERS = 2, 16, 3
#: Values outside an order are reported if this many times as many follow it.
_LEAST_FOLLOWING = 4


class _Kind:
    """What the findings on one key say."""

    def __init__(
        self, key: str, command: Callable[[Subject, int], str], text: Callable[[Subject, int], str]
    ) -> None:
        self.key, self.command, self.text = key, command, text
        self.noun = "addresses" if key == "device_ip" else "SDIDs"


_ADDRESS = _Kind("device_ip", how, address_text)
_SDID = _Kind("super_device_id", how_super_device, lambda _subject, number: str(number))


@rule(
    "HCC631",
    "device-ip-outside-order",
    "advice",
    formats=LEGACY,
    needs=("device_ip", "device_id", "server_id"),
    source="device_ip is the address of the device itself (rank_table_config_910.md); the other devices of the table",
)
def device_ip_outside_order(subject: Subject) -> Iterator[Finding]:
    """The device_ips of a few devices do not follow the order of all others: they are exchanged, moved or mistyped.

    In most clusters the address of a device follows from its server and its device_id. HCCL does not compare the
    addresses with the devices, and the job connects to other devices than those meant, or hangs.

    Base: 3x8
    Example: /server_list/1/device/3/device_ip = "192.168.1.104"; /server_list/1/device/4/device_ip = "192.168.1.103"
    Instead: table
    Hint: `hccn_tool -i 3 -ip -g` on 10.0.0.2 shows the address of device 3: if it is "192.168.1.103", exchange the two
    """
    numbers, order = address_numbers(subject), order_of_addresses(subject)
    if numbers is None or servers_in_text_order(subject) or moved_device_ids(subject):
        return  # HCC645 or HCC632 reports it.
    if (moved := moved_addresses(subject)) is not None:
        yield _moved_among_servers(subject, moved, _ADDRESS)
        return
    stale = stale_addresses(subject)
    if stale is not None and (subject.table.format == "group_list" or not is_whole(subject, stale)):
        if run_together(subject) is None:  # Else HCC501 reports it.
            yield of_stale(subject, stale)
        return
    is_regular = order is None or not (order.expected or order.moved_up or order.moved_down)
    if not is_regular and first_in_text_order(subject) is not None:
        return  # HCC645 reports it.
    if not is_regular and (replaced := replaced_addresses(subject)) is not None:
        yield addresses_finding(subject, replaced)
        return
    yield from turned(subject, numbers, order)
    if is_regular:
        yield from all_turned(subject, numbers)
    if lost := lost_zeros(subject, numbers):
        yield of_lost_zeros(subject, lost)
    if order is not None:
        yield from _moved_rows(subject, order, _ADDRESS)
        for rows in order.groups:
            yield _changed_places(subject, order.expected, rows, _ADDRESS)
        if is_regular and (run_on := server_run_on(subject, numbers, order)) is not None:
            yield addresses_run_on(subject, *run_on)
    if is_regular and (exchanged := in_each_others_network(subject, numbers)) is not None:
        yield exchanged
    yield from _single_addresses(subject, numbers, order, lost)


def _single_addresses(
    subject: Subject, numbers: Sequence[int], order: Order | None, lost: Iterable[int]
) -> Iterator[Finding]:
    """Yield the findings on single addresses that were mistyped.

    Args:
        lost: The rows whose last zeros are lost.
    """
    of_lost = {subject.table.device_numbers[row] for row in lost}
    ips = subject.table.device_ips
    near = (
        [row for row in order.single if is_near(ips[row], address_text(subject, order.expected[row]))]
        if order
        else []
    )
    others = dict.fromkeys(_outside_network(subject))
    exchanged = exchanged_with_host(subject)  # HCC633 reports it.
    others.pop(-1 if exchanged is None else exchanged, None)
    near = [row for row in near if row != exchanged]
    single = dict.fromkeys([*near, *others]) if len(near) <= _MOST_SINGLE else {}
    names = {server.server_id for server in subject.table.servers} if single else set()
    for row in single:
        if subject.table.device_numbers[row] in of_lost:
            continue  # Its order is that of the others with a lost zero.
        if (
            len(single) <= _MOST_SINGLE
            and (right := _device_of_the_address(subject, numbers, row)) is not None
        ):
            yield _mistyped_device(subject, row, right)
            continue
        if (
            ips[row] not in names
            and not ips[row].endswith((".0", ".255"))
            and not ips[row].startswith(("127.", "255."))
        ):  # HCC614 reports them.
            expected = order.expected.get(row) if order is not None else None
            yield _mistyped(subject, row, expected, is_outside=row in others)


def _device_of_the_address(subject: Subject, numbers: Sequence[int], row: int) -> int | None:
    """Return the device that all other servers list, if a row has its address and the number of no other server's device."""
    table = subject.table
    index, devices = table.server_of_row[row], table.device_numbers
    others = [server for server in table.servers if server is not table.servers[index]]
    own = table.servers[index].rows
    lists = [{devices[one] for one in server.rows} for server in others]
    absent = (
        set.intersection(*lists) - {devices[one] for one in own}
        if len(lists) >= _LEAST_SERVERS - 1
        else set()
    )
    if len(absent) != 1 or any(devices[row] in one for one in lists):
        return None
    (right,) = absent
    scheme = {devices[one]: numbers[one] for one in others[0].rows}
    known = next((one for one in own if one != row and devices[one] in scheme), None)
    if right is None or known is None:
        return None
    return right if numbers[row] - numbers[known] == scheme[right] - scheme[devices[known]] else None


def _mistyped_device(subject: Subject, row: int, right: int) -> Finding:
    """Return the finding on a device_id that no other server has, with the address of the device that is missing."""
    table = subject.table
    index = table.server_of_row[row]
    return Finding(
        f"device_ip {quoted(table.device_ips[row])} of device {table.device_ids[row]} of {named_server(subject, index)} is that of device "
        f"{right} by the order of all others: the device_id was probably mistyped",
        subject.device_path(row, "device_id"),
        f"{how_device(subject, index, right)} shows the address of device {right}: if it is {quoted(table.device_ips[row])}, write "
        f'"device_id": "{right}"',
    )


def _outside_network(subject: Subject) -> list[int]:
    """Return the rows of the only device, or of a server with exchanged digits, outside the network of all others."""
    ips, plain = subject.table.device_ips, plain_addresses(subject)
    raw = None if plain is None else plain.ipv4
    if raw is None or len(ips) <= _LEAST_OTHERS:
        return []
    if len(set(zip(raw[::4], raw[1::4], strict=True))) != 2:
        return []  # All are in one network, or no network is that of all others.
    heads = [text[: text.find(".", text.find(".") + 1)] for text in ips]
    (usual, _), (rare, number) = Counter(heads).most_common()
    rows = [heads.index(rare)]
    if number == 1:
        return rows
    server = subject.table.servers[subject.table.server_of_row[rows[0]]]
    are_digits = (
        sorted(usual) == sorted(rare)
        and number == len(server.rows)
        and len(subject.table.servers) >= _LEAST_SERVERS
    )
    return [*server.rows] if are_digits and all(heads[row] == rare for row in server.rows) else []


def _mistyped(subject: Subject, row: int, expected: int | None, *, is_outside: bool) -> Finding:
    table = subject.table
    value, server = quoted(table.device_ips[row]), named_server(subject, table.server_of_row[row])
    what = "is outside the network of all others" if is_outside else "does not follow the order of all others"
    check = how(subject, row)
    hint = f"write the address that the device has: {check}"
    if expected is not None:
        hint = f'{check}: by the order of the others it is "{address_text(subject, expected)}"'
    return Finding(
        f"device_ip {value} of device {table.device_ids[row]} of {server} {what}: it was probably mistyped",
        subject.device_path(row, "device_ip"),
        hint,
        alike=(
            f"the device_ips of {server} are outside the network of all others: they were probably mistyped",
            f"write the address that each device has: {of_each(subject, table.servers[table.server_of_row[row]].rows[0])}",
        ),
    )


def _named(subject: Subject, rows: Sequence[int]) -> str:
    """Return devices with their servers: ``devices 3 and 4 of server 2 ("10.0.0.2")``."""
    table = subject.table
    of_server: dict[int, list[str]] = {}
    for row in rows:
        of_server.setdefault(table.server_of_row[row], []).append(str(table.device_ids[row]))
    parts = [
        f"{'device' if len(ids) == 1 else 'devices'} {listed_parts(ids)} of {named_server(subject, index)}"
        for index, ids in of_server.items()
    ]
    return listed_parts(parts)


def _places(subject: Subject, rows: Sequence[int], key: str) -> tuple[Related, ...]:
    return tuple(Related(subject.device_path(row, key), "and here") for row in rows[1:_MOST_PLACES])


def _changed_places(
    subject: Subject, expected: Mapping[int, int], rows: list[int], kind: _Kind, mixed: str = "mixed up"
) -> Finding:
    """Return the finding on rows that have the values of each other.

    Args:
        mixed: What more than two rows are, unless each has the value of the next one.
    """
    key, values = kind.key, subject.table.column(kind.key)
    right = {row: kind.text(subject, expected[row]) for row in rows}
    pair = len(rows) == 2 and values[rows[0]] == right[rows[1]]
    message = f"the {key}s of {_named(subject, rows)} do not follow the order of all others: "
    check = f'{kind.command(subject, rows[0])}: if it is "{right[rows[0]]}"'
    if pair:
        message += "they are probably exchanged"
        hint = f"{check}, exchange the two"
    else:
        is_row = [values[row] for row in rows] in (
            [right[row] for row in (*rows[1:], rows[0])], [right[row] for row in (rows[-1], *rows[:-1])],
        )  # fmt: skip
        message += "they are probably moved by one row" if is_row else f"they are probably {mixed}"
        listed = and_more([f'"{right[row]}"' for row in rows], _MOST_PLACES)
        hint = f"{check}, the values in the order of the file are {listed}"
    return Finding(message, subject.device_path(rows[0], key), hint, _places(subject, rows, key))


def _moved_among_servers(subject: Subject, moved: MovedRows, kind: _Kind) -> Finding:
    """Return the finding on rows of several servers that have the values of each other."""
    if moved.is_half:
        return _half_exchanged(subject, moved, kind)
    if not moved.step:
        return _changed_places(subject, moved.right, moved.rows, kind, "exchanged between the two servers")
    table, values, rows = subject.table, subject.table.column(kind.key), moved.rows
    is_up, owner = moved.step > 0, table.server_of_row
    lost, last = (rows[0], rows[-1]) if is_up else (rows[-1], rows[0])
    way, ends = ("down", ("last", "first")) if is_up else ("up", ("first", "last"))
    crossing = [row for row in rows if row != last and owner[row] != owner[row + moved.step]]
    said = ""
    if crossing:
        at = crossing[0] if is_up else crossing[-1]
        said = (
            f": device {table.device_ids[at]} of {named_server(subject, owner[at])} has {quoted(values[at])}, which belongs to the "
            f"{kind.noun} of {quoted(table.servers[owner[at + moved.step]].server_id)}"
        )
    right = f'"{kind.text(subject, moved.right[lost])}"'
    remedy = f"move these {kind.noun} {way} by one row, that of the {ends[0]} row to the {ends[1]} one"
    if moved.is_lost:
        said += f"{';' if said else ':'} {right}, which belongs to the {ends[1]} of these rows, is missing"
        remedy = f"move these {kind.noun} {way} by one row, write it in the {ends[1]} one, and leave out {quoted(values[last])} of the {ends[0]} one"
    return Finding(
        f"the {kind.key}s from {_end_of(subject, rows[0], 0)} to {_end_of(subject, rows[-1], -1)} are probably moved "
        f"{'up' if is_up else 'down'} by one row{said}",
        subject.device_path(rows[0], kind.key),
        f"{kind.command(subject, lost)}: if it is {right}, {remedy}",
        _places(subject, rows, kind.key),
    )


def _end_of(subject: Subject, row: int, place: int) -> str:
    """Return the name of the first or last row of several: a server, if the row is at its end."""
    table = subject.table
    index = table.server_of_row[row]
    name = named_server(subject, index)
    return name if table.servers[index].rows[place] == row else f"device {table.device_ids[row]} of {name}"


def _half_exchanged(subject: Subject, moved: MovedRows, kind: _Kind) -> Finding:
    """Return the finding on two servers that have exchanged one half of their values: nothing says which half it is."""
    table, rows, values = subject.table, moved.rows, subject.table.column(kind.key)
    one, other = (table.server_of_row[row] for row in (rows[0], rows[-1]))
    half = [str(table.device_ids[row]) for row in table.servers[one].rows if row in moved.right]
    rest = [row for row in table.servers[one].rows if row not in moved.right]
    others = listed_parts([str(table.device_ids[row]) for row in rest])
    return Finding(
        f"{named_server(subject, one)} and {named_server(subject, other)} have exchanged the {kind.noun} of half of their devices: either the "
        f"{kind.key}s of devices {listed_parts(half)}, or those of devices {others}, are exchanged",
        subject.device_path(rows[0], kind.key),
        f'{kind.command(subject, rows[0])}: if it is "{kind.text(subject, moved.right[rows[0]])}", exchange those of devices {listed_parts(half)}; '
        f"if it is {quoted(values[rows[0]])}, and {kind.command(subject, rest[0])} that is not {quoted(values[rest[0]])}, exchange the others",
        _places(subject, rows, kind.key),
    )


def _moved_rows(subject: Subject, order: Order, kind: _Kind) -> Iterator[Finding]:
    """Yield the runs of servers whose values are those of the next row, or of the row before."""
    servers, values = subject.table.servers, subject.table.column(kind.key)
    for runs, is_up in ((order.moved_up, True), (order.moved_down, False)):
        for begin, last in runs:
            at = servers[begin].rows[-1] if is_up else servers[begin + 1].rows[0]
            owner = servers[begin + 1].server_id if is_up else servers[begin].server_id
            rows = [
                row
                for index in range(begin, last + 1)
                for row in servers[index].rows[:: len(servers[index].rows) - 1]
            ]
            first = servers[begin].rows[0]
            direction = "up" if is_up else "down"
            yield Finding(
                f"the {kind.key}s from {named_server(subject, begin)} to {named_server(subject, last)} are probably moved "
                f"{direction} by one row: device {subject.table.device_ids[at]} there has {quoted(values[at])}, which belongs to the "
                f"{kind.noun} of {quoted(owner)}",
                subject.device_path(first, kind.key),
                f"move the {kind.noun} of these servers {'down' if is_up else 'up'} by one row, or write what each device has: "
                f"{kind.command(subject, first)}, and {kind.command(subject, at)}",
                _places(subject, rows, kind.key),
            )


@rule(
    "HCC632",
    "super-device-id-outside-order",
    "advice",
    formats=("1.2",),
    needs=("super_device_id", "device_id", "server_id"),
    source="the driver numbers the devices of a super pod; HCCL compares a rank's own id alone (topoinfo_ranktableConcise.cc)",
)
def super_device_id_outside_order(subject: Subject) -> Iterator[Finding]:
    """The super_device_ids of a few devices do not follow the order of all others: they are exchanged or stale.

    On a usual cluster the low 16 bits of a super_device_id are the device_id. If each server has the bits of all its
    devices in another order, a column was probably sorted alone. Two servers may also have those of each other.

    Base: 1.2 2x8
    Example: /server_list/0/device/2/super_device_id = "6"; /server_list/0/device/6/super_device_id = "2"
    Instead: table
    Hint: `npu-smi info -t spod-info -i 1 -c 0` on 10.0.0.1 shows the SDID of device 2: if it is "2", exchange the two
    """
    texts = subject.table.columns.get("super_device_id")
    numbers = super_device_numbers(subject) if texts is not None and None not in texts else [None]
    if None in numbers or not subject.damaged.isdisjoint(READ) or not are_in_place(subject):
        return
    if lost_sdid_digits(subject):
        yield from sdids_without_digit(subject)
        return
    if servers_in_text_order(subject):
        return  # HCC645 reports the device_ids.
    if moved := moved_device_ids(subject):
        yield _moved_ids(subject, moved)
        return
    if (among := moved_sdids(subject)) is not None:
        yield _moved_among_servers(subject, among, _SDID)
        return
    if (displaced := displaced_sdids(subject)) is not None:
        yield displaced
    known = cast("list[int]", numbers)  # None of them is None: no copy of a long list.
    order = order_of_sdids(subject)
    if (mixed := rows_of_other_bits(subject, known)) and (order is None or not order.groups):
        yield _mixed_sdids(subject, known, mixed)
        return
    if order is None:
        return
    yield from _moved_rows(subject, order, _SDID)
    for rows in order.groups:
        yield _changed_places(subject, order.expected, rows, _SDID)
    yield from _filled_on(subject, order, known)
    wrong = other_devices(subject, known) if order.single else {}
    above = is_used(subject)  # Then HCC528 reports rows with the value of the row above.
    single = [
        row for row in order.single if row in wrong and not (above and row and known[row] == known[row - 1])
    ]
    for row in single if len(single) <= _MOST_SINGLE and len(wrong) <= _MOST_SINGLE else ():
        yield Finding(
            f'super_device_id "{known[row]}" of device {subject.table.device_ids[row]} on '
            f"{named_server(subject, subject.table.server_of_row[row])} does not follow the order of the others: "
            f"its low 16 bits are {known[row] & DEVICE_BITS}, and on all others they are the device_id",
            subject.device_path(row, "super_device_id"),
            f'{how_super_device(subject, row)}: by the order of the others it is "{order.expected[row]}"',
        )


def _moved_ids(subject: Subject, moved: dict[int, list[int]]) -> Finding:
    """Return the finding on device_ids that follow neither the super_device_ids nor the addresses of their servers."""
    table, known = subject.table, super_device_numbers(subject)
    rows = next(iter(moved.values()))
    right = [(known[row] or 0) & DEVICE_BITS for row in rows]
    row, expected = rows[0], table.device_ips[rows[right.index(table.device_numbers[rows[0]] or 0)]]
    more = f" and {count(len(moved) - 1, 'other server')}" if len(moved) > 1 else ""
    listed = and_more([f'"{one}"' for one in right], _MOST_PLACES)
    write = (
        f"exchange the two device_ids: {listed}"
        if len(rows) == 2
        else f"write the device_ids {listed} in the order of the file"
    )
    return Finding(
        f"the device_ids of {_named(subject, rows)}{more} follow neither their super_device_ids nor their device_ips, which follow each "
        f"other: the device_ids are probably {'exchanged' if len(rows) == 2 else 'mixed up'}",
        subject.device_path(row, "device_id"),
        f"{how(subject, row)}: if it is {quoted(expected)}, and not {quoted(table.device_ips[row])}, {write}, and leave the other "
        f"columns{', in the other servers in the same way' if more else ''}; else write in each entry what the host shows for its device",
        _places(subject, rows, "device_id"),
    )


def _filled_on(subject: Subject, order: Order, known: Sequence[int]) -> Iterator[Finding]:
    """Yield the servers with super_device_ids outside the order of the others, whose low 16 bits are the device_id."""
    table = subject.table
    of_server: dict[int, list[int]] = {}
    for row in order.single:
        if known[row] & DEVICE_BITS == table.device_numbers[row]:
            of_server.setdefault(table.server_of_row[row], []).append(row)
    number = sum(map(len, of_server.values()))
    if len(table.servers) < 2 or number * _LEAST_FOLLOWING >= len(known):
        return
    for index, rows in of_server.items():
        first = rows[0]
        are_counted = all(row and known[row] == known[row - 1] + 1 for row in rows)
        if not are_counted and len(rows) > _MOST_SINGLE:
            continue
        why = ": they are counted on from the row above, as a spreadsheet does" if are_counted else ""
        listed = and_more([f'"{order.expected[row]}"' for row in rows], _MOST_PLACES)
        ids = listed_parts([str(table.device_ids[row]) for row in rows])
        yield Finding(
            f"the super_device_ids of {'device' if len(rows) == 1 else 'devices'} {ids} of {named_server(subject, index)} do not follow "
            f"the order of all others{why}",
            subject.device_path(first, "super_device_id"),
            f"{how_super_device(subject, first)}: if it is not {quoted(str(known[first]))}, write what the host shows; by the order of the "
            f"others the values are {listed}",
            _places(subject, rows, "super_device_id"),
        )


def _mixed_sdids(subject: Subject, known: Sequence[int], rows: list[int]) -> Finding:
    """Return the finding on servers whose super_device_ids are all there, and in another order than the device_ids."""
    table, row = subject.table, rows[0]
    index = table.server_of_row[row]
    number = len({table.server_of_row[one] for one in rows})
    more = f" and {count(number - 1, 'other server')}" if number > 1 else ""
    of_bits = {known[one] & DEVICE_BITS: known[one] for one in table.servers[index].rows}
    right = of_bits.get(table.device_numbers[row] or 0, sorted(known)[row])
    return Finding(
        f"the super_device_ids of {named_server(subject, index)}{more} are in another order than the device_ids: device "
        f'{table.device_ids[row]} has "{known[row]}", the low 16 bits of which are {known[row] & DEVICE_BITS}; a column was probably '
        "sorted alone",
        subject.device_path(row, "super_device_id"),
        f'{how_super_device(subject, row)}: if it is "{right}", give each device the super_device_id whose low 16 bits are its '
        "device_id; else correct the device_ids in the same way",
    )
