"""Servers and devices that are copies of others, shared by several rules. This module declares no rules.

A copied entry repeats every id and address in it. One rule reports the copy, and the rules on single values leave
its rows out.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_columns import addresses_read, packed_addresses
from hccl_tools.rules.moved_entries import right_devices
from hccl_tools.rules.rank_restarts import restarts
from hccl_tools.rules.registry import shared
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.rules.registry import Subject
    from hccl_tools.table.model import Server

_COMPARED = frozenset({"device_id", "device_ip", "rank_id", "server_id", "pod_name"})


#: The devices of a group of a machine.
_GROUP = 4


class ServerCopy(NamedTuple):
    """A server whose devices repeat those of an earlier server.

    Attributes:
        first: The index of the earlier server.
        same_id: Whether its server_id is that of the earlier server, too.
        ranks: The ranks that no device has, if they are as many as the devices of the copy.
    """

    first: int
    same_id: bool
    ranks: tuple[int, ...]


@shared
def server_copies(subject: Subject) -> dict[int, ServerCopy]:
    """Return the servers that repeat the device_ids, device_ips and rank ids of an earlier server, by index."""
    table = subject.table
    if not subject.damaged.isdisjoint(_COMPARED) or len(table.servers) < 2 or table.format == "2.0":
        return {}
    if table.format == "group_list":
        texts = [ip for ip in table.device_ips if isinstance(ip, str)]
        repeats = len(set(texts)) < len(texts)
    else:
        repeats = not table.is_in_rank_order and len(set(table.rank_ids)) < len(table)
    if not repeats:
        return {}
    first: dict[Any, int] = {}
    repeated = {}
    for index, server in enumerate(table.servers):
        own = _devices(subject, server)
        if own and (seen := first.setdefault(own, index)) != index:
            repeated[index] = seen
    absent = absent_ranks(subject) if repeated else ()
    return {
        index: ServerCopy(
            seen,
            table.servers[index].server_id == table.servers[seen].server_id,
            absent if len(absent) == len(table.servers[index].rows) else (),
        )
        for index, seen in repeated.items()
    }


def _devices(subject: Subject, server: Server) -> tuple[Any, ...]:
    """Return what identifies the devices of a server; empty if they have no addresses of their own."""
    table, rows = subject.table, server.rows
    read, known = addresses_read(subject), packed_addresses(subject)
    ips = [tuple(read[row]) for row in rows]
    if not ips or not all(one and all(known[ip] for ip in one) for one in ips):
        return ()
    ranks = () if table.format == "group_list" else tuple(table.rank_ids[row] for row in rows)
    return (*(table.device_ids[row] for row in rows), *ips, *ranks)


@shared
def servers_again(subject: Subject) -> dict[int, int]:
    """Return the servers with the server_id, the devices and the addresses or SDIDs of an earlier one, with that one.

    Their ranks may be others: a list was joined with itself.
    """
    table = subject.table
    if _has_no_copies(subject) or not subject.damaged.isdisjoint(_COMPARED):
        return {}
    if len({server.server_id for server in table.servers}) == len(table.servers):
        return {}
    ids, ips, sdids = table.device_ids, table.device_ips, table.column("super_device_id")
    first: dict[Any, int] = {}
    found = {}
    for index, server in enumerate(table.servers):
        own = tuple((ids[row], _text(ips[row]), _text(sdids[row])) for row in server.rows)
        if not own or not server.server_id or not all(ip or sdid for _, ip, sdid in own):
            continue
        if (seen := first.setdefault((server.server_id, own), index)) != index:
            found[index] = seen
    return found


def _text(value: Any) -> str | None:
    """Return a value that is a string, None for others: a file may have an object in its place."""
    return value if isinstance(value, str) else None


def _has_no_copies(subject: Subject) -> bool:
    """Whether copied entries are not reported: the rules on them are on the formats with server_list."""
    return subject.is_version_1_1 or subject.table.format not in ("1.0", "1.2")


@shared
def instances_of_other_hosts(subject: Subject) -> dict[int, int]:
    """Return the instances with the server_id and the devices of an earlier one, with that one.

    They have other addresses, or the same ones where HCCL does not read them.
    """
    table = subject.table
    if table.format != "group_list" or not subject.damaged.isdisjoint(_COMPARED):
        return {}
    first: dict[str, int] = {}
    found, ids, ips = {}, table.device_numbers, table.device_ips
    for index, server in enumerate(table.servers):
        seen = first.setdefault(server.server_id, index)
        if seen == index:
            continue
        if len(table.servers[seen].rows) != len(server.rows):
            continue
        own, others = ({ids[row] for row in table.servers[one].rows} for one in (index, seen))
        known, texts = ({_text(ips[row]) for row in table.servers[one].rows} for one in (seen, index))
        is_copy = texts == known and index not in server_copies(subject)  # Else those rules report it.
        if own == others and (is_copy or texts.isdisjoint(known)):
            found[index] = seen
    return found


@shared
def names_of_hosts(subject: Subject) -> list[str] | None:
    """Return the server_ids of several entries if all these have the same devices with other addresses; None for others.

    They are different hosts, or one host before and after a change of its addresses.
    """
    table = subject.table
    if not subject.damaged.isdisjoint(_COMPARED):
        return None
    of_name: dict[str, list[int]] = {}
    for index, server in enumerate(table.servers):
        of_name.setdefault(server.server_id, []).append(index)
    found = {name: own for name, own in of_name.items() if len(own) > 1}
    is_each = all(are_other_hosts(subject, own) for own in found.values())
    return [*found] if found and is_each else None


def are_other_hosts(subject: Subject, indexes: Sequence[int]) -> bool:
    """Return whether servers have the same devices in the same order, and no address in common."""
    table, first = subject.table, subject.table.servers[indexes[0]].rows
    rows = [row for index in indexes for row in table.servers[index].rows]
    texts = {text for row in rows if (text := _text(table.device_ips[row]))}
    ids = [table.device_numbers[row] for row in first]
    return (
        len(texts) == len(rows)
        and bool(ids)
        and all([table.device_numbers[row] for row in table.servers[index].rows] == ids for index in indexes)
    )


@shared
def repeated_entries(subject: Subject) -> dict[int, int]:
    """Return the rows with the device_id and addresses of an earlier row of their server, and another rank, with that row."""
    table = subject.table
    if subject.is_version_1_1 or table.format == "2.0" or not subject.damaged.isdisjoint(_COMPARED):
        return {}
    ips, ids, known = table.device_ips, table.device_numbers, packed_addresses(subject)
    texts = [text for text in ips if isinstance(text, str) and text]
    if len(set(texts)) == len(texts):
        return {}
    left_out, found = copied_rows(subject), dict[int, int]()
    for server in table.servers:
        first: dict[Any, int] = {}
        for row in server.rows:
            text = ips[row]
            if row in left_out or not isinstance(text, str) or not text or not known[text.partition(",")[0]]:
                continue
            if (seen := first.setdefault((ids[row], text), row)) != row:
                found[row] = seen
    return found


@shared
def old_and_new(subject: Subject) -> dict[int, int]:
    """Return the rows with the device_id and rank_id of an earlier row of their server, with that row, and another address.

    The result is empty unless the ranks are 0 to N-1 without these rows: the old entry of a device was kept beside the new
    one.
    """
    table = subject.table
    if not subject.damaged.isdisjoint(_COMPARED) or "rank_id" not in table.columns:
        return {}
    ranks, ids, owner, ips = table.rank_numbers, table.device_numbers, table.server_of_row, table.device_ips
    first, found = dict[tuple[int, int | None, int | None], int](), dict[int, int]()
    for row, key in enumerate(zip(owner, ids, ranks, strict=True)):
        seen = first.setdefault(key, row)
        if seen != row and isinstance(ips[row], str) and ips[row] != ips[seen]:
            found[row] = seen
    rest = {number for row, number in enumerate(ranks) if row not in found}
    is_whole = rest == set(range(len(ranks) - len(found)))
    return found if is_whole and 2 * len(found) < len(ranks) else {}


@shared
def copied_rows(subject: Subject) -> frozenset[int]:
    """Return the rows of servers that are copies, and of devices that are copies of one of their server."""
    servers = subject.table.servers
    rows = {
        row for index in (*server_copies(subject), *servers_again(subject)) for row in servers[index].rows
    }
    return frozenset(rows | device_copies(subject).keys())


@shared
def device_copies(subject: Subject) -> dict[int, int]:
    """Return the rows that repeat the ids and addresses of an earlier row of their server, with that row."""
    table = subject.table
    if not subject.damaged.isdisjoint(_COMPARED) or table.format not in ("1.0", "1.2"):
        return {}
    ids, ips, ranks = table.device_ids, table.device_ips, table.rank_ids
    if table.is_in_rank_order or len(set(ranks)) == len(ranks):
        return {}
    found, whole = {}, server_copies(subject)
    for index, server in enumerate(table.servers):
        first: dict[Any, int] = {}
        for row in server.rows if index not in whole else ():
            if not isinstance(ips[row], str) or not ips[row]:
                continue
            seen = first.setdefault((ids[row], ips[row], ranks[row]), row)
            if seen != row:
                found[row] = seen
    return found


@shared
def surplus_rows(subject: Subject) -> frozenset[int]:
    """Return the rows of copies without which their servers are complete."""
    servers, copies = subject.table.servers, device_copies(subject)
    rows = {
        row for index, one in server_copies(subject).items() if one.same_id for row in servers[index].rows
    }
    for index in {subject.table.server_of_row[row] for row in copies}:
        own = servers[index].rows
        rest = [subject.table.device_numbers[row] for row in own if row not in copies]
        if set(rest) == set(range(len(rest))):
            rows |= {row for row in own if row in copies}
    return frozenset(rows | _repeated_beyond(subject))


def _repeated_beyond(subject: Subject) -> set[int]:
    """Return the entries that repeat a device of a server that lists all devices of a machine without them."""
    table = subject.table
    if max(map(len, map(attrgetter("rows"), table.servers)), default=0) - 1 not in WHOLE_MACHINES:
        return set()
    again = repeated_entries(subject)
    found = set[int]()
    for index in {table.server_of_row[row] for row in again}:
        rest = [row for row in table.servers[index].rows if row not in again]
        if len(rest) in WHOLE_MACHINES and {table.device_numbers[row] for row in rest} == set(
            range(len(rest))
        ):
            found |= {row for row in table.servers[index].rows if row in again}
    return found


@shared
def absent_ranks(subject: Subject) -> tuple[int, ...]:
    """Return the ranks below the number of devices that no device has; none for a group_list."""
    if subject.table.format == "group_list":
        return ()
    numbers = set(subject.table.rank_numbers)
    return tuple(rank for rank in range(len(subject.table)) if rank not in numbers)


def absent_devices(subject: Subject, rows: Sequence[int]) -> tuple[int, ...]:
    """Return the device ids that a server has to list by its number of devices, and does not list.

    Its devices are those of most other servers with as many, or begin at 0; if they are others, the result is empty.
    """
    found = _known_absent_devices(subject)
    key = (rows[0] if rows else 0, len(rows))  # a server may have as many findings as devices
    if key not in found:
        found[key] = _absent_devices(subject, rows)
    return found[key]


@shared
def _known_absent_devices(_subject: Subject) -> dict[tuple[int, int], tuple[int, ...]]:
    return {}


def _absent_devices(subject: Subject, rows: Sequence[int]) -> tuple[int, ...]:
    numbers, limit = {right_devices(subject)[row] for row in rows}, subject.product.device_limit
    known = {number for number in numbers if number is not None and number < limit}
    right = _usual_devices(subject).get(len(rows), set(range(min(len(rows), limit))))
    if len(rows) - 1 in WHOLE_MACHINES and known == set(range(len(rows) - 1)):
        return ()  # One entry too many on a machine of which all devices are listed.
    return tuple(sorted(right - numbers)) if right.issuperset(known) else ()


class LostDevices(NamedTuple):
    """Devices that few servers do not list, and all others do.

    Attributes:
        rows: The index of the server and the device_id of each, in the order of the file.
        of_server: The devices of each of these servers.
        why: The beginning of a phrase that says why they are lost; it ends with a blank.
    """

    rows: list[tuple[int, int]]
    of_server: dict[int, list[int]]
    why: str


@shared
def lost_devices(subject: Subject) -> LostDevices | None:
    """Return the devices that few servers do not list, and more than half of the servers do; None if there are none."""
    table = subject.table
    if not subject.damaged.isdisjoint(_COMPARED) or not table.servers:
        return None
    if len(table.servers) > 2 and table.devices_of_each is not None:
        return None
    numbers = table.device_numbers
    sets = [frozenset(numbers[row] for row in server.rows) for server in table.servers]
    if any(
        None in one or len(one) < len(server.rows) for one, server in zip(sets, table.servers, strict=True)
    ):
        return None
    usual, times = Counter(sets).most_common(1)[0]
    why = f"unlike the other {'nodes' if table.format == '2.0' else 'servers'}, "
    if len(sets) == 1 or (len(sets) == 2 and times == 1):
        usual = max(sets, key=len)
        if len(usual) not in WHOLE_MACHINES:
            usual = _without_gap(subject, usual)
        why = "" if len(sets) == 1 else why.replace("s, ", ", ")
    elif 2 * times <= len(sets):
        return None
    lost = [
        (index, device)
        for index, own in enumerate(sets)
        if own != usual and own < usual and len(usual - own) * 2 <= len(usual)
        for device in sorted(one for one in usual - own if one is not None)
    ]
    has_half = any(2 * len(own) == len(usual) for own in sets if own < usual)
    if has_half and len(absent_ranks(subject)) != len(lost):
        return None  # A half of the devices may be left out on purpose.
    others = [own for own in sets if own != usual and not own < usual]
    of_server: dict[int, list[int]] = {}
    for index, device in lost:
        of_server.setdefault(index, []).append(device)
    return LostDevices(lost, of_server, why) if lost and not others else None


def first_of_group(ids: Iterable[int]) -> int:
    """Return the first device of the group of four in which the lowest device is."""
    lowest = min(ids)
    return lowest - lowest % _GROUP


def _without_gap(subject: Subject, ids: frozenset[int | None]) -> frozenset[int | None]:
    """Return the devices from the first of their group of four on, or from 0 on, if some are not listed."""
    known = [number for number in ids if number is not None]
    if not known or max(known) >= subject.product.device_limit:
        return ids
    for first in (first_of_group(known), 0):
        if (whole := frozenset[int | None](range(first, max(known) + 1))) - ids:
            return whole
    return ids


@shared
def _usual_devices(subject: Subject) -> dict[int, set[int]]:
    """Return the devices that most servers with a number of devices have, each once."""
    ids, limit = right_devices(subject), subject.product.device_limit
    counts: dict[int, Counter[frozenset[int | None]]] = {}
    for server in subject.table.servers:
        own = frozenset(ids[row] for row in server.rows)
        if len(own) == len(server.rows) and all(number is not None and number < limit for number in own):
            counts.setdefault(len(own), Counter())[own] += 1
    return {
        size: {number for number in sets.most_common(1)[0][0] if number is not None}
        for size, sets in counts.items()
    }


@shared
def stand_ins(subject: Subject) -> dict[int, int]:
    """Return the servers with all ranks of an earlier server, and other addresses, with that server: spares of it."""
    table = subject.table
    if table.format == "2.0" or "rank_id" in subject.damaged or restarts(subject):
        return {}
    first: dict[tuple[int | None, ...], int] = {}
    found, copies = {}, server_copies(subject)
    for index, server in enumerate(table.servers):
        own = tuple(sorted(table.rank_numbers[row] or 0 for row in server.rows))
        seen = first.setdefault(own, index)
        is_other = table.servers[seen].server_id != server.server_id
        if own and seen != index and index not in copies and is_other and len(set(own)) == len(own):
            found[index] = seen
    return found if 2 * len(found) < len(table.servers) else {}


def other_copies(subject: Subject) -> dict[int, int]:
    """Return the servers that are listed again, if they are several or have ranks of their own, with the first ones."""
    again, copies = servers_again(subject), server_copies(subject)
    is_single = len(again) == 1 and all(index in copies for index in again)
    return {} if is_single else again


def named_server(subject: Subject, index: int) -> str:
    """Return the name of a server in messages: its number in the file, from 1, and its server_id."""
    return f"server {index + 1} ({quoted(subject.table.servers[index].server_id)})"


def what_a_copy_needs(subject: Subject, index: int) -> str:
    """Return the hint on a server that is a copy."""
    copy = server_copies(subject)[index]
    own = "device_ips" if not copy.same_id else "server_id, device_ips"
    if subject.table.format == "group_list":
        needs = own.replace("server_id, ", "pod_name, server_id, ")
        if has_same_pod(subject, index):
            needs = "pod_name and device_ips"
        remove = f"remove it{_without_instance(subject, index)}"
        return f"if it is in the job, give it its own {needs}; else {remove}"
    ranks = f" ({fold(copy.ranks)})" if copy.ranks else ""
    declared, number = subject.table.declared.get("server_count"), len(subject.table.servers)
    if declared == str(number - len(server_copies(subject))):
        again = ", number the ranks again without a gap" if _leave_gaps(subject) else ""
        return f"remove it{again}: server_count is then right; only if it stands for another server, give it its own {own} and rank ids{ranks}"
    return f"give it its own {own} and rank ids{ranks}, or remove it{_without(subject)}"


def has_same_pod(subject: Subject, index: int) -> bool:
    """Return whether a copied instance has the pod_name of the first one, and another server_id."""
    copy = server_copies(subject)[index]
    own, first = (subject.table.servers[one] for one in (index, copy.first))
    return (
        not copy.same_id
        and bool(own.fields.get("pod_name"))
        and own.fields.get("pod_name") == first.fields.get("pod_name")
    )


def _without_instance(subject: Subject, index: int) -> str:
    """Return by how much the counts of its group are to be lowered if a copied instance that they count is removed."""
    table, number = subject.table, len(subject.table.servers[index].rows)
    stated, place = table.declared.get("instance_count"), _group_of_each(subject).get(index)
    if not stated or place is None or stated[place] != str(len((table.groups or ())[place].servers)):
        return ""
    return f" and lower instance_count by 1 and device_count by {number}"


@shared
def _group_of_each(subject: Subject) -> dict[int, int]:
    return {index: place for place, group in enumerate(subject.table.groups or ()) for index in group.servers}


def _without(subject: Subject) -> str:
    """Return what changes if the copies are removed: the count, and the ranks if a gap is left."""
    servers, copies = subject.table.servers, server_copies(subject)
    declared = subject.table.declared.get("server_count")
    rest = str(len(servers) - len(copies))
    changes = [f'write "server_count": "{rest}"'] if declared is not None and declared != rest else []
    if _leave_gaps(subject):
        changes.append("number the ranks again without a gap")
    return "".join(f" and {one}" for one in changes)


@shared
def _leave_gaps(subject: Subject) -> bool:
    """Return whether the ranks are not 0 to N-1 without the copies."""
    copies, ranks = server_copies(subject), subject.table.rank_numbers
    rest = {
        ranks[row]
        for index, one in enumerate(subject.table.servers)
        if index not in copies
        for row in one.rows
    }
    return rest != set(range(len(rest)))
