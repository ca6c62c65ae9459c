"""Ranks that a program copied from the device_ids, and the ranks that servers have without gaps. This module declares no rules.

A table of the devices 4 to 7 of each server then has the ranks 4 to 7, and no rank 0. The remedy names the new ranks of
each server: a user who changes only the marked values gets a table that HCCL accepts, with the servers in another order.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.notation.phrases import and_more, devices
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import how_device, shown_host
from hccl_tools.rules.copies import LostDevices, absent_ranks, lost_devices
from hccl_tools.rules.rank_order import first_of_run, is_between, named_devices, named_host
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: The most servers of which a hint names the ranks.
_MOST_NAMED = 3
#: The most lost devices that a hint names.
_MOST_LOST = 4


class Copied(NamedTuple):
    """Ranks that follow from the device_ids.

    Attributes:
        base: By how much the ranks of the first server are higher than its device_ids.
        step: By how much more they are higher on each next server.
        repeats: Whether several devices have one rank.
    """

    base: int
    step: int
    repeats: bool

    def text(self) -> str:
        """Return the cause as a sentence."""
        more = f" plus {self.base}" if self.base else ""
        next_one = f" ({self.step} higher on each next server)" if self.step else ""
        return f"each rank_id is the device_id{more}{next_one}"


@shared
def copied_from_devices(subject: Subject) -> Copied | None:
    """Return how the ranks follow from the device_ids; None if they do not, or if that is right.

    In a correct table, the ranks of whole servers also follow from their device_ids. After the loss of a device,
    the remedy is another one.
    """
    table = subject.table
    if not subject.damaged.isdisjoint(("device_id", "rank_id")) or table.format == "group_list":
        return None
    ids, ranks, owner = table.device_numbers, table.rank_numbers, table.server_of_row
    offsets = dict[int, int]()
    for device, rank, index in zip(ids, ranks, owner, strict=True):
        if device is None or rank is None or rank < device:
            return None
        if offsets.setdefault(index, rank - device) != rank - device:
            return None
    if len(offsets) < len(table.servers) or len({*zip(owner, ids, strict=True)}) < len(ids):
        return None
    of_each = [offsets[index] for index in sorted(offsets)]
    step = of_each[1] - of_each[0] if of_each[1:] else 0
    if not of_each or step < 0 or of_each != [of_each[0] + step * place for place in range(len(of_each))]:
        return None
    found = Copied(of_each[0], step, len({*ranks}) < len(ranks))
    return found if not _are_whole(subject, found) and not _is_short(subject) else None


def _are_whole(subject: Subject, copied: Copied) -> bool:
    """Return whether each server lists the devices from 0 on, and the ranks repeat or follow each other."""
    servers = range(len(subject.table.servers))
    if any({*_devices(subject, index)} != {*range(len(_devices(subject, index)))} for index in servers):
        return False
    stated, ranks = subject.table.declared.get("server_count"), subject.table.rank_numbers
    is_lost = len(subject.table.servers[0].rows) in WHOLE_MACHINES or (stated or "") != str(len(servers))
    is_run = {*ranks} == {*range(copied.base, copied.base + len(ranks))}
    return copied.repeats or is_run or (is_lost and subject.table.format != "2.0")


def _is_short(subject: Subject) -> bool:
    """Return whether a few devices are probably lost, and not half of those that a server should have."""
    lost, servers = lost_devices(subject), subject.table.servers
    if lost is None:
        return False
    if len(servers) == 1:
        return 2 * len(lost.rows) < len(servers[0].rows)
    return subject.product.even_servers or all(
        len(own) < len(servers[index].rows) for index, own in lost.of_server.items()
    )


def _devices(subject: Subject, index: int) -> list[int]:
    numbers = subject.table.device_numbers
    return [number for row in subject.table.servers[index].rows if (number := numbers[row]) is not None]


def gap(subject: Subject, copied: Copied, absent: str) -> Finding:
    """Return the finding on ranks that follow from the device_ids and have a gap; ``absent`` names the ranks of no device."""
    numbers, choices = subject.table.rank_numbers, _others(subject, copied)
    wrong = next((row for row, number in enumerate(numbers) if (number or 0) >= len(numbers)), 0)
    only = "if the job uses only the listed devices, " if choices else ""
    number = f"number the ranks 0 to {len(numbers) - 1}: " if numbers[1:] else ""
    return Finding(
        f"{absent}: {copied.text()}, but ranks are counted from 0 without a gap",
        subject.device_path(wrong, "rank_id"),
        "; ".join([f"{only}{number}{new_ranks(subject)}", *choices]),
    )


def repeated(subject: Subject, copied: Copied) -> Finding:
    """Return the finding on ranks that are the device_ids on each of several servers."""
    numbers, first = subject.table.rank_numbers, dict[int | None, int]()
    again = next(row for row, number in enumerate(numbers) if first.setdefault(number, row) != row)
    seen = first[numbers[again]]
    return Finding(
        f"{copied.text()}, and several servers have {rank_list([numbers[again] or 0])} and others",
        subject.device_path(again, "rank_id"),
        f"number the ranks 0 to {len(numbers) - 1} over all servers: {new_ranks(subject)}",
        (Related(subject.device_path(seen, "rank_id"), "first used here"),),
    )


def _others(subject: Subject, copied: Copied) -> list[str]:
    """Return the other choices for such ranks: what may be missing in the table, and its ranks."""
    absent, servers = absent_ranks(subject), subject.table.servers
    choices = [rest] if (rest := _rest(subject, copied)) else []
    if not choices and absent == tuple(range(len(absent))) and first_of_run(subject.table.rank_numbers):
        choices.append(
            f"if the devices with {rank_list(range(first_of_run(subject.table.rank_numbers)))} are missing, add them"
        )
    is_one = {len(server.rows) for server in servers} == {len(absent)} and 0 not in absent
    if is_one and len(servers) > 1 and is_between(subject, absent):
        choices.append(f"if the server with {rank_list(absent)} was lost, add it again")
    return choices


def _rest(subject: Subject, copied: Copied) -> str:
    """Return the choice to add the devices with which the ranks have no gap; "" if there are none."""
    servers = subject.table.servers
    lists = [_devices(subject, index) for index in range(len(servers))]
    whole = copied.step or max(map(max, lists)) + 1
    if copied.base or whole > subject.product.device_limit or max(map(max, lists)) >= whole:
        return ""
    rests = {index: {*range(whole)}.difference(own) for index, own in enumerate(lists)}
    short = [index for index, rest in rests.items() if rest]
    if len({frozenset(rests[index]) for index in short}) != 1:
        return ""
    rest = sorted(rests[short[0]])
    ranks = rank_list([index * copied.step + one for index in short[:_MOST_NAMED] for one in rest])
    names = [named_host(subject, index) for index in short[:_MOST_NAMED]]
    where = and_more(names, _MOST_NAMED, unlisted=len(short) - len(names))
    if 1 < len(short) == len(servers):
        where = "each node" if subject.table.format == "2.0" else "each server"
    many = len(rest) * len(short) > 1
    what = f"device{'s' if rest[1:] else ''} {fold(rest)} of {where}"
    return f"if it also uses {what}, add {'them' if many else 'it'} with {ranks}{' and so on' if short[_MOST_NAMED:] else ''}{_addresses(subject, short[0], rest[0], many=many)}"


def _addresses(subject: Subject, index: int, device: int, *, many: bool) -> str:
    """Return how to find the addresses of devices that are not listed, of which the first is given."""
    if subject.table.format == "2.0":
        return (
            f" (`hccl-tools gen` on {shown_host(subject.table.servers[index].server_id)} prints the entries)"
        )
    what, which = ("their addresses", "the first") if many else ("its address", "it")
    return f", and with {what} ({how_device(subject, index, device)} shows {which})"


def add_lost(subject: Subject, lost: LostDevices, ranks: tuple[int, ...]) -> str:
    """Return the hint to add lost devices with the ranks that no device has."""
    servers = subject.table.servers
    index, device = lost.rows[0]
    if subject.table.format == "2.0":
        shown = [
            f"{named_host(subject, index)} has no device {device}: add the entry of rank {rank}"
            for rank, (index, device) in islice(zip(ranks, lost.rows, strict=True), _MOST_LOST)
        ]
        how = f"`hccl-tools gen` on {shown_host(servers[index].server_id)} prints {'it' if len(ranks) == 1 else 'the first'}"
    else:
        shown = [
            f"{named_host(subject, index)} has no device {device}: add it with rank {rank} and its address"
            for rank, (index, device) in islice(zip(ranks, lost.rows, strict=True), _MOST_LOST)
        ]
        how = f"{how_device(subject, index, device)} shows {'it' if len(ranks) == 1 else 'the first'}"
        if len(ranks) > 1 and len(lost.of_server) == 1:
            named, own = named_host(subject, index), devices([device for _, device in lost.rows])
            shown = [f"{named} has no {own}: add them with {rank_list(ranks)} and their addresses"]
            return f"{lost.why}{shown[0]} ({how})"
    return f"{lost.why}{and_more(shown, _MOST_LOST, unlisted=len(ranks) - len(shown))} ({how})"


def new_ranks(subject: Subject) -> str:
    """Return the ranks of the servers that change if all are numbered without a gap, in the order of their ranks.

    If ranks are there twice, the order is that of the file, and all servers are named.
    """
    table, numbered = subject.table, _numbered(subject)
    if len(table.servers) == 1:
        has = "have" if numbered[1:] else "has"
        return f"{named_devices(subject, [*table.servers[0].rows])} {has} {rank_list(numbered)}"
    is_each_once = len({*table.rank_numbers}) == len(numbered)
    changed = [
        index
        for index, server in enumerate(table.servers)
        if not is_each_once or any(numbered[row] != table.rank_numbers[row] for row in server.rows)
    ]
    shown = [
        f"{named_host(subject, index)} has {rank_list([numbered[row] for row in table.servers[index].rows])}"
        for index in changed[:_MOST_NAMED]
    ]
    return and_more(shown, _MOST_NAMED, unlisted=len(changed) - len(shown))


@shared
def _numbered(subject: Subject) -> list[int]:
    """Return the rank of each row if the ranks are numbered without a gap."""
    numbers, owner = subject.table.rank_numbers, subject.table.server_of_row
    is_each_once = len({*numbers}) == len(numbers)
    order = sorted(
        range(len(numbers)), key=lambda row: (0 if is_each_once else owner[row], numbers[row] or 0)
    )
    found = [0] * len(numbers)
    for rank, row in enumerate(order):
        found[row] = rank
    return found
