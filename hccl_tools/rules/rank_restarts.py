"""Ranks that start at 0 again, as in tables that were joined by hand. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Subject


class Restart(NamedTuple):
    """Servers whose ranks start again, as if two tables were joined.

    Attributes:
        server: The index of the first of them.
        row: Its row with the first rank.
        size: The number of their ranks.
        rank: The rank that they would continue with in a table whose ranks start at 0.
        base: The first rank: 0, or 1 if a program counted from 1.
    """

    server: int
    row: int
    size: int
    rank: int
    base: int


@shared
def restarts(subject: Subject) -> list[Restart]:
    """Return where the ranks start at 0 again, or at 1 in a table whose ranks are counted from 1.

    The result is empty unless the servers form blocks, each with the ranks from 0 on, or from where the block before
    ends: only then the ranks of all devices are known.
    """
    numbers, servers = subject.table.rank_numbers, subject.table.servers
    base = 0 if 0 in numbers else 1
    begins = [
        index
        for index, server in enumerate(servers)
        if index == 0 or any(numbers[row] == base for row in server.rows)
    ]
    found, before = [], 0
    for begin, end in zip(begins, [*begins[1:], len(servers)], strict=True):
        rows = [row for server in servers[begin:end] for row in server.rows]
        own, size = {numbers[row] for row in rows}, len(rows)
        offset = base if own == {*range(base, base + size)} else base + before
        if own != {*range(offset, offset + size)}:
            return []
        if before and offset == base:
            first = next(row for row in rows if numbers[row] == base)
            found.append(Restart(begin, first, size, before, base))
        before += size
    return found


@shared
def half_again(subject: Subject) -> int:
    """Return where a rank_list begins again, whose second half is its first and which rank_count counts once; 0 for others."""
    half, odd = divmod(len(subject.table), 2)
    declared = (subject.table.declared or {}).get("rank_count")
    if odd or not half or subject.table.format != "2.0" or declared != half:
        return 0
    columns = subject.table.columns.values()
    return half if all([*column[:half]] == [*column[half:]] for column in columns) else 0


def restarted_servers(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on servers whose ranks start again."""
    servers, found = subject.table.servers, restarts(subject)
    first, alike = subject.table.rank_numbers.index(found[0].base), _said_once(subject, found)
    for again in found:
        ranks = count(again.size, "rank")
        what = f'server "{servers[again.server].server_id}" starts at rank {again.base} again ({ranks})'
        if subject.table.format == "2.0":
            what = f"entry {again.row + 1} of rank_list is rank {again.base} again ({ranks} from there on), as if two tables were joined"
        elif again.size > len(servers[again.server].rows):
            what += ", as if two tables were joined"
        yield Finding(
            what,
            subject.device_path(again.row, "rank_id"),
            f"ranks are counted from 0 over the whole table: write those at the beginning lower by 1, and continue here with {again.rank}"
            if again.base
            else f"continue the rank numbers with {again.rank}, or join the tables of the servers with `hccl-tools merge`, which does this",
            (Related(subject.device_path(first, "rank_id"), "first used here"),),
            alike=alike,
        )


def _said_once(subject: Subject, found: list[Restart]) -> tuple[str, str]:
    """Return message and hint for several places where the ranks start at 0 again."""
    sizes, what = (
        {again.size for again in found},
        (("entry", "entries") if subject.table.format == "2.0" else ("server",)),
    )
    each = f" ({count(sizes.pop(), 'rank')} each)" if len(sizes) == 1 else ""
    first, second = found[0], found[1] if found[1:] else found[0]
    places = f"here with {first.rank}, at the next place with {second.rank}, and so on"
    hint = (
        f"continue the rank numbers over the whole table: {places}; or join the tables of the servers with `hccl-tools merge`, "
        "which does this"
    )
    if first.base:
        hint = f"ranks are counted from 0 over the whole table: write those at the beginning lower by 1, and continue {places}"
    message = f"the ranks start at {first.base} again in {count(len(found), *what)}{each}, as if tables were joined or each host counted its own"
    return message, hint
