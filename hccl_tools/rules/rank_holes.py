"""The places at which ranks are missing in a table whose ranks go up. This module declares no rules.

HCCL finds that the last ranks are too high. The entries that are missing stood before the first rank after the hole.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.number_list import fold, holes_in, rank_list
from hccl_tools.records import NamedTuple
from hccl_tools.rules.copies import lost_devices
from hccl_tools.rules.rank_order import named_devices, named_host
from hccl_tools.rules.registry import shared
from hccl_tools.rules.value_order import number_at_end

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: The most holes of which each is named.
_MOST = 3


class Holes(NamedTuple):
    """The holes in ranks that go up.

    Attributes:
        rows: The row after each hole.
        ranks: The ranks of each hole.
        servers: The number of servers that are missing; 0 if devices of listed servers are.
    """

    rows: tuple[int, ...]
    ranks: tuple[range, ...]
    servers: int

    @property
    def all_ranks(self) -> list[int]:
        """The ranks of all holes."""
        return [rank for one in self.ranks for rank in one]


@shared
def rank_holes(subject: Subject) -> Holes | None:
    """Return the holes in which servers, or devices that the other servers list, are missing; None for other ranks."""
    if subject.table.format == "group_list" or "rank_id" in subject.damaged:
        return None
    found = holes_in(subject.table.rank_numbers, _MOST)
    if not found:
        return None
    holes = Holes(tuple(row for row, _ in found), tuple(ranks for _, ranks in found), 0)
    if (servers := _lost_servers(subject, holes)) > 0:
        return holes._replace(servers=servers)
    lost = lost_devices(subject)
    return holes if lost is not None and len(lost.rows) == len(holes.all_ranks) else None


def _lost_servers(subject: Subject, holes: Holes) -> int:
    """Return how many whole servers are missing: each has as many devices as the listed ones, which are more."""
    table = subject.table
    sizes = {len(server.rows) for server in table.servers}
    if len(sizes) != 1:
        return 0
    size = sizes.pop()
    for row, ranks in zip(holes.rows, holes.ranks, strict=True):
        before, after = (table.servers[table.server_of_row[one]] for one in (row - 1, row))
        if after.rows[0] != row or before.rows[-1] != row - 1 or len(ranks) % size:
            return 0
    number = len(holes.all_ranks) // size
    return number if number <= len(table.servers) else 0


def missing_ranks(subject: Subject, holes: Holes) -> str:
    """Return which ranks are missing, and between which entries, as a sentence."""
    parts = list[str]()
    for row, ranks in zip(holes.rows, holes.ranks, strict=True):
        verb = "" if parts else (" is missing" if len(holes.all_ranks) == 1 else " are missing")
        parts.append(
            f"{rank_list(ranks)}{verb} between {_between(subject, row, of_servers=holes.servers > 0)}"
        )
    return ", and ".join(parts)


def _between(subject: Subject, row: int, *, of_servers: bool) -> str:
    """Return the entries around a hole, with their ranks."""
    table = subject.table
    owners = [table.server_of_row[one] for one in (row - 1, row)]
    if of_servers:
        return " and ".join(_with_ranks(subject, index) for index in owners)
    first, second = (table.rank_numbers[one] for one in (row - 1, row))
    if owners[0] == owners[1]:
        ids = [table.device_numbers[one] for one in (row - 1, row)]
        here = f"device {ids[0]} (rank {first}) and device {ids[1]} (rank {second})"
        return f"{here} of {named_host(subject, owners[0])}"
    before, after = (named_devices(subject, [one]) for one in (row - 1, row))
    return f"rank {first}, {before}, and rank {second}, {after}"


def _with_ranks(subject: Subject, index: int) -> str:
    """Return a server with its ranks: ``server 36 ("192.0.2.36", ranks 280-287)``."""
    table, name = subject.table, named_host(subject, index)
    numbers = [number for row in table.servers[index].rows if (number := table.rank_numbers[row]) is not None]
    ranks = f"rank{'' if len(numbers) == 1 else 's'} {fold(numbers)}"
    return f"{name[:-1]}, {ranks})" if name.endswith(")") else f"{name} ({ranks})"


def other_holes(subject: Subject, holes: Holes) -> tuple[Related, ...]:
    """Return the places of the holes after the first one."""
    return tuple(
        Related(subject.device_path(row, "rank_id"), "and before this one") for row in holes.rows[1:]
    )


def is_in_row(subject: Subject, index: int, holes: Holes) -> bool:
    """Return whether the number at the end of a server_id follows that of the server before it, as those of the others."""
    names = [number_at_end(server.server_id) for server in subject.table.servers]
    after = {subject.table.server_of_row[row] for row in holes.rows}
    steps = Counter[int]()
    for place, (before, own) in enumerate(pairwise(names), 1):
        if before is not None and own is not None and before[0] == own[0] and place not in {*after, index}:
            steps[own[1] - before[1]] += 1
    if not any(names):  # Names with letters at their ends, such as node-a and node-b.
        texts = [server.server_id for server in subject.table.servers]
        return texts == sorted(texts) and len({*map(len, texts)}) == 1
    before, own = names[index - 1], names[index]
    if before is None or own is None or before[0] != own[0] or index == 0:
        return False
    usual = steps.most_common(1)[0][0] if steps else 1
    return own[1] - before[1] in ({usual, usual * (holes.servers + 1)} if index in after else {usual})
