"""Servers whose list of devices runs on with those of the next one: what was between the two was lost. No rules are declared here.

A deletion of lines between two servers often leaves valid JSON: the end of one list and the head of the next entry are gone.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count, devices
from hccl_tools.records import NamedTuple
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, shared
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The fewest devices that a list has twice.
_LEAST_TWICE = 2
_READ = frozenset({"device_id", "device_ip", "server_id", "rank_id"})


class RunTogether(NamedTuple):
    """A list with the devices of two servers.

    Attributes:
        server: Its index.
        place: The place in its list at which the devices of the other server begin.
        first: The devices of the server that are lost.
        second: Those of the other server.
        mixed: The device of the other server whose values the entry before the place has; None if it has its own.
        has_twice: Whether the list has devices twice, so that HCC303 reports it.
        whole: The servers between the two that are lost as a whole.
    """

    server: int
    place: int
    first: list[int]
    second: list[int]
    mixed: int | None
    has_twice: bool
    whole: int = 0


@shared
def run_together(subject: Subject) -> RunTogether | None:
    """Return the only server whose list has the devices of the next one, too; None if it is not clear.

    All other servers have the same devices, and ``server_count`` counts more servers, or the list is longer than theirs.
    """
    table = subject.table
    if table.format not in SERVER_LIST or not subject.damaged.isdisjoint(_READ) or len(table.servers) < 2:
        return None
    ids = [tuple(table.device_numbers[row] for row in server.rows) for server in table.servers]
    usual = _usual(ids)
    if usual is None:
        return None
    others = [index for index, own in enumerate(ids) if own != usual]
    common = [number for number in usual if number is not None]
    is_in_order = len(common) == len(usual) and all(one < other for one, other in pairwise(common))
    if not is_in_order or len(others) > 1:
        return None
    found = (
        _with_twice(subject, others[0], ids[others[0]], common)
        if others
        else _with_other_ranks(subject, common)
    )
    ips = [table.device_ips[row] for row in table.servers[found.server].rows] if found is not None else []
    return found if len(set(ips)) == len(ips) else None


def _usual(ids: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...] | None:
    """Return the devices that all servers but one have; None if more than one differ."""
    numbers = Counter(ids)
    if len(numbers) > 2:
        return None
    return numbers.most_common(1)[0][0] if len(ids) > 2 else min(ids, key=len)


def _with_twice(
    subject: Subject, index: int, own: Sequence[int | None], common: list[int]
) -> RunTogether | None:
    """Return a list that goes up twice, with devices of the others."""
    known = [number for number in own if number is not None]
    falls = [place for place, (one, other) in enumerate(pairwise(known), 1) if other <= one]
    if len(falls) != 1 or len(known) < len(own) or len(known) <= len(common) or not {*known} <= {*common}:
        return None
    place = falls[0]
    if len({*known[:place]} & {*known[place:]}) < _LEAST_TWICE:
        return None
    second = _lacking(common, known[place:])
    mixed = _mixed(subject, index, place, second)
    return RunTogether(index, place, _lacking(common, known[:place]), second, mixed, has_twice=True)


def _with_other_ranks(subject: Subject, common: list[int]) -> RunTogether | None:
    """Return a list of all devices whose ranks are those of two servers; the second, or those up to it, are not listed."""
    table, ranks = subject.table, subject.table.rank_numbers
    text = table.declared.get("server_count")
    stated = read_uint(text) if isinstance(text, str) else None
    lost = 0 if stated is None else stated - len(table.servers)
    if lost < 1:
        return None
    found = list[RunTogether]()
    for index, server in enumerate(table.servers):
        bases = [(ranks[row] or 0) - place for place, row in enumerate(server.rows)]
        changes = [place for place, (one, other) in enumerate(pairwise(bases), 1) if one != other]
        if not changes:
            continue
        if len(changes) > 1 or bases[changes[0]] - bases[0] != lost * len(common):
            return None
        (place,) = changes
        parts = common[place:], common[:place]
        found.append(RunTogether(index, place, *parts, None, has_twice=False, whole=lost - 1))
    return found[0] if len(found) == 1 else None


def _lacking(common: list[int], own: Sequence[int]) -> list[int]:
    known = frozenset(own)
    return [number for number in common if number not in known]


def _mixed(subject: Subject, index: int, place: int, lost: list[int]) -> int | None:
    """Return the device of the second server whose rank the entry before it has; None if it has its own."""
    rows, ranks, ids = (
        subject.table.servers[index].rows,
        subject.table.rank_numbers,
        subject.table.device_numbers,
    )
    before, after = rows[place - 1], rows[place]
    device = (ids[after] or 0) - ((ranks[after] or 0) - (ranks[before] or 0))
    return device if device in lost else None


def how_to_part(subject: Subject, one: RunTogether) -> str:
    """Return the hint that parts a list of two servers, with the devices that are then missing."""
    own = named_server(subject, one.server)
    lost = [
        f"{devices(ids)} of {name}"
        for ids, name in ((one.first, own), (one.second, "the other server"))
        if ids
    ]
    if one.whole:
        lost[1:1] = [f"{count(one.whole, 'whole server')} between the two"]
    add = (
        f", and add what was lost: {' and '.join(lost)}, each with its own device_ip and rank_id"
        if lost
        else ""
    )
    row = subject.table.servers[one.server].rows[one.place - 1]
    mixed = (
        f"; device {subject.table.device_ids[row]} of {own} has the values of device {one.mixed} of the other server: write its own "
        "device_ip and rank_id"
        if one.mixed is not None
        else ""
    )
    return (
        f'write ] }}, {{ "server_id": "...", "device": [ in place of the comma before entry {one.place + 1} of the list, with '
        f"the address of the other host{add}{mixed}{_count_after(subject, one)}"
    )


def part_it(subject: Subject, one: RunTogether) -> str:
    """Return the hint of other rules on a list of two servers that HCC303 or HCC501 reports."""
    rule = "HCC303" if one.has_twice else "HCC501"
    return f"part the devices of {named_server(subject, one.server)}, which are those of two servers ({rule}){_count_after(subject, one)}"


def _count_after(subject: Subject, one: RunTogether) -> str:
    declared, number = subject.table.declared.get("server_count"), len(subject.table.servers) + 1 + one.whole
    if declared == str(number):
        return "; server_count is then right"
    return f'; and write "server_count": "{number}"' if declared is not None else ""


def listed_together(subject: Subject, one: RunTogether) -> Finding:
    """Return the finding on a list in which the devices of two servers are."""
    table, rows = subject.table, subject.table.servers[one.server].rows
    parts = [
        fold([number for row in own if (number := table.device_numbers[row]) is not None])
        for own in (rows[: one.place], rows[one.place :])
    ]
    return Finding(
        f"{named_server(subject, one.server)} lists devices {parts[0]} and then {parts[1]} with different addresses: the end of its list and "
        "the beginning of the next server were probably lost between the two",
        subject.device_path(rows[one.place]),
        how_to_part(subject, one),
        (Related(subject.device_path(rows[0], "device_id"), "the first list begins here"),),
    )
