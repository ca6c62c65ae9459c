"""Rules on device ids."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.notation.phrases import NAME_THE_CHIP, and_more, devices
from hccl_tools.rules import right_texts
from hccl_tools.rules.commands import address_query, how, how_device, shown_host
from hccl_tools.rules.copies import (
    absent_devices,
    copied_rows,
    instances_of_other_hosts,
    named_server,
    old_and_new,
    repeated_entries,
)
from hccl_tools.rules.joined_groups import repeated_group
from hccl_tools.rules.moved_entries import (
    exchange,
    is_listed_twice,
    owners,
    right_devices,
    with_address_as_id,
)
from hccl_tools.rules.numbers import as_read, is_sloppy
from hccl_tools.rules.registry import LEGACY, SERVER_LIST, Finding, Subject, rule, shared, shared_each
from hccl_tools.rules.run_together import listed_together, run_together
from hccl_tools.rules.surplus_devices import (
    GROUP_LIST_LIMIT,
    pasted_devices,
    surplus_devices,
    why_surplus,
    without_surplus,
)
from hccl_tools.rules.topology import device_sets, rows_by_server
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.registry import Found


def _limit(subject: Subject) -> int:
    return GROUP_LIST_LIMIT if subject.table.format == "group_list" else subject.product.device_limit


@shared
def _all_in_range(subject: Subject) -> bool:
    right = range(_limit(subject))
    ids: set[Any] = set(right) if subject.table.format == "2.0" else set(map(str, right))
    return ids.issuperset(subject.table.device_ids)


@rule(
    "HCC301",
    "device-id-no-number",
    "refused",
    needs=("device_id",),
    source="topoinfo_ranktableConcise.cc:423",
)
def device_id_no_number(subject: Subject) -> Iterator[Finding]:
    """A device id is not a number that HCCL can read.

    Example: /server_list/0/device/1/device_id = "npu1"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: write "1", the device that the server does not list
    """
    if _all_in_range(subject):
        return
    alike = dict[str, tuple[str, str]]()
    for row, number in enumerate(subject.table.device_numbers):
        if number is None or number < 0:
            value = subject.table.device_ids[row]
            finding = Finding(
                f"device id {as_read(value, None) if isinstance(value, str) else value} is not a whole number (0, 1, 2, ...)",
                subject.device_path(row, "device_id"),
                _right_device(subject, row),
            )
            if _are_in_names(subject):
                yield right_texts.without_name(finding, value, "device_id", alike)
                continue
            yield right_texts.named(finding, value, right_texts.is_number)


@shared
def _are_in_names(subject: Subject) -> bool:
    """Whether the device_ids without the names beside their numbers are devices, each once on its server."""
    table = subject.table
    read = zip(table.device_ids, table.device_numbers, strict=True)
    numbers = [right_texts.number_in(text) if number is None else number for text, number in read]
    pairs = set(zip(table.server_of_row, numbers, strict=True))
    return len(pairs) == len(numbers) and all(
        one is not None and 0 <= one < _limit(subject) for one in numbers
    )


def _right_device(subject: Subject, row: int) -> str:
    table = subject.table
    absent = absent_devices(subject, table.servers[table.server_of_row[row]].rows)
    if len(absent) == 1:
        value = absent[0] if table.format == "2.0" else f'"{absent[0]}"'
        return f"write {value}, the device that the server does not list"
    return f"write the physical device id, 0 to {_limit(subject) - 1}"


@rule(
    "HCC302",
    "device-id-too-high",
    "refused",
    needs=("device_id",),
    source="topoinfo_ranktableConcise.cc:420-444, device_capacity.cc:238",
)
def device_id_too_high(subject: Subject) -> Iterator[Finding]:
    """A device id is higher than the highest device id of the product.

    Example: /server_list/0/device/1/device_id = "8"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: write the physical device id, 0 to 7
    """
    if _all_in_range(subject):
        return
    limit, ids, surplus = _limit(subject), right_devices(subject), surplus_devices(subject)
    if (from_one := _counted_from_one(subject, limit)) is not None:
        yield from_one
        return
    where = "a group_list" if subject.table.format == "group_list" else subject.product.title
    rest = f"{where} has devices 0 to {limit - 1}"
    for index, server in enumerate(subject.table.servers):
        wrong = [row for row in server.rows if (number := ids[row]) is not None and number >= limit]
        if wrong and index in surplus:
            message = f'device id "{subject.table.device_ids[wrong[0]]}" is too high: {rest}, and {named_server(subject, index)} lists all of them'
            path = subject.device_path(wrong[0], "device_id")
            yield Finding(message, path, without_surplus(subject, index))
            continue
        hint = _right_id(subject, server.rows, limit) if wrong else ""
        for row in wrong:
            finding = Finding(
                f'device id "{subject.table.device_ids[row]}" is too high: {rest}',
                subject.device_path(row, "device_id"),
                hint,
                alike=(f"device ids are too high: {rest}", hint),
            )
            is_address = with_address_as_id(subject).get(row) == "device_id"
            yield exchange(finding, "device_id") if is_address else finding


def _right_id(subject: Subject, rows: Sequence[int], limit: int) -> str:
    """Return the hint on devices with ids that are too high for the product."""
    numbers = {subject.table.device_numbers[row] for row in rows}
    absent = absent_devices(subject, rows)
    if subject.product_is_assumed and len(rows) > limit and numbers == set(range(len(rows))):
        return NAME_THE_CHIP  # All devices of a machine with more of them.
    if len(absent) == 1 and len(rows) == limit:
        return f'write "{absent[0]}", the device that the server does not list'
    if rows[0] and _are_ranks(subject):
        return (
            "the device_ids are the ranks, and each server numbers its devices itself: write 0 to "
            f"{len(rows) - 1} on each server, if it has these devices"
        )
    other = f"or {NAME_THE_CHIP}" if subject.product_is_assumed else f"0 to {limit - 1}"
    return f"write the physical device id, {other}"


@shared
def _are_ranks(subject: Subject) -> bool:
    """Whether the device_ids are the ranks, from 0 on over all servers."""
    ranks = subject.table.columns.get("rank_id")
    return ranks is not None and ranks == subject.table.device_ids and subject.table.is_in_rank_order


def _counted_from_one(subject: Subject, limit: int) -> Finding | None:
    """Return the finding on devices that are numbered from 1 on each server with an id that is too high."""
    table = subject.table
    wrong = [
        server
        for server in table.servers
        if any((number := table.device_numbers[row]) is not None and number >= limit for row in server.rows)
    ]
    if not wrong or not all(
        sorted(table.device_numbers[row] or 0 for row in server.rows) == list(range(1, limit + 1))
        for server in wrong
    ):
        return None
    row = next(row for row in wrong[0].rows if table.device_numbers[row] == limit)
    names = (
        ""
        if len(wrong) == len(table.servers)
        else f" of {and_more([quoted(one.server_id) for one in wrong])}"
    )
    return Finding(
        f"the device ids{names} go from 1 to {limit}: HCCL counts devices from 0",
        subject.device_path(row, "device_id"),
        f"subtract 1 from each device_id{names}, so that they go from 0 to {limit - 1}",
    )


@rule(
    "HCC303",
    "duplicate-device-id",
    "refused",
    code="EI0014",
    formats=LEGACY,
    needs=("device_id", "server_id"),
    stage="topology",
    source="topoinfo_parse.cc:165",
)
def duplicate_device_id(subject: Subject) -> Iterator[Found]:
    """Two entries of one server have the same device id.

    HCCL reads device ids as numbers: "1" and "01" are the same device.

    Example: /server_list/0/device/1/device_id = "0"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: write "1" as the device_id of the right one of the two; `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    table = subject.table
    numbers = right_devices(subject)
    plain = set(table.device_ids) <= set(map(str, range(_limit(subject))))
    first: dict[str, dict[int | None, int]] = {}
    if (
        plain
        and not owners(subject)
        and not instances_of_other_hosts(subject)
        and all(len(set(ids)) == len(ids) for ids in set(device_sets(subject).values()))
    ):
        return
    if "device_id" in with_address_as_id(subject).values():
        return  # HCC302 reports it.
    yield from _entries_of_others(subject)
    # HCC404 reports the entries that repeat the address, too.
    copied = copied_rows(subject) | owners(subject).keys() | repeated_entries(subject).keys()
    yield from _same_id_of_instances(subject)
    of_others = {row for index in instances_of_other_hosts(subject) for row in table.servers[index].rows}
    copied |= of_others | old_and_new(subject).keys() | pasted_devices(subject).keys()
    yield from _old_and_new(subject)
    again: dict[tuple[str, int], list[int]] = {}
    for server in table.servers:
        if server.server_id in first and (table.format in SERVER_LIST or not server.server_id):
            continue  # Two servers with one server_id: HCC503 reports the cause, and HCC502 empty ones.
        seen = first.setdefault(server.server_id, {})
        if (size := _size_of_first(subject, server.rows)) and copied.isdisjoint(server.rows):
            absent = _begun_again(subject, server.rows, size)
            yield (
                _numbered_again(subject, server.rows, absent)
                if absent
                else _joined_servers(subject, server.rows, size)
            )
            continue
        if (both := run_together(subject)) is not None and table.servers[both.server] is server:
            if both.has_twice:
                yield listed_together(subject, both)
            continue
        for row in server.rows:
            number = numbers[row]
            if number is not None and row not in copied and seen.setdefault(number, row) != row:
                again.setdefault((server.server_id, number), []).append(row)
    for (name, number), rows in again.items():
        yield _repeated(subject, name, number, [first[name][number], *rows])


def _old_and_new(subject: Subject) -> Iterator[Finding]:
    """Yield the devices of which the old entry was kept beside the new one."""
    table = subject.table
    for row, seen in old_and_new(subject).items():
        index = table.server_of_row[row]
        yield Finding(
            f"device {table.device_ids[row]} of server {quoted(table.servers[index].server_id)} is listed twice, with the addresses "
            f"{table.device_ips[seen]} and {table.device_ips[row]}: the old entry was probably kept beside the new one",
            subject.device_path(row, "device_id"),
            f"keep the entry with the address that the device has, and remove the other one: {how(subject, row)}",
            (Related(subject.device_path(seen, "device_id"), "first used here"),),
        )


#: The fewest devices that a list has of each of several servers.
_LEAST_OF_SERVER = 2


def _size_of_first(subject: Subject, rows: Sequence[int]) -> int:
    """Return the number of devices after which a list begins with the same devices again; 0 for other lists."""
    if subject.table.format not in SERVER_LIST or not rows:
        return 0
    ids = [subject.table.device_numbers[row] for row in rows]
    size = next((place for place in range(1, len(ids)) if ids[place] == ids[0]), 0)
    is_whole = size >= _LEAST_OF_SERVER and len(ids) % size == 0 and len(set(ids[:size])) == size
    ips = [subject.table.device_ips[row] for row in rows]
    return size if is_whole and ids == ids[:size] * (len(ids) // size) and len(set(ips)) == len(ips) else 0


def _begun_again(subject: Subject, rows: Sequence[int], size: int) -> list[int]:
    """Return the devices that the second half of a list stands for; empty if it may be that of another server.

    The servers are counted right, and each of the others has as many devices as the whole list.
    """
    table = subject.table
    is_counted = table.declared.get("server_count") == str(len(table.servers))
    if len(rows) != 2 * size or len(table.servers) < 2 or not is_counted or not _have_equal_sizes(subject):
        return []
    other = table.servers[1 if table.server_of_row[rows[0]] == 0 else 0]
    first = {table.device_numbers[row] for row in rows[:size]}
    listed = sorted(number for row in other.rows if (number := table.device_numbers[row]) is not None)
    absent = [number for number in listed if number not in first]
    return absent if len({*listed}) == len(rows) and len(absent) == size else []


@shared
def _have_equal_sizes(subject: Subject) -> bool:
    return len({len(server.rows) for server in subject.table.servers}) == 1


def _numbered_again(subject: Subject, rows: Sequence[int], absent: Sequence[int]) -> Finding:
    """Return the finding on a list whose second half is numbered as its first one, as in another container."""
    table, size = subject.table, len(absent)
    index = table.server_of_row[rows[0]]
    listed = fold(sorted(table.device_numbers[row] or 0 for row in rows[:size]))
    return Finding(
        f"server {quoted(table.servers[index].server_id)} lists devices {listed} twice with different addresses, and "
        f"{devices(absent)} not at all: the second half was probably numbered again, as in a container with devices of its own",
        subject.device_path(rows[size], "device_id"),
        f"write {absent[0]} to {absent[-1]} as the device_ids of the second half; {how_device(subject, index, absent[0])} shows "
        f"the address of device {absent[0]}, which is then {quoted(str(table.device_ips[rows[size]]))}",
        (Related(subject.device_path(rows[0], "device_id"), "first used here"),),
    )


def _joined_servers(subject: Subject, rows: Sequence[int], size: int) -> Finding:
    """Return the finding on a list of devices that has those of several servers."""
    table = subject.table
    number = len(rows) // size
    server = table.servers[table.server_of_row[rows[0]]].server_id
    times = "twice" if number == 2 else f"{number} times"
    listed = fold(sorted(one or 0 for one in {table.device_numbers[row] for row in rows[:size]}))
    where = (
        f"entry {size + 1}"
        if number == 2
        else f"entries {', '.join(str(size * one + 1) for one in range(1, min(number, 4)))}"
    )
    is_counted = table.declared.get("server_count") == str(len(table.servers) + number - 1)
    then = "; server_count is then right" if is_counted else ", and count it in server_count"
    return Finding(
        f"server {quoted(server)} lists devices {listed} {times} with different addresses: the list has the devices of "
        f"{'another server' if number == 2 else 'other servers'}, too",
        subject.device_path(rows[size]),
        f'write ] }}, {{ "server_id": "...", "device": [ in place of the comma before {where} of the list, with the address of the host{then}',
        (Related(subject.device_path(rows[0], "device_id"), "first used here"),),
    )


def _same_id_of_instances(subject: Subject) -> Iterator[Found]:
    """Yield the instances of a group_list that have the server_id of another host."""
    for index, seen in instances_of_other_hosts(subject).items():
        if index not in repeated_group(subject):  # Else HCC513 reports the group.
            yield partial(_same_id, subject, index, seen)


def _same_id(subject: Subject, index: int, seen: int) -> Finding:
    servers, ips = subject.table.servers, subject.table.device_ips
    names = [quoted(str(servers[one].fields.get("pod_name", one + 1))) for one in (seen, index)]
    row = servers[index].rows[0]
    if ips[row] == ips[servers[seen].rows[0]]:
        return _instance_again(subject, index, seen, names)
    return Finding(
        f"instances {names[0]} and {names[1]} both have server_id {quoted(servers[index].server_id)}, and the same devices "
        "with different addresses: one of them runs on another host",
        subject.server_path(index, "server_id"),
        f"write the server_id of the host of each: `kubectl get pods -o wide` shows it; {how(subject, row)}, if "
        f"it is {quoted(ips[row])}, {names[0]} has the wrong one",
        (Related(subject.server_path(seen, "server_id"), "the other one"),),
    )


def _instance_again(subject: Subject, index: int, seen: int, names: list[str]) -> Finding:
    """Return the finding on an instance with the server_id, the devices and the addresses of an earlier one."""
    server = subject.table.servers[index]
    host = server.server_id[:64]
    return Finding(
        f"instances {names[0]} and {names[1]} have the same devices of server {quoted(server.server_id)}: one was probably copied",
        subject.server_path(index, "server_id"),
        f"write in {names[1]} the device_ids and device_ips of its own devices (`hccn_tool -i N {address_query(subject)}` on {shown_host(host)} shows the address of "
        f"device N), with the server_id of its host if that is another one (`kubectl get pods -o wide` shows it); if {names[1]} is the same "
        "instance again, remove it and correct the counts",
        (Related(subject.server_path(seen, "server_id"), "the other one"),),
    )


def _entries_of_others(subject: Subject) -> Iterator[Finding]:
    """Yield the entries of one server that are in the list of another one, which then has a device twice."""
    table = subject.table
    for row, index in owners(subject).items() if is_listed_twice(subject) else ():
        here, there = (quoted(table.servers[one].server_id) for one in (table.server_of_row[row], index))
        ranks = (table.rank_numbers[one] for one in table.servers[index].rows)
        listed = rank_list(sorted(number for number in ranks if number is not None))
        yield Finding(
            f"this entry, device {table.device_ids[row]} with {subject.rank_name(row)}, is in the list of server {here} and "
            f"belongs to server {there}, which has {listed} and does not list this device",
            subject.device_path(row),
            f"move the entry to the list of server {there}",
        )


def _repeated(subject: Subject, server_id: str, number: int, rows: list[int]) -> Finding:
    """Return the finding on a device that a server lists several times; the device that is missing is named."""
    listed = rows_by_server(subject)[server_id]
    absent = absent_devices(subject, listed)
    surplus = surplus_devices(subject).get(subject.table.server_of_row[rows[0]])
    if surplus is not None and surplus.row == rows[0] and surplus.twin is None:
        rows = [rows[1], rows[0]]  # The entry of another server is before that of the server itself.
    times = "twice" if len(rows) == 2 else f"{len(rows)} times"
    message = f"device {number} occurs {times} on server {quoted(server_id)}"
    if absent:
        message += f", {devices(absent)} not at all"
    elif surplus is not None:
        message += f": {why_surplus(subject, subject.table.server_of_row[rows[0]])}"
    sloppy = [row for row in rows if is_sloppy(subject.table.device_ids[row], number)]
    if sloppy:
        message += f": {as_read(str(subject.table.device_ids[sloppy[0]]), None)} is read as {number}"
    wrong = _by_order(subject, listed, absent[0], rows) if len(absent) == len(rows) - 1 == 1 else None
    wrong = sloppy[0] if wrong is None and sloppy else wrong
    first = wrong if wrong == rows[0] else rows[1]
    return Finding(
        message,
        subject.device_path(first, "device_id"),
        _right_repeated(subject, listed, absent, number, rows),
        (
            Related(subject.device_path(rows[0], "device_id"), "first used here")
            if first == rows[1]
            else Related(subject.device_path(rows[1], "device_id"), "and used here"),
        ),
        alike=_several_repeated(subject, server_id),
    )


@shared_each
def _several_repeated(subject: Subject, server_id: str) -> tuple[str, str] | None:
    """Return message and hint on all devices of a server that it lists several times; None for one device.

    A server may have as many findings as devices.
    """
    listed = rows_by_server(subject)[server_id]
    absent = absent_devices(subject, listed)
    again = Counter(subject.table.device_numbers[row] for row in listed)
    several = sorted(number for number, times in again.items() if number is not None and times > 1)
    if len(several) <= 1 or not absent:
        return None
    message = (
        f"{devices(several)} occur more than once on server {quoted(server_id)}, {devices(absent)} not at all"
    )
    hint = f"number the devices of the server: each of {fold(sorted({*several, *absent, *(one for one in again if one is not None)}))} once"
    if [again[number] for number in several] == [2] * len(several) == [2] * len(again):
        hint += "; a card may have two devices, each with a number of its own: `npu-smi info -m` shows them"
    return message, hint


def _by_order(subject: Subject, listed: Sequence[int], absent: int, rows: list[int]) -> int | None:
    """Return the one of two rows with which the devices of a server are in order after a correction; None if not one is."""
    numbers = subject.table.device_numbers
    fitting = []
    for row in rows:
        ids = [absent if one == row else numbers[one] or 0 for one in listed]
        fitting += [row] if ids == sorted(ids) else []
    return fitting[0] if len(fitting) == 1 and len(listed) > len(rows) else None


def _right_repeated(
    subject: Subject, listed: Sequence[int], absent: tuple[int, ...], number: int, rows: list[int]
) -> str:
    """Return the hint on a device that a server lists several times."""
    shown = "" if subject.table.device_ips[rows[0]] is None else f"; {how(subject, rows[0])}"
    if len(absent) == len(rows) - 1 == 1:
        if (wrong := _by_order(subject, listed, absent[0], rows)) is not None:
            which = "first" if wrong == rows[0] else "second"
            index = subject.table.server_of_row[wrong]
            check = (
                ""
                if not shown
                else f"; {how_device(subject, index, absent[0])} shows the address of device {absent[0]}"
            )
            return f'write "{absent[0]}" as the device_id of the {which} of the two, by the order of the entries{check}'
        return f'write "{absent[0]}" as the device_id of the right one of the two{shown}'
    if absent:
        return f"number the devices of the server: each of 0 to {max(*absent, number)} once{shown}"
    if (index := subject.table.server_of_row[rows[0]]) in surplus_devices(subject):
        return without_surplus(subject, index)
    if len(listed) > _limit(subject) or len(listed) - 1 in WHOLE_MACHINES:
        then = (
            "correct device_count"
            if subject.table.format == "group_list"
            else "number the ranks without a gap"
        )
        return f"remove the surplus entry, and {then}{shown}"
    return f"write the device_id that each entry has on its host{shown}"
